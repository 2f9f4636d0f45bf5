"""What a floor would have cost and spared, against what can be done without one; docs/backtest.md explains the rule."""

import dataclasses
import enum
import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from models.capacity import sizing
from models.capacity.profile import Profile
from models.policy import floor
from models.policy.context import Context, FloorSettings, Memory, Supply
from models.policy.planning import Objectives
from models.series import Floats, Series
from models.signals import Signal
from predictor.replay.backtest import Replayed

Counts = npt.NDArray[np.int64]

STABILISATION = 300.0  # seconds for which an HPA follows its highest recommendation, by default
ROUNDING = 1e-9
UNBOUNDED = 1_000_000  # replicas: a cap would hide what the load asks for
FINE = 0.01  # share by which one minimum or headroom costs more than the next smaller, about: far less than matters
HEADROOMS = (*(n / 100 for n in range(1, 100)), *(n / 50 for n in range(50, 100)), *(n / 20 for n in range(40, 101)))


class Kind(enum.StrEnum):
    """A way to have replicas in time."""

    REACTIVE = "reactive"  # an autoscaler on the load of now
    MINIMUM = "minimum"  # the same with a fixed minimum
    HEADROOM = "headroom"  # the same, each replica planned for less
    FLOOR = "floor"  # the same over Floorcast's floor


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One way and what became of it.

    Attributes:
        kind: which way.
        setting: its one number: replicas, share of headroom, probability; 0 for reactive.
        paid: replica-hours, warming ones included.
        missing: replica-hours that the load needed beyond what was ready.
        short: share of time in which replicas were missing.
        met: share of the load that came while enough were ready. All of what comes while one is missing counts as not
            met, since all of it queues.
    """

    kind: Kind
    setting: float
    paid: float
    missing: float
    short: float
    met: float


@dataclasses.dataclass(frozen=True)
class Course:
    """Replicas over time under one way, on the grid of the history.

    Attributes:
        wanted: asked for, and paid.
        ready: served by.
        floor: the floor under it; None without one.
    """

    wanted: Counts
    ready: Counts
    floor: Counts | None = None


@dataclasses.dataclass(frozen=True)
class Economics:
    """All ways on one target at one warm-up.

    Attributes:
        target: whose.
        warm_up: seconds.
        step: seconds between two points.
        hours: scored hours in which the load is known.
        scored_from: first point that counts.
        start: Unix time of the first point, seconds.
        need: replicas the load took, not rounded, shape (points,); NaN where unknown.
        options: every way.
        courses: of the floors by probability, and of reactive alone at 0.
    """

    target: str
    warm_up: float
    step: float
    hours: float
    scored_from: int
    start: float
    need: Floats
    options: tuple[Option, ...]
    courses: Mapping[float, Course]

    def of(self, kind: Kind) -> tuple[Option, ...]:
        """The ways of a kind."""
        return tuple(one for one in self.options if one.kind == kind)

    @property
    def reactive(self) -> Option:
        """Without anything."""
        return self.of(Kind.REACTIVE)[0]


def weigh(signals: Mapping[Signal, Replayed], objectives: Objectives, *, duration: float | None) -> Economics | None:
    """Every way on one target; None where the load says nothing about replicas (no profile for the signals known).

    Args:
        signals: the target's replays at one warm-up.
        objectives: how it is planned for.
        duration: seconds a request takes, where not in the profile.
    """
    loads = _Loads(signals, objectives.profile, duration)
    need = loads.need()
    if need is None:
        return None
    scale = _Scale(loads.step, next(iter(signals.values())).warm_up)
    scored = slice(loads.scored_from, None)
    plain = scale.reactive(need)
    courses = {0.0: scale.course(plain)}
    options = [_option(Kind.REACTIVE, 0.0, courses[0.0], need, loads.step, scored)]
    for least in _minima(float(np.nanmax(need, initial=0.0))):
        course = scale.course(np.maximum(plain, least))
        options.append(_option(Kind.MINIMUM, least, course, need, loads.step, scored))
        if options[-1].missing == 0:
            break
    for share in HEADROOMS:
        course = scale.course(scale.reactive(need * (1 + share)))
        options.append(_option(Kind.HEADROOM, share, course, need, loads.step, scored))
    for probability, numbers in loads.floors(objectives):
        courses[probability] = scale.course(np.maximum(plain, numbers), under=numbers)
        options.append(_option(Kind.FLOOR, probability, courses[probability], need, loads.step, scored))
    known = np.count_nonzero(~np.isnan(need[scored]))
    one = next(iter(signals.values()))
    return Economics(
        target=one.key[0],
        warm_up=one.warm_up,
        step=loads.step,
        hours=known * loads.step / 3600,
        scored_from=loads.scored_from,
        start=loads.start,
        need=need,
        options=tuple(options),
        courses=courses,
    )


def _minima(peak: float) -> Iterator[int]:
    """Fixed minima up to one above the peak: each, and of large ones every hundredth."""
    least, last = 1, int(peak) + 1
    while least < last:
        yield least
        least = max(least + 1, round(least * (1 + FINE)))
    yield last


def per_replica(profile: Profile, signal: Signal, duration: float | None) -> float | None:
    """What one replica carries of a signal, as `sizing.plan` has it; None where the profile does not say."""
    planned = sizing.plan(profile, sizing.Load(**{str(signal): 1.0}, duration=duration))
    if isinstance(planned, sizing.NoPlan):
        return None
    need = planned.binding
    return need.per_replica / need.demand


def _option(kind: Kind, setting: float, course: Course, need: Floats, step: float, scored: slice) -> Option:
    load = need[scored]
    known = ~np.isnan(load)
    missing = np.where(known, np.maximum(load - course.ready[scored], 0.0), 0.0)
    return Option(
        kind=kind,
        setting=setting,
        paid=float(course.wanted[scored][known].sum()) * step / 3600,
        missing=float(missing.sum()) * step / 3600,
        short=int(np.count_nonzero(missing > ROUNDING)) / max(int(np.count_nonzero(known)), 1),
        met=1 - float(load[missing > ROUNDING].sum()) / max(float(np.nansum(load)), ROUNDING),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Scale:
    """How numbers become replicas on a grid."""

    step: float
    warm_up: float

    def reactive(self, need: Floats) -> Counts:
        """What an autoscaler on the load wants: the load's replicas, the most of five minutes; at least one."""
        wanted = np.ceil(_carried(need) - 1e-9).astype(np.int64)
        return _trailing(np.maximum(wanted, 1), round(STABILISATION / self.step), np.maximum)

    def course(self, wanted: Counts, *, under: Counts | None = None) -> Course:
        """A replica is ready once it has been wanted for the whole warm-up; what is no longer wanted goes at once.

        A number that follows the load of a step exists at the step's end: it serves from the next one on, at best.
        """
        delay = math.ceil(self.warm_up / self.step - 1e-9)
        held = _trailing(wanted, delay, np.minimum)
        return Course(wanted, np.concatenate([held[:1], held[:-1]]), under)


def _trailing(values: Counts, back: int, of: np.ufunc) -> Counts:
    """Extreme of each value and the `back` before it."""
    padded = np.concatenate([np.repeat(values[:1], back), values])
    return np.asarray(of.reduce(np.lib.stride_tricks.sliding_window_view(padded, back + 1), axis=1))


def _carried(values: Floats) -> Floats:
    """Unknown points hold the value before them, at the beginning the first known one: an autoscaler holds as well."""
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros_like(values)
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return np.asarray(values[np.where(last >= 0, last, np.argmax(known))])


class _Loads:
    """A target's signals on the one grid that all of them cover."""

    def __init__(self, signals: Mapping[Signal, Replayed], profile: Profile, duration: float | None) -> None:
        self._signals = signals
        self._profile = profile
        self._duration = profile.duration or duration
        first = next(iter(signals.values())).series
        self.step = first.step
        self.start = max(one.series.start for one in signals.values())
        self.points = round((min(one.series.end for one in signals.values()) - self.start) / self.step) + 1
        latest = max(float(one.times[min(one.scored_from, len(one.times) - 1)]) for one in signals.values())
        self.scored_from = min(max(round((latest - self.start) / self.step), 0), self.points)

    def need(self) -> Floats | None:
        """Replicas the load takes at each point, the largest of its kinds; None when no kind can be told."""
        rows = []
        for signal, one in self._signals.items():
            each = per_replica(self._profile, signal, self._duration)
            if each:
                rows.append(self._cut(one.series) / each)
        if not rows or self.points < 1:
            return None
        return np.asarray(np.fmax.reduce(rows))

    def _cut(self, series: Series) -> Floats:
        begin = round((self.start - series.start) / self.step)
        return series.values[begin : begin + self.points]

    def floors(self, objectives: Objectives) -> Iterator[tuple[float, Counts]]:
        """For each probability above the median the floor at each point, by the service's own rules."""
        probabilities = next(iter(self._signals.values())).probabilities
        lower = _at_least(probabilities, objectives.lower_quantile)
        for place, probability in enumerate(probabilities):
            if probability > 0.5:  # noqa: PLR2004  (the median is there to be plotted)
                yield probability, self._floor(place, min(place, lower), objectives.floor)

    def _floor(self, raising: int, lowering: int, settings: FloorSettings) -> Counts:
        first = next(iter(self._signals.values()))
        every = first.every * self.step
        # The service decides more often than origins are set: it would have taken several steps down in between.
        settings = (
            dataclasses.replace(
                settings, step_down=max(round(every / max(settings.step_period, 1e-9)), 1) * settings.step_down
            )
            if settings.step_period
            else settings
        )
        numbers = np.ones(self.points, dtype=np.int64)
        memory, standing, done = Memory(needed_at=float("-inf")), 1, 0
        for now, rows in self._moments():
            context = Context(
                now=now,
                standing=standing,
                base=1,
                maximum=UNBOUNDED,
                raising=self._plan({s: self._signals[s].room[row, raising] for s, row in rows.items()}),
                lowering=self._plan({s: self._signals[s].longer[row, lowering] for s, row in rows.items()}),
                reacting=self._plan(
                    {s: self._signals[s].series.values[self._signals[s].origins[row]] for s, row in rows.items()}
                ),
                supply=Supply(ready=standing),
            )
            decision, memory = floor.decide(context, settings, memory)
            place = round((now - self.start) / self.step)
            numbers[done:place] = standing
            standing, done = decision.replicas, place
        numbers[done:] = standing
        return numbers

    def _moments(self) -> Iterator[tuple[float, dict[Signal, int]]]:
        """Times of origins in the common span, with the number of each signal's origin."""
        moments: dict[float, dict[Signal, int]] = {}
        for signal, one in self._signals.items():
            for row, time in enumerate(one.times.tolist()):
                if self.start <= time:
                    moments.setdefault(time, {})[signal] = row
        yield from ((time, moments[time]) for time in sorted(moments) if time <= self.start + self.points * self.step)

    def _plan(self, values: Mapping[Signal, float]) -> sizing.Planned:
        known = {str(signal): float(value) for signal, value in values.items() if not np.isnan(value)}
        if not known:
            return sizing.NoPlan("no forecast")
        return sizing.plan(self._profile, sizing.Load(**known, duration=self._duration))


def _at_least(probabilities: Iterable[float], wanted: float) -> int:
    each = list(probabilities)
    return next((i for i, q in enumerate(each) if q >= wanted - 1e-9), len(each) - 1)


def busiest(load: Floats) -> float:
    """The busiest point (p99.9) of a load; one where there is none."""
    return float(np.nanquantile(load, 0.999)) or 1.0


def assumed_profile(*, arrivals: Floats | None = None, in_flight: Floats | None = None) -> Profile:
    """Where nobody said what a replica sustains: the busiest point of each signal takes ten of them."""
    return Profile(
        concurrency=1.0 if in_flight is None else busiest(in_flight) / 10,
        throughput=None if arrivals is None else busiest(arrivals) / 10,
        source="assumed",
    )
