"""The second promise, scenario by scenario: the floor only adds to the reactive side, and bounds always hold."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from models.capacity.profile import Profile as Replica
from models.fleet import profiles, scorecard
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.warmup import FixedWarmUp
from models.fleet.workload import Surge, Synthetic
from models.peers.hpa import Hpa, HpaSettings
from models.policy.decision import Decision
from models.policy.planning import Objectives
from models.policy.protocol import Autoscaler, Observation
from models.race import driver, foresight, ours
from models.race.driver import Lane
from models.race.foresight import Foresight, Past
from models.series import Series
from models.signals import Cause, Known, Reading, Signal, Unknown

BELIEVED = 120.0  # seconds of warm-up that the forecast looks over
START, END = 5400.0, 10800.0
LOAD = Synthetic(rate=6, day=0, surges=(Surge(7200.0, 2.0, lasts=1200),), seed=3)
OBJECTIVES = Objectives(profile=Replica(concurrency=12, duration=6.0))
OWNER = HpaSettings(Signal.IN_FLIGHT, 12)
MINIMUM, MAXIMUM = 2, 8
Look = Callable[[Observation], Observation]


def as_it_is(seen: Observation) -> Observation:
    return seen


def dropped(seen: Observation) -> Observation:
    """No signal at all for twelve minutes from the middle of the surge on."""
    gone = 7500.0 <= seen.now < 8220.0
    unknown: dict[Signal, Reading] = dict.fromkeys(Signal, Unknown(Cause.SOURCE_DOWN))
    return dataclasses.replace(seen, readings=unknown, pods=()) if gone else seen


def skewed(seen: Observation) -> Observation:
    """The pods' clocks are four minutes ahead."""
    readings = {
        signal: Known(reading.value, reading.at + 240) if isinstance(reading, Known) else reading
        for signal, reading in seen.readings.items()
    }
    return dataclasses.replace(seen, readings=readings)


def stalled(seen: Observation) -> Observation:
    """Engines that accept and finish nothing: what runs stands still, and nothing comes out."""
    if seen.now < 8000:
        return seen
    frozen = {Signal.IN_FLIGHT: 40.0, Signal.WAITING: 0.0, Signal.TOKENS_OUT: 0.0}
    readings = dict(seen.readings) | {signal: Known(value, seen.now) for signal, value in frozen.items()}
    return dataclasses.replace(seen, readings=readings)


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What goes wrong."""

    forecast: float = 1.0  # times what is right; NaN for none
    warm_up: float = BELIEVED
    gpus: int | None = None
    look: Look = as_it_is


SCENARIOS = {
    "nothing": Scenario(),
    "forecast of half": Scenario(forecast=0.5),
    "forecast of double": Scenario(forecast=2.0),
    "forecast silent": Scenario(forecast=float("nan")),
    "warm-up three times as long": Scenario(warm_up=3 * BELIEVED),
    "four GPUs only": Scenario(gpus=4),
    "engines stalled": Scenario(look=stalled),
    "signals dropped": Scenario(look=dropped),
    "clocks of the pods ahead": Scenario(look=skewed),
}


@pytest.fixture(scope="module")
def foreseen() -> Foresight:
    counts = np.bincount((LOAD.between(0, END).times // 60).astype(int), minlength=180) / 60
    return foresight.foresee({"a": Past(Series(60.0, 60.0, counts), START, END)}, (BELIEVED,))["a", BELIEVED]


@dataclasses.dataclass
class Watched:
    """A policy that sees a scenario, and beside it the owner alone on the very same observations."""

    policy: Autoscaler
    look: Look
    beside: Hpa = dataclasses.field(default_factory=lambda: Hpa(OWNER))
    decided: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    def decide(self, observation: Observation) -> Decision:
        seen = self.look(observation)
        decision, alone = self.policy.decide(seen), self.beside.decide(seen)
        self.decided.append((decision.replicas, alone.replicas))
        return decision


def raced(policy: Autoscaler, scenario: Scenario) -> tuple[float, Watched]:
    """The share of requests without a first token in time, and what was decided."""
    pool = Pool(profiles.LLAMA_8B_RTX4090, PoolSettings(ttft_objective=2.0, seed=1), start=START)
    gpus = None if scenario.gpus is None else {profiles.LLAMA_8B_RTX4090.gpu: scenario.gpus}
    target = Deployment(pool, FixedWarmUp(scenario.warm_up), seed=(1,))
    cluster = Cluster({"a": target}, gpus=gpus)
    cluster.scale("a", 3)
    watched = Watched(policy, scenario.look)
    lane = Lane(watched, LOAD, minimum=MINIMUM, maximum=MAXIMUM)
    for _ in driver.drive(cluster, {"a": lane}, until=END, interval=15.0):
        pass
    card = scorecard.of(target)
    return card.missed / card.requests, watched


def wrong(foreseen: Foresight, by: float) -> Foresight:
    return dataclasses.replace(foreseen, raising=foreseen.raising * by, lowering=foreseen.lowering * by)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_floor_adds_to_its_owner_whatever_goes_wrong(name: str, foreseen: Foresight) -> None:
    scenario = SCENARIOS[name]
    mine = ours.Floor(ours.Floorcast(OBJECTIVES, wrong(foreseen, scenario.forecast)), Hpa(OWNER))
    missed, watched = raced(mine, scenario)
    alone, _ = raced(Hpa(OWNER), scenario)
    assert all(floored >= owner for floored, owner in watched.decided)
    assert all(MINIMUM <= floored <= MAXIMUM for floored, _ in watched.decided)
    assert missed <= alone + 1e-3


@pytest.mark.parametrize("name", SCENARIOS)
def test_bounds_hold_where_floorcast_owns_the_count(name: str, foreseen: Foresight) -> None:
    scenario = SCENARIOS[name]
    _, watched = raced(ours.Floorcast(OBJECTIVES, wrong(foreseen, scenario.forecast)), scenario)
    assert all(MINIMUM <= mine <= MAXIMUM for mine, _ in watched.decided)


def test_nothing_falls_while_signals_are_gone(foreseen: Foresight) -> None:
    falls: list[tuple[float, int, int]] = []

    class Noted:
        def __init__(self) -> None:
            self.mine = ours.Floorcast(OBJECTIVES, foreseen)

        def decide(self, seen: Observation) -> Decision:
            decision = self.mine.decide(seen)
            unknown = any(isinstance(seen.readings[signal], Unknown) for signal in ours.DEMAND)
            if unknown and decision.replicas < decision.before:
                falls.append((seen.now, decision.before, decision.replicas))
            return decision

    raced(Noted(), SCENARIOS["signals dropped"])
    assert falls == []


def test_with_the_forecast_silent_it_never_goes_below_what_the_reactive_rule_wants(foreseen: Foresight) -> None:
    silent = ours.Floorcast(OBJECTIVES, wrong(foreseen, float("nan")))
    reactive = ours.Floorcast(OBJECTIVES, None, lead=foreseen.horizons.raising)
    below: list[float] = []

    class Both:
        def decide(self, seen: Observation) -> Decision:
            mine, alone = silent.decide(seen), reactive.decide(seen)
            if alone.wanted is not None and mine.replicas < min(alone.wanted, seen.maximum):
                below.append(seen.now)
            return mine

    raced(Both(), SCENARIOS["nothing"])
    assert below == []
