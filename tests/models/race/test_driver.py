import dataclasses

import pytest

from models.fleet import profiles, scorecard
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.seen import Sight
from models.fleet.warmup import FixedWarmUp
from models.fleet.workload import Surge, Synthetic
from models.policy.decision import Decision, Reason
from models.policy.protocol import Observation
from models.race import driver
from models.race.driver import Lane
from models.signals import Known, Signal


@dataclasses.dataclass
class OnArrivals:
    """So many requests per second a replica; holds while they are unknown."""

    per_replica: float

    def decide(self, observation: Observation) -> Decision:
        seen = observation.readings[Signal.ARRIVALS]
        wanted = round(seen.value / self.per_replica + 0.5) if isinstance(seen, Known) else observation.replicas
        return Decision(observation.now, observation.replicas, wanted, wanted, Reason.AT_PLAN, "")


def cluster(warm_up: float = 60.0) -> Cluster:
    settings = PoolSettings(timeout=30.0)
    each = {
        "chat": Deployment(Pool(profiles.LLAMA_8B_H100, settings), FixedWarmUp(warm_up), seed=(1,)),
        "code": Deployment(Pool(profiles.LLAMA_70B_H100_TP4, settings), FixedWarmUp(warm_up), seed=(2,)),
    }
    return Cluster(each, gpus={"H100": 40})


def lanes() -> dict[str, Lane]:
    surge = Surge(900, 3, lasts=600)
    return {
        "chat": Lane(OnArrivals(12), Synthetic(rate=30, day=0, surges=(surge,), seed=1), minimum=1, maximum=12),
        "code": Lane(OnArrivals(4), Synthetic(rate=6, day=0, seed=2), maximum=5, sight=Sight(router=False)),
    }


def test_policies_of_several_pools_decide_at_their_interval_and_follow_the_load() -> None:
    run = cluster()
    moments = list(driver.drive(run, lanes(), until=1800.0, interval=30.0))
    assert [moment.now for moment in moments] == [30.0 * k for k in range(60)]
    chat = [moment.observations["chat"].supply.ready for moment in moments]
    assert max(chat) > 1.8 * chat[28]
    assert moments[-1].observations["chat"].replicas < max(chat)
    cards = {name: scorecard.of(target) for name, target in run.deployments.items()}
    assert all(card.requests > 5000 for card in cards.values())
    assert all(card.requests == card.finished + card.rejected + card.timed_out + card.failed + card.in_system
               for card in cards.values())  # fmt: skip


def test_a_decision_is_cut_to_the_lanes_bounds() -> None:
    run = cluster()
    for moment in driver.drive(run, lanes(), until=1800.0, interval=30.0):
        assert 1 <= run.deployments["chat"].wanted <= 12, moment
    assert run.deployments["code"].wanted <= 5


def test_a_run_in_two_parts_is_the_run_in_one() -> None:
    whole, parts = cluster(), cluster()
    list(driver.drive(whole, lanes(), until=1200.0, interval=30.0))
    for until in (300.0, 1200.0):
        list(driver.drive(parts, lanes(), until=until, interval=30.0))
    for name, target in whole.deployments.items():
        assert target.pool.replicas.tobytes() == parts.deployments[name].pool.replicas.tobytes()
        assert target.costs() == parts.deployments[name].costs()


def test_a_pod_that_warms_for_too_long_is_no_supply() -> None:
    run = cluster(warm_up=5000.0)
    many = {name: dataclasses.replace(lane, stuck_after=600.0) for name, lane in lanes().items()}
    *_, last = driver.drive(run, many, until=1200.0, interval=30.0)
    supply = last.observations["chat"].supply
    assert (supply.ready, supply.stuck > 0) == (0, True)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="differ"):
        list(driver.drive(cluster(), {"chat": lanes()["chat"]}, until=1, interval=1))
    with pytest.raises(ValueError, match="interval is 0"):
        list(driver.drive(cluster(), lanes(), until=1, interval=0))
    with pytest.raises(ValueError, match="minimum 3 and maximum 2"):
        Lane(OnArrivals(1), Synthetic(rate=1), minimum=3, maximum=2)
