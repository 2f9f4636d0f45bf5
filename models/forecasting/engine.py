"""Forecasts of many series at once: level plus quantile of past scores, on the square-root scale."""

import dataclasses
import functools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from models.forecasting import issuing, learning, levels
from models.forecasting.forecast import Forecast, NotEnoughHistory, Outlook
from models.forecasting.lanes import CHUNK, HEARD, Lanes, Plan, joined
from models.forecasting.settings import MEMORY, ForecastSettings
from models.series import Floats, Series

NEED = 2  # points: one says nothing about how much the next may differ
BATCH = 128  # lanes replayed at a time: a replay needs an eighth of a megabyte a lane while it runs

Lane: TypeAlias = tuple[Hashable, int]  # key and horizon in grid steps
Wanted: TypeAlias = Mapping[Hashable, list[tuple[int, float]]]  # of each key: horizons in grid steps, and as asked


@dataclasses.dataclass(slots=True)
class Group:
    """Lanes that have taken in the same grid points.

    Attributes:
        end: grid index of the last one.
        rows: lane -> its place in `lanes`.
        lanes: what they remember.
    """

    end: int
    rows: dict[Lane, int]
    lanes: Lanes


class Forecaster:
    """Quantiles of the largest value within a horizon, for many series at once.

    What it returns depends on the histories given and on nothing else: no clock, no earlier calls, no names (a key only
    says which history goes on from which). What it keeps from one call to the next is what it would learn from the
    histories again: a fresh one agrees with one that followed tick by tick exactly while the history is shorter than
    `learning.settling` origins, two days or more. While it is shorter than eight days they differ by what the adaptive
    correction still remembers from before, faded to 5e-7. What lies further back than that weighs in the regressions
    of one that followed, and cannot be learned again: up to 1/256 of all where origins are two minutes apart, 1/9 at
    five, most of it on a grid of half hours. A point once taken in is not read again for scores: when it is corrected
    later, only the level of now follows. A past that reaches back further than before is learned anew.
    """

    def __init__(self, settings: ForecastSettings | None = None) -> None:
        self.settings = settings or ForecastSettings()
        self._groups: dict[tuple[float, int], list[Group]] = {}

    def update(
        self,
        histories: Mapping[Hashable, Series],
        *,
        horizons: Mapping[Hashable, tuple[float, ...]],
    ) -> dict[Hashable, tuple[Outlook, ...]]:
        """Forecast every series over each of its horizons.

        Args:
            histories: the whole known history of each key (eight days of it are used); they may start and end at
                different times, but each at a whole multiple of its step.
            horizons: for each key of `histories`, how far ahead, seconds. Less than a step counts as one step.

        Returns:
            for each key, one outlook for each of its horizons, in their order.

        Raises:
            ValueError: a horizon is not a positive number of seconds.
        """
        outlooks: dict[Hashable, tuple[Outlook, ...]] = {}
        ready: dict[tuple[float, int], list[Hashable]] = defaultdict(list)
        for key, history in histories.items():
            have = NEED if _surely_known(history) else _remembered(history)
            if have < NEED:
                outlooks[key] = tuple(NotEnoughHistory(have=have, need=NEED) for _ in horizons[key])
            else:
                ready[history.step, round(history.end / history.step)].append(key)
        known, self._groups = self._groups, {}
        for (step, end), keys in ready.items():
            wanted = {key: [(grid_steps(horizon, step), horizon) for horizon in horizons[key]] for key in keys}
            tick = Tick.of(Plan.of(self.settings, step), end, histories, wanted)
            outlooks.update(self._tick(tick, wanted, known))
        return {key: outlooks[key] for key in histories}

    def _tick(
        self,
        tick: "Tick",
        wanted: Wanted,
        known: Mapping[tuple[float, int], list[Group]],
    ) -> dict[Hashable, tuple[Outlook, ...]]:
        """Forecast the series that end at one grid point."""
        groups: dict[int, dict[Lane, float]] = defaultdict(dict)
        for key, asked in wanted.items():
            for steps, horizon in asked:
                groups[tick.delay(steps)].setdefault((key, steps), horizon)
        window = tick.window()
        found: dict[Lane, Forecast] = {}
        for delay, lanes in groups.items():
            group = tick.caught_up(lanes, known.get((tick.plan.step, delay), []), delay)
            self._groups.setdefault((tick.plan.step, delay), []).append(group)
            found.update(tick.forecasts(group, window, lanes))
        return {
            key: tuple(
                dataclasses.replace(forecast, horizon=horizon) if forecast.horizon != horizon else forecast
                for steps, horizon in asked
                for forecast in (found[key, steps],)
            )
            for key, asked in wanted.items()
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Tick:
    """All series that end at a grid point.

    Attributes:
        plan: of their grid.
        end: index of that grid point.
        histories: whole, by key.
        places: key -> its row in `recent`.
        recent: the last points of each series, cut out once for all that looks at them; NaN where a history is
            shorter.
    """

    plan: Plan
    end: int
    histories: Mapping[Hashable, Series]
    places: Mapping[Hashable, int]
    recent: Floats

    @classmethod
    def of(cls, plan: Plan, end: int, histories: Mapping[Hashable, Series], wanted: Wanted) -> "Tick":
        """Tick of the keys in `wanted`."""
        longest = max((steps for asked in wanted.values() for steps, _ in asked), default=1)
        # As much as a service that missed some ticks needs to go on.
        count = max(plan.settings.window_steps(plan.step), longest + 4 * plan.every + HEARD)
        recent = _last([histories[key] for key in wanted], count)
        return cls(plan, end, histories, {key: row for row, key in enumerate(wanted)}, recent)

    def delay(self, steps: int) -> int:
        """Origins for which a lane keeps its forecasts; in sixteens, so that lanes with like horizons stay together."""
        return int((-(-steps // self.plan.every) + 1 + 15) // 16) * 16

    def window(self) -> issuing.Window:
        """The level window of each series, and its level now."""
        count = self.plan.settings.window_steps(self.plan.step)
        values = self.recent[:, -count:]
        whole = values.min(axis=1) >= 0  # NaN is not
        rows = [
            values[row] if is_whole else _clean(self._known(key, count))
            for (key, row), is_whole in zip(self.places.items(), whole.tolist(), strict=True)
        ]
        return issuing.Window.of(self.end, self.recent, levels.present_levels(rows), count=count)

    def _known(self, key: Hashable, count: int) -> Floats:
        """The last `count` points, or as many as there are, from the last known one back where all are unknown."""
        values = self.histories[key].values
        tail = values[-count:]
        return tail if len(tail) == len(values) or not np.isnan(tail).all() else _last_known(values)

    def block(self, lanes: Iterable[Lane], count: int) -> Floats:
        """The last `count` points of each lane, NaN where a history is shorter; shape (lanes, count)."""
        if count <= self.recent.shape[1]:
            return self.recent[[self.places[key] for key, _ in lanes], -count:]
        return _last([self.histories[key] for key, _ in lanes], count)

    def caught_up(self, wanted: Mapping[Lane, float], known: Sequence[Group], delay: int) -> Group:
        """All wanted lanes, those of `known` carried on to now, the others replayed from their history."""
        parts: list[tuple[list[Lane], Lanes]] = []
        left = set(wanted)
        for group in known:
            mine = self._followed(group, left)
            if mine:
                whole = mine == list(group.rows)
                lanes = group.lanes if whole else group.lanes.taken([group.rows[lane] for lane in mine])
                self._advance(mine, lanes, group.end)
                parts.append((mine, lanes))
                left.difference_update(mine)
        fresh = [lane for lane in wanted if lane in left]
        if fresh:
            parts.append((fresh, self._replayed(fresh, delay)))
        order = [lane for part, _ in parts for lane in part]
        return Group(self.end, {lane: i for i, lane in enumerate(order)}, joined([lanes for _, lanes in parts]))

    def _replayed(self, fresh: Sequence[Lane], delay: int) -> Lanes:
        """Lanes learned from their whole history, some at a time."""
        whole = self._nothing_known(fresh, delay)
        for first in range(0, len(fresh), BATCH):
            batch = fresh[first : first + BATCH]
            lanes = self._nothing_known(batch, delay)
            longest = max(len(self.histories[key]) for key, _ in batch)
            self._advance(batch, lanes, self.end - min(longest, _memory(self.plan.step)))
            whole.put(first, lanes)
        return whole

    def _nothing_known(self, lanes: Sequence[Lane], delay: int) -> Lanes:
        return Lanes.empty(np.array([steps for _, steps in lanes], dtype=np.intp), delay=delay, plan=self.plan)

    def _followed(self, group: Group, left: set[Lane]) -> list[Lane]:
        """Lanes of a group that are wanted, whose history goes on where they stopped and begins where theirs did."""
        since = self.end - group.end
        if since < 0:
            return []
        mine = [lane for lane in group.rows if lane in left]
        rows = [group.rows[lane] for lane in mine]
        width = group.lanes.heard.shape[1]
        heard = group.lanes.heard[rows]
        now = self.block(mine, since + width)[:, :width]
        both = ~np.isnan(now) & ~np.isnan(heard)
        same = (both & (now == heard)).sum(axis=1) * 2 >= both.sum(axis=1)
        going_on = same & ~self._grown_backwards(mine, group.end + 1 - group.lanes.levels.begun[rows])
        return [lane for lane, goes_on in zip(mine, going_on.tolist(), strict=True) if goes_on]

    def _grown_backwards(self, lanes: Sequence[Lane], firsts: Floats) -> npt.NDArray[np.bool_]:
        """Whether a history now has points from before the first known one of its lane, which is at `firsts`.

        A past that is loaded late, after a few readings of our own, would else not be learned from for a day.
        """
        keys = [key for key, _ in lanes]
        begins = self.end + 1 - np.array([self.histories[key].values.size for key in keys])
        oldest = np.maximum(begins, self.end + 1 - _memory(self.plan.step))
        grown = firsts > oldest
        for i in np.flatnonzero(grown):
            before = self.histories[keys[i]].values[oldest[i] - begins[i] : int(firsts[i]) - begins[i]]
            grown[i] = not np.isnan(before).all()
        return np.asarray(grown)

    def _advance(self, rows: Sequence[Lane], lanes: Lanes, done: int) -> None:
        """Take in everything after grid point `done`."""
        settle_from = self.end // self.plan.every - learning.settling(lanes, self.plan)
        pad = learning.margin(lanes, self.plan)
        chunk = CHUNK * self.plan.every
        block = self.block(rows, self.end - done + pad)
        for start in range(0, self.end - done, chunk):
            part = block[:, start : start + chunk + pad]
            learning.advance(lanes, self.plan, part, first=done + 1 + start, settle_from=settle_from)
        if self.end > done:
            lanes.heard = self.block(rows, lanes.heard.shape[1])

    def forecasts(self, group: Group, window: issuing.Window, wanted: Mapping[Lane, float]) -> dict[Lane, Forecast]:
        """One forecast for each lane of a group."""
        rows = np.array([self.places[key] for key, _ in group.rows], dtype=np.intp)
        horizons = [wanted[lane] for lane in group.rows]
        found = issuing.forecasts(
            group.lanes, self.plan, window.of_lanes(rows, longest=int(group.lanes.steps.max())), horizons
        )
        return dict(zip(group.rows, found, strict=True))


@functools.lru_cache(maxsize=1024)  # a fleet has few horizons, and each is asked for at every tick
def grid_steps(horizon: float, step: float) -> int:
    """Grid steps of a horizon, at least one, rounded to four binary digits.

    A measured horizon drifts. Up to sixteen steps each counts; beyond, within 6 % it is the same lane, whose past
    need not be replayed.

    Raises:
        ValueError: the horizon is not a positive number of seconds.
    """
    if not 0 < horizon < math.inf:
        raise ValueError(f"horizon is {horizon!r} s: must be a positive number of seconds")
    steps = max(round(horizon / step), 1)
    unit = 2 ** max(steps.bit_length() - 5, 0)
    return int(round(steps / unit) * unit)


def _memory(step: float) -> int:
    """Points of a grid of `step` seconds that a forecast looks back over."""
    return int(MEMORY / step)


def _remembered(history: Series) -> int:
    """Known points among those that a forecast looks back over."""
    return int(np.count_nonzero(~np.isnan(history.values[max(len(history) - _memory(history.step), 0) :])))


def _surely_known(history: Series) -> bool:
    """Whether the last points alone are enough: a tick need not count eight days."""
    return _memory(history.step) >= HEARD and int(np.count_nonzero(~np.isnan(history.values[-HEARD:]))) >= NEED


def _last(histories: Sequence[Series], count: int) -> Floats:
    """The last `count` points of each history, NaN where it is shorter."""
    out = np.empty((len(histories), count))
    for row, history in zip(out, histories, strict=True):
        tail = history.values[-count:]
        row[: count - len(tail)] = np.nan
        row[count - len(tail) :] = tail
    return out


def _last_known(values: Floats) -> Floats:
    known = np.flatnonzero(~np.isnan(values))
    return values[known[-1] : known[-1] + 1]


def _clean(values: Floats) -> Floats:
    """Gaps filled with the last known value, what lies before the first left out, negatives zero."""
    if not np.isnan(values).any() and values.min() >= 0:
        return values
    known = ~np.isnan(values)
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return np.maximum(values[last[last >= 0]], 0.0)
