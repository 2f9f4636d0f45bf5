"""What races are won with is what the service does: fed the same, `models.race.ours` and the service decide the same.

Both get the same arrivals, requests in flight and waiting, supply and forecasts of arrivals, some of them unknown at
times, and one profile whose throughput is known (as such, or as concurrency over duration). Where they differ by
design, and what this test therefore leaves out:

- the service forecasts in flight as well, and plans for the larger need; in a race that load depends on the policy
- the service plans for KV-cache tokens where the profile has a capacity; a race's has none
- where only a measured duration tells what a replica serves, what runs is a need of its own, corrected by how fast it
  grows (`crowd`); a race always knows the throughput, and with it growth makes no difference, as is seen here
- the service learns the profile while it serves, leaves stalled engines alone, looks at limits of GPUs and at rollouts,
  and forgets after a gap in its ticks
"""

import dataclasses
import math
from collections.abc import Generator, Hashable, Mapping
from typing import Any

import numpy as np
import pytest

from models.capacity import sizes, warmup
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes
from models.capacity.trusting import Learn
from models.forecasting.forecast import NotEnoughHistory, Outlook
from models.policy.context import Supply
from models.policy.decision import Decision, Reason
from models.policy.planning import Objectives
from models.policy.protocol import Observation
from models.race import ours
from models.race.foresight import QUANTILES, SIGNAL_AGE, SLOW, Foresight
from models.race.loadtest import Knee
from models.series import Series
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor import deciding
from predictor.board import Board
from predictor.outlooks import Outlooks, Pace
from predictor.targets import Learning, Mode
from tests.fakes.world import CALM
from tests.predictor.telemetry import examples

WARM_UP, TTFT, FAST = 300.0, 2.0, 10.0  # seconds
BASE, MAXIMUM = 2, 12
HOURS = 3
START = 1_000_000.0 - 1_000_000.0 % 60
MEASURED = ours.objectives(Knee(rate=2.0, concurrency=24.0, itl=0.05, objective=TTFT), ours.HEADROOM)
CONFIGURED = Objectives(Profile(concurrency=20.0, throughput=1.7))
TESTS = [LoadTest(Sizes(p, o), 2.0 * (p / 1000) ** -1.2 * (o / 200) ** -0.7, 24.0 * (p / 1000) ** -0.9)
         for p, o in ((1000, 200), (500, 200), (1000, 100))]  # fmt: skip
SIZED = ours.objectives(Knee(2.0, 24.0, itl=0.05, objective=TTFT, by_size=sizes.fitted(TESTS)), ours.HEADROOM)


class Foreseen:
    """A forecaster whose forecasts of arrivals are those of the race; of in flight it has none, as that has."""

    def __init__(self, foresight: Foresight) -> None:
        self.now = START
        self._foresight = foresight

    def update(
        self, histories: Mapping[Hashable, Series], *, horizons: Mapping[Hashable, tuple[float, ...]]
    ) -> dict[Hashable, tuple[Outlook, ...]]:
        ahead = self._foresight.horizons
        assert set(horizons.values()) == {(ahead.raising, ahead.lowering)}
        unknown = NotEnoughHistory(have=0, need=2)
        arrivals = self._foresight.at(self._foresight.index(self.now))
        return {key: arrivals if key[1] is Signal.ARRIVALS else (unknown, unknown) for key in histories}  # type: ignore[index]


class Nothing:
    """A history that remembers nothing: durations are the profile's."""

    def series(self, _key: str, _signal: Signal, *, now: float, since: float = 0.0) -> Series:
        del since
        return Series(now, 60.0, np.array([]))


class Service:
    """The stages of the service's two loops, with one target."""

    def __init__(self, objectives: Objectives, foresight: Foresight) -> None:
        target = dataclasses.replace(
            examples.target(),
            mode=Mode.CONTROL,
            objectives=objectives,
            warm_up=WARM_UP,
            learning=Learning(ttft=TTFT, learn=Learn.OFF),
        )
        self._board, self._forecaster = Board([target]), Foreseen(foresight)
        outlooks: Any = (self._forecaster, Nothing())
        self._outlooks, self._planned_at = Outlooks(*outlooks, Pace(SLOW, FAST, SIGNAL_AGE)), -math.inf
        self.grew = False
        self.entry = self._board.entries[target.key]

    def decide(self, seen: Observation) -> Decision:
        workload = dataclasses.replace(
            CALM, standing=seen.replicas, replicas=seen.replicas, base=BASE, maximum=MAXIMUM, supply=seen.supply,
            warm_up=None,
        )  # fmt: skip
        self.entry.readings, self.entry.workload = dict(seen.readings), workload
        deciding.demanded(self.entry)  # as the loop does for the history
        self.grew |= self.entry.growth != 0
        if seen.now - self._planned_at >= SLOW:
            self._forecaster.now = self._planned_at = seen.now
            self._outlooks.refresh(self._board, now=seen.now)
        made = deciding.decide(self.entry, workload, now=seen.now, loading=False, pace=Pace(SLOW, FAST, SIGNAL_AGE))
        self.entry.remember(made)
        return made


class World:
    """Arrivals that wander and jump, a queue where the ready replicas fall short, and replicas that take WARM_UP."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        rng, minutes = self._rng, HOURS * 60
        rate = 6 * np.exp(np.cumsum(rng.normal(0, 0.06, minutes)))
        rate[60:80] = 30.0  # more than the maximum serves
        rate[120:] *= 0.3
        self.rate = np.clip(rate, 0.2, 30)
        ahead = [[float(self.rate[m : m + over].max()) for m in range(minutes)] for over in (6, 11)]
        bounds = [np.multiply.outer(row, np.linspace(0.8, 1.3, len(QUANTILES))) for row in ahead]
        for one in bounds:
            one[:20] = np.nan  # not enough history yet
        self.rate[140:150] = 25.0  # nobody foresaw it
        horizons = warmup.horizons(WARM_UP, interval=SLOW, signal_age=SIGNAL_AGE)
        self.foresight = Foresight(START, 60.0, horizons, QUANTILES, bounds[0], bounds[1])

    def run(self) -> Generator[Observation, int, None]:
        """What is seen each FAST seconds; the replicas to go on with are sent in."""
        born, waiting, now = [-math.inf] * 3, 0.0, START
        for tick in range(int(HOURS * 3600 / FAST)):
            rate = self.rate[int(tick * FAST // 60)]
            ages = [now - at for at in born]
            ready_in = tuple(sorted(WARM_UP - age for age in ages if age < WARM_UP))
            supply = Supply(len(ages) - len(ready_in), len(ready_in), 0, ready_in)
            waiting = max(waiting + (rate - 2.0 * supply.ready) * FAST, 0.0)
            values = {
                Signal.ARRIVALS: rate * self._rng.uniform(0.9, 1.1),
                Signal.IN_FLIGHT: min(12 * rate + waiting, 26.0 * supply.ready),
                Signal.WAITING: waiting,
                Signal.TTFT_P95: 0.4 + waiting / 20,
                Signal.COMPLETIONS: min(rate, 2.0 * supply.ready),
            }
            hours = (now - START) / 3600
            values[Signal.TOKENS_IN] = values[Signal.COMPLETIONS] * 1000 * (1 + 0.6 * hours)
            values[Signal.TOKENS_OUT] = values[Signal.COMPLETIONS] * 200 * (1 - 0.2 * hours)
            readings = {signal: self._reading(value, now) for signal, value in values.items()}
            replicas = yield Observation(now, len(born), BASE, MAXIMUM, supply, readings)
            born = [*born, *[now] * (replicas - len(born))][:replicas]
            now += FAST

    def _reading(self, value: float, now: float) -> Reading:
        if self._rng.random() < 0.02:
            return Unknown(Cause(self._rng.choice([Cause.EMPTY, Cause.STALE, Cause.SOURCE_DOWN])))
        return Known(value, now)


@pytest.mark.parametrize("objectives", [MEASURED, CONFIGURED, SIZED], ids=["duration", "throughput", "sizes"])
@pytest.mark.parametrize("seed", range(3))
def test_the_service_and_the_race_decide_the_same_at_every_tick(seed: int, objectives: Objectives) -> None:
    world = World(seed)
    service, racer = Service(objectives, world.foresight), ours.Floorcast(objectives, world.foresight, ttft=TTFT)
    made: list[Decision] = []
    ticks = world.run()
    seen = next(ticks)
    while True:
        mine, theirs = service.decide(seen), racer.decide(seen)
        assert (mine.replicas, mine.wanted, mine.reason) == (theirs.replicas, theirs.wanted, theirs.reason), mine
        assert [verdict.rule for verdict in mine.trail] == [verdict.rule for verdict in theirs.trail]
        made.append(mine)
        try:
            seen = ticks.send(mine.replicas)
        except StopIteration:
            break
    assert service.grew
    assert len(made) == HOURS * 3600 / FAST
    reasons = {one.reason for one in made}
    assert reasons >= {
        Reason.RAISED_FOR_FORECAST, Reason.RAISED_FOR_BACKLOG, Reason.LOWERED_ONE_STEP, Reason.HELD_UNKNOWN,
        Reason.CAPPED_AT_MAXIMUM,
    }  # fmt: skip
