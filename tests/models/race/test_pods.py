"""What policies that look at each pod are shown of those that are stuck, or crashed."""

import dataclasses

import pytest

from models.fleet import profiles
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment, Phase, Start
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.warmup import FixedWarmUp, WarmUp
from models.fleet.workload import Synthetic
from models.peers.metrics import PerPod, Tolerance
from models.policy.decision import Decision, Reason
from models.policy.protocol import Observation, Pod
from models.race import driver
from models.race.driver import Lane
from models.signals import Signal
from tests.fakes.observations import observe

NOWHERE = Lane(policy=None, source=None)  # type: ignore[arg-type]  # only looked at
STARTS = WarmUp(schedule=(5, 5), image=(60, 60), engine=90, read=(2e9, 2e9), jitter=0)


def fleet(start: Start, replicas: int) -> tuple[Cluster, Deployment]:
    target = Deployment(Pool(profiles.LLAMA_8B_H100, PoolSettings()), start, seed=(1,))
    cluster = Cluster({"a": target})
    cluster.scale("a", replicas)
    return cluster, target


def shown(cluster: Cluster, target: Deployment, at: float) -> list[Pod]:
    cluster.advance(at)
    return list(driver.observe(target, NOWHERE).pods or ())


@pytest.mark.parametrize(
    ("at", "pending", "ready"),
    [(100.0, True, False), (630.0, True, False), (670.0, False, False), (800.0, False, True)],
)
def test_a_stuck_pod_is_pending_until_its_container_runs(at: float, *, pending: bool, ready: bool) -> None:
    stuck = dataclasses.replace(STARTS, stuck_share=1.0, stuck_for=600.0)
    (pod,) = shown(*fleet(stuck, 1), at)
    assert (pod.pending, pod.ready, pod.deleting) == (pending, ready, False)
    assert ready or (pod.running, pod.waiting, pod.kv_usage) == (None, None, None)


def test_a_pod_that_waits_for_its_image_is_pending_and_one_that_loads_weights_is_not() -> None:
    cluster, target = fleet(STARTS, 1)
    found = [shown(cluster, target, at)[0].pending for at in (0.0, 30.0, 64.0, 66.0, 100.0)]
    assert found == [True, True, True, False, False]


def test_a_pod_that_only_warms_up_is_not_pending() -> None:
    assert [pod.pending for pod in shown(*fleet(FixedWarmUp(100), 2), 50.0)] == [False, False]


def test_a_crashed_pod_runs_for_kubernetes_and_is_neither_ready_nor_pending() -> None:
    cluster, target = fleet(FixedWarmUp(60, mean_life=100), 1)
    crashed = None
    for at in range(1, 3000):
        (pod,) = shown(cluster, target, float(at))
        if target.pods[0].crashes and target.pods[0].phase is Phase.STARTING:
            crashed = pod
            break
    assert crashed is not None
    assert (crashed.ready, crashed.pending, crashed.deleting, crashed.running) == (False, False, False, None)


def test_an_hpa_counts_stuck_pods_as_idle_on_the_way_up_and_not_at_all_on_the_way_down() -> None:
    """Two ready pods at 30, two stuck ones, target 20: with those at 0 the mean is 15, the direction turns, it holds.

    Pods without a metric would be taken at the target on the way down, and hold it up.
    """
    stuck = dataclasses.replace(STARTS, stuck_share=1.0, stuck_for=9e9)
    _, target = fleet(stuck, 2)
    pending = tuple(driver.observe(target, NOWHERE).pods or ())
    assert [pod.pending for pod in pending] == [True, True]
    rule, tolerance = PerPod((Signal.IN_FLIGHT,), 20.0), Tolerance()

    def seen(running: float) -> Observation:
        ready = tuple(Pod(f"ready-{k}", running=running) for k in range(2))
        return dataclasses.replace(observe({}, replicas=4, ready=2), pods=(*ready, *pending))

    assert rule.proposal(seen(30.0), tolerance) == 4
    assert rule.proposal(seen(60.0), tolerance) == 6
    assert rule.proposal(seen(10.0), tolerance) == 1  # of the two that serve


def test_a_run_with_stuck_pods_shows_them_at_every_decision() -> None:
    stuck = dataclasses.replace(STARTS, stuck_share=1.0, stuck_for=300.0)
    cluster, _ = fleet(stuck, 2)

    @dataclasses.dataclass
    class Looking:
        pending: list[int]

        def decide(self, observation: Observation) -> Decision:
            self.pending.append(sum(pod.pending for pod in observation.pods or ()))
            return Decision(observation.now, 2, 2, 2, Reason.AT_PLAN, "")

    policy = Looking([])
    lane = Lane(policy, Synthetic(rate=1, day=0, seed=1), minimum=2, maximum=2)
    list(driver.drive(cluster, {"a": lane}, until=600.0, interval=60.0))
    assert policy.pending == [2, 2, 2, 2, 2, 2, 2, 0, 0, 0]
