import dataclasses

import numpy as np
import pytest

from models.fleet import deployment, engine, fleet, lifecycle

FIXED = lifecycle.WarmUp(
    schedule=(2, 2), image=(0, 0), weights_bytes=60e9, weights_rate=(2e9, 2e9), engine=68, variation=0
)  # 2 + 30 + 68 = 100 s


def test_a_replica_serves_after_its_warm_up_and_costs_from_the_start() -> None:
    replicas = lifecycle.Lifecycle(FIXED, seed=1)
    replicas.ask(2, 1000)
    assert replicas.count(lifecycle.State.WARMING) == 2
    assert replicas.warmed(1099) == ()
    assert replicas.warmed(1100) == ("replica-1", "replica-2")
    assert replicas.warm_ups == [100, 100]
    assert replicas.hours(1100) == pytest.approx(2 * 100 / 3600)
    assert replicas.starts == 2


def test_a_warming_replica_tells_its_phase() -> None:
    replicas = lifecycle.Lifecycle(FIXED, seed=1)
    replicas.ask(1, 0)
    member = replicas.members[0]
    assert [member.phase(at) for at in (1, 10, 50)] == ["schedule", "weights", "engine"]
    replicas.warmed(100)
    assert member.phase(100) == "ready"


def test_what_serves_last_is_given_up_first() -> None:
    replicas = lifecycle.Lifecycle(FIXED, seed=1, slots=3)
    replicas.ask(2, 0)
    replicas.warmed(100)
    replicas.ask(4, 100)
    states = lifecycle.State
    assert [replicas.count(state) for state in (states.READY, states.WARMING, states.PENDING)] == [2, 1, 1]
    assert replicas.ask(2, 150) == ()
    assert [replicas.count(state) for state in (states.READY, states.WARMING, states.PENDING)] == [2, 0, 0]
    assert replicas.ask(1, 150) == ("replica-2",)
    assert replicas.count(states.DRAINING) == 1
    assert replicas.asked == 1


def test_a_lost_warm_up_and_a_drain_are_paid_for() -> None:
    replicas = lifecycle.Lifecycle(FIXED, seed=1)
    replicas.ask(1, 0)
    replicas.ask(0, 50)
    assert replicas.hours(500) == pytest.approx(50 / 3600)
    replicas.ask(1, 500)
    replicas.warmed(600)
    replicas.ask(0, 700)
    replicas.gone("replica-2", 720)
    assert replicas.hours(9999) == pytest.approx((50 + 220) / 3600)
    assert replicas.starts == 2


def test_without_a_gpu_a_replica_is_pending_costs_nothing_and_starts_when_one_is_free() -> None:
    replicas = lifecycle.Lifecycle(FIXED, seed=1, slots=1)
    replicas.ask(2, 0)
    replicas.warmed(100)
    assert replicas.hours(200) == pytest.approx(200 / 3600)
    assert replicas.members[1].phase(200) == "pending"
    replicas.members[0].state = lifecycle.State.DRAINING
    replicas.gone("replica-1", 200)
    assert replicas.next_ready == 300
    replicas.warmed(300)
    assert replicas.warm_ups[-1] == 300  # from asked for to ready: what a cluster would measure


def test_warm_ups_are_drawn_by_seed_and_number() -> None:
    def phases(seed: int) -> list[dict[str, float]]:
        replicas = lifecycle.Lifecycle(lifecycle.WarmUp(), seed=seed)
        replicas.ask(3, 0)
        return [member.phases for member in replicas.members]

    assert phases(5) == phases(5)
    assert phases(5) != phases(6)
    assert all(120 < sum(drawn.values()) < 420 for drawn in phases(5))


def served() -> deployment.Deployment:
    small = dataclasses.replace(engine.QWEN_32B_H100_TP2, max_num_seqs=32)
    simulated = deployment.Deployment(fleet.Fleet(small), lifecycle.Lifecycle(FIXED, seed=1), replicas=1)
    times = np.arange(0, 600, 0.2)
    ones = np.ones(len(times), dtype=np.int64)
    simulated.offer(fleet.Arrivals(times, ones * 500, ones * 200))
    return simulated


def test_a_deployment_serves_with_a_new_replica_from_the_moment_it_is_ready() -> None:
    simulated = served()
    simulated.advance(10)
    simulated.scale(2)
    simulated.advance(109)
    assert simulated.fleet.ready == ("replica-1",)
    simulated.advance(130)
    assert simulated.fleet.ready == ("replica-1", "replica-2")
    assert simulated.fleet.snapshot("replica-2").running > 0
    assert simulated.lifecycle.warm_ups == [100]


def test_a_deployment_drains_and_then_stops_paying() -> None:
    simulated = served()
    simulated.scale(2)
    simulated.advance(200)
    simulated.scale(1)
    assert simulated.lifecycle.count(lifecycle.State.DRAINING) == 1
    simulated.advance(260)
    assert simulated.lifecycle.count(lifecycle.State.DRAINING) == 0
    paid = simulated.lifecycle.hours(260)
    simulated.advance(3860)
    assert simulated.lifecycle.hours(3860) == pytest.approx(paid + 1)
    assert simulated.fleet.scorecard().in_flight == 0
