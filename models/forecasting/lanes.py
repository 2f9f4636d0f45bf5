"""What is remembered of each series and horizon (a lane) from one tick to the next."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from models.forecasting import season
from models.forecasting.levels import Levels
from models.forecasting.regress import Ridge
from models.forecasting.settings import ForecastSettings
from models.forecasting.steady import STAYS, Steady
from models.series import Floats

Ints = npt.NDArray[np.intp]
Halves = npt.NDArray[np.float16]

CHUNK = 60  # origins replayed at a time
HEARD = 16  # last values by which a series is known again
EXPERTS = ("level", "blend", "scaled")
PARTS = 5  # of what is taken anew from the scores, see `learning.measure`
LEVEL_INPUTS = 5  # 1, and what last value, both averages and recent maximum stand above the level
NOISE_INPUTS = 5  # 1, two averages of recent misses, two of recent changes
SOME = 0.3  # roots: added to a spread wherever one is divided by, so that a silent series divides by no zero
NOISE_SPANS: Floats = np.array([15.0, 60.0, 15.0, 60.0, 360.0])  # origins: two of scores, three of misses


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What follows from the settings and the grid, the same for all lanes of a grid.

    Attributes:
        settings: as given.
        step: of the grid, seconds.
        every: grid steps from one origin to the next.
        phases: of the seasons to look at.
        scores: past scores of which quantiles are made.
        refresh: origins after which quantiles are taken anew.
        resolve: origins after which regressions are solved anew: three times as many lost nothing on any trace.

    One part of that work and one regression at most come up at an origin, by the clock and for all lanes alike: no
    origin pays for all of it, and what is forecast for a lane depends neither on its name nor on its company.
    """

    settings: ForecastSettings
    step: float
    every: int
    phases: tuple[season.Phase, ...]
    scores: int
    refresh: int
    resolve: int

    @classmethod
    def of(cls, settings: ForecastSettings, step: float) -> "Plan":
        """Plan for a grid of `step` seconds."""
        every = settings.origin_steps(step)
        # Quantiles of 720 scores hardly move in ten minutes; where origins are further apart, each is worth a look.
        refresh = int(np.clip(600.0 // (every * step), 1, 5))
        found = season.phases(settings, every * step)
        return cls(settings, step, every, found, settings.scores(step), refresh, 3 * refresh)

    @property
    def spacing(self) -> float:
        """Seconds between two origins."""
        return self.every * self.step

    @property
    def widths(self) -> int:
        """How many usual jumps there are."""
        return sum(len(phase.spreads) for phase in self.phases)

    @property
    def inputs(self) -> int:
        """Inputs of the regressions for the jump."""
        return LEVEL_INPUTS + self.widths

    @property
    def noise_inputs(self) -> int:
        """Inputs of the regression for its spread."""
        return NOISE_INPUTS + self.widths

    @property
    def memory(self) -> int:
        """Origins whose scores are remembered for the seasons."""
        return season.reach(self.phases, self.spacing) + CHUNK

    def part_due(self, part: int, origin: int) -> bool:
        """Whether a part of what is known of the scores (of PARTS) is taken anew at an origin."""
        return (origin - part - 1) % self.refresh == 0

    def regression_due(self, regression: int, origin: int) -> bool:
        """Whether a regression (0, 1 or 2) is solved anew at an origin."""
        return (origin - regression * self.refresh) % self.resolve == 0

    def lag(self, steps: Ints) -> Ints:
        """Origins after which a score over `steps` grid steps is known."""
        return np.asarray(-(-steps // self.every))

    def stays(self, steps: Ints, *, delay: int) -> Ints:
        """Origins for which replicas stay that were asked for over `steps` grid steps; less than `delay`."""
        return np.minimum(self.lag(steps) + round(STAYS / self.spacing), delay - 1)


@dataclasses.dataclass(slots=True)
class Lanes:
    """Everything remembered; the first axis of each array is the lane.

    Attributes:
        steps: horizon in grid steps.
        levels: running levels.
        jumps: root of the maximum less root of the level, by origin, for the seasons; shape (lanes, memory). Like
            the scores they keep three digits: together they are nearly all of what a lane remembers.
        roots: root of the level at the last origins, shape (lanes, delay).
        inputs: inputs of the jump's regressions there, shape (lanes, delay, p).
        noise_inputs: inputs of the spread's regression there, shape (lanes, delay, z).
        guesses: plain jump, weighted jump, spread and weight there, shape (lanes, delay, 4).
        bounds: quantiles forecast there, as roots, before the value of then became their least; shape (lanes, delay,
            quantiles).
        plain: regression of the jump.
        weighted: the same with noisy times weighing less.
        spread: regression of the absolute miss.
        noise: running averages over NOISE_SPANS, shape (lanes, 5).
        largest: largest absolute jump, slowly forgotten, shape (lanes,).
        seen: scores taken in, shape (lanes,).
        scores: past scores of each expert, in `learning.UNIT`, shape (lanes, experts, scores).
        spreads: spread by which each of the scaled ones was divided, shape (lanes, scores).
        quantiles: of these scores, shape (lanes, experts, quantiles).
        losses: what these quantiles would have cost on the same scores, shape (lanes, experts, quantiles).
        shares: weight of each expert in each quantile, shape (lanes, experts, quantiles).
        shift: adaptive correction in widths of the band, shape (lanes, quantiles).
        steady: what to plan for where the band tells nothing.
        heard: last known values, newest last, by which a series is known again, shape (lanes, HEARD).
    """

    steps: Ints
    levels: Levels
    jumps: Halves
    roots: Floats
    inputs: Floats
    noise_inputs: Floats
    guesses: Floats
    bounds: Floats
    plain: Ridge
    weighted: Ridge
    spread: Ridge
    noise: Floats
    largest: Floats
    seen: Ints
    scores: Halves
    spreads: Halves
    quantiles: Floats
    losses: Floats
    shares: Floats
    shift: Floats
    steady: Steady
    heard: Floats

    @classmethod
    def empty(cls, steps: Ints, *, delay: int, plan: Plan) -> "Lanes":
        """Nothing known of lanes with horizons of `steps`; `delay` is more than the longest lag."""
        n, probabilities = len(steps), len(plan.settings.quantiles)
        p, z, experts = plan.inputs, plan.noise_inputs, len(EXPERTS)
        return cls(
            steps=steps,
            levels=Levels.empty(n),
            jumps=np.full((n, plan.memory), np.nan, dtype=np.float16),
            roots=np.full((n, delay), np.nan),
            inputs=np.zeros((n, delay, p)),
            noise_inputs=np.zeros((n, delay, z)),
            guesses=np.full((n, delay, 4), np.nan),
            bounds=np.full((n, delay, probabilities), np.nan),
            plain=Ridge.empty(n, p),
            weighted=Ridge.empty(n, p),
            spread=Ridge.empty(n, z),
            noise=np.full((n, len(NOISE_SPANS)), np.nan),
            largest=np.zeros(n),
            seen=np.zeros(n, dtype=np.intp),
            scores=np.full((n, experts, plan.scores), np.nan, dtype=np.float16),
            spreads=np.ones((n, plan.scores), dtype=np.float16),
            quantiles=np.full((n, experts, probabilities), np.nan),
            losses=np.ones((n, experts, probabilities)),
            shares=np.full((n, experts, probabilities), 1 / experts),
            shift=np.zeros((n, probabilities)),
            steady=Steady.empty(n, delay=delay, scores=plan.scores, probabilities=probabilities),
            heard=np.full((n, HEARD), np.nan),
        )

    @property
    def delay(self) -> int:
        """Origins whose forecasts are kept until their horizon has passed."""
        return int(self.roots.shape[1])

    def taken(self, rows: Sequence[int]) -> "Lanes":
        """A copy of some lanes."""
        at = np.asarray(rows, dtype=np.intp)
        return _mapped([self], lambda arrays: arrays[0][at])

    def put(self, first: int, other: "Lanes") -> None:
        """Overwrite lanes from number `first` on with those of `other`."""
        _copied(self, other, first)


_Part = TypeVar("_Part", Lanes, Levels, Ridge, Steady)


def joined(parts: Sequence[Lanes]) -> Lanes:
    """All lanes of `parts`, in order; they must have the same delay."""
    return parts[0] if len(parts) == 1 else _mapped(parts, np.concatenate)


def _copied(whole: _Part, part: _Part, first: int) -> None:
    for field in dataclasses.fields(whole):
        into, given = getattr(whole, field.name), getattr(part, field.name)
        if isinstance(into, np.ndarray):
            into[first : first + len(given)] = given
        else:
            _copied(into, given, first)


def _mapped(parts: Sequence[_Part], change: Callable[[list[npt.NDArray[Any]]], npt.NDArray[Any]]) -> _Part:
    """The same dataclass with each array changed, dataclasses inside it likewise."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(parts[0]):
        each = [getattr(part, field.name) for part in parts]
        values[field.name] = change(each) if isinstance(each[0], np.ndarray) else _mapped(each, change)
    made: _Part = type(parts[0])(**values)
    return made
