import dataclasses

import numpy as np
import pytest

from models.fleet.fleet import Arrivals
from models.peers.hpa import Hpa
from models.policy.context import Supply
from predictor.demo import scenario
from predictor.demo.cluster import Autoscaled, SimulatedCluster
from predictor.demo.options import Rival
from predictor.ports import Owner, Refused, Workload, Written

TARGET = scenario.TARGET


def side(*, rival: Rival | None = Rival.QUEUE) -> Autoscaled:
    rule = None if rival is None else Hpa(scenario.RIVALS[rival])
    return Autoscaled(scenario.deployment(1), hpa=rule)


def observed(cluster: SimulatedCluster, *, now: float = 0.0) -> Workload:
    seen = cluster.observe([TARGET], now=now)[TARGET.key]
    assert isinstance(seen, Workload)
    return seen


def burst(count: int) -> Arrivals:
    ones = np.ones(count, dtype=np.int64)
    return Arrivals(np.linspace(0, 1, count), ones * 500, ones * 1000)


def test_a_floor_is_acted_upon_at_the_next_sync_of_the_hpa() -> None:
    fleet = side()
    cluster = SimulatedCluster(fleet)
    assert cluster.write(TARGET, 5, seen=observed(cluster), now=0) == Written(5)
    assert fleet.deployment.lifecycle.asked == scenario.FIRST
    fleet.sync()
    seen = observed(cluster)
    assert (seen.owner, seen.standing, seen.replicas) == (Owner.HPA, 5, 5)
    assert seen.supply == Supply(ready=scenario.FIRST, warming=5 - scenario.FIRST)


def test_without_an_hpa_the_replica_count_itself_is_written() -> None:
    fleet = side(rival=None)
    cluster = SimulatedCluster(fleet)
    assert cluster.write(TARGET, 4, seen=observed(cluster), now=0) == Written(4)
    fleet.sync()
    seen = observed(cluster)
    assert (seen.owner, seen.standing, seen.replicas) == (Owner.SCALE, 4, 4)


def test_a_number_that_changed_meanwhile_is_a_conflict_and_stays() -> None:
    cluster = SimulatedCluster(side())
    stale = dataclasses.replace(observed(cluster), standing=9)
    answer = cluster.write(TARGET, 5, seen=stale, now=0)
    assert isinstance(answer, Refused)
    assert answer.reason == "Conflict"
    assert observed(cluster).standing == scenario.MINIMUM


def test_release_gives_the_users_own_minimum_back() -> None:
    cluster = SimulatedCluster(side())
    cluster.write(TARGET, 5, seen=observed(cluster), now=0)
    assert cluster.release(TARGET) == Written(scenario.MINIMUM)
    assert observed(cluster).standing == scenario.MINIMUM


@pytest.mark.parametrize(("rival", "wanted"), [(Rival.QUEUE, 19), (Rival.LOAD, 5)])
def test_the_hpa_follows_what_the_replicas_report(rival: Rival, wanted: int) -> None:
    """100 long requests on two replicas of 32: 36 wait + 2 for each tolerated, 100 are in flight."""
    fleet = side(rival=rival)
    fleet.deployment.offer(burst(100))
    fleet.deployment.advance(2)
    fleet.sync()
    assert fleet.last is not None
    assert fleet.last.wanted == pytest.approx(wanted, abs=1)


def test_an_hpa_that_sees_no_replica_does_not_scale() -> None:
    fleet = side()
    for name in fleet.deployment.fleet.ready:
        fleet.deployment.fleet.remove(name)
    fleet.sync()
    assert fleet.last is not None
    assert not fleet.last.changes


def test_measured_warm_ups_are_told() -> None:
    fleet = side()
    fleet.deployment.scale(4)
    fleet.deployment.advance(600)
    usual = observed(SimulatedCluster(fleet), now=600).warm_up
    assert usual is not None
    warm_ups = [wait.seconds for wait in usual.waits if wait.over][-usual.measured :]
    assert len(warm_ups) == 2
    assert all(120 < seconds < 420 for seconds in warm_ups)
