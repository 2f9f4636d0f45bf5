import dataclasses

import numpy as np
import pytest

from models.fleet.deployment import Phase
from models.fleet.requests import Requests, none
from models.policy.context import Supply
from predictor.demo import scenario
from predictor.demo.cluster import Autoscaled, SimulatedCluster
from predictor.demo.options import Rival
from predictor.ports import Owner, Refused, Workload, Written

TARGET = scenario.TARGET


def side(*, rival: Rival | None = Rival.QUEUE) -> Autoscaled:
    fleet = Autoscaled(scenario.cluster(1), hpa=None if rival is None else scenario.rival(rival))
    fleet.begin()
    return fleet


def observed(cluster: SimulatedCluster, *, now: float = 0.0) -> Workload:
    seen = cluster.observe([TARGET], now=now)[TARGET.key]
    assert isinstance(seen, Workload)
    return seen


def burst(count: int) -> Requests:
    ones = np.ones(count, dtype=np.int64)
    return Requests(np.linspace(0, 1, count), ones * 500, ones * 1000)


def test_a_floor_is_acted_upon_at_the_next_sync_of_the_hpa() -> None:
    fleet = side()
    cluster = SimulatedCluster(fleet)
    assert cluster.write(TARGET, 5, seen=observed(cluster), now=0) == Written(5)
    assert fleet.deployment.wanted == scenario.FIRST
    fleet.sync()
    seen = observed(cluster)
    assert (seen.owner, seen.standing, seen.replicas) == (Owner.HPA, 5, 5)
    typical = (scenario.TYPICAL_WARM_UP,) * 3
    assert seen.supply == Supply(ready=scenario.FIRST, warming=3, ready_in=typical)


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
    fleet.serve(burst(100), until=2)
    fleet.sync()
    assert fleet.last is not None
    assert fleet.last.wanted == pytest.approx(wanted, abs=1)


def test_an_hpa_that_sees_no_replica_does_not_scale() -> None:
    fleet = side()
    fleet.scale(0)
    fleet.serve(none(), until=1)
    fleet.scale(1)
    fleet.sync()
    assert fleet.last is not None
    assert not fleet.last.changes


def test_measured_warm_ups_are_told() -> None:
    fleet = side()
    fleet.scale(4)
    fleet.serve(none(), until=600)
    usual = observed(SimulatedCluster(fleet), now=600).warm_up
    assert usual is not None
    warm_ups = [wait.seconds for wait in usual.waits if wait.over][-usual.measured :]
    assert len(warm_ups) == 2
    assert all(120 < seconds < 420 for seconds in warm_ups)


def test_replicas_beyond_the_gpus_wait_for_one() -> None:
    fleet = side(rival=None)
    fleet.serve(burst(2), until=1)  # one each, so that both drain
    fleet.scale(0)
    fleet.scale(scenario.MAXIMUM)
    assert (fleet.count(Phase.DRAINING), fleet.count(Phase.PENDING)) == (2, 2)
    fleet.serve(none(), until=60)
    assert (fleet.count(Phase.DRAINING), fleet.count(Phase.PENDING)) == (0, 0)
    assert (fleet.supply.ready, fleet.supply.warming) == (0, scenario.MAXIMUM)
