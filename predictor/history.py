"""The readings of the past, on a grid and in memory."""

import math
from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import structlog

from models.series import Floats, Series
from models.signals import Known, Reading, Signal

LARGEST = 3e38  # what 32 bits hold
PATIENCE = 300.0  # seconds a clock that was set back is doubted before what lies after it is given up

_log = structlog.get_logger(__name__)


class History:
    """For each target and signal the readings of the last `span` seconds on a grid of `step` seconds.

    A grid point at time t stands for [t, t + step): it is the mean of the readings in it, since a point loaded from a
    source is a sample taken anywhere in it, which a maximum would not be comparable to. A late reading joins the point
    it belongs to. Values are stored as 32-bit floats: a relative error of 6e-8, in 4 bytes a point.
    Holds no clock: a `now` that goes back is not believed at first, see `record`. Not for several threads at once.
    """

    def __init__(self, *, step: float, span: float, carry: float = 0.0) -> None:
        """Makes an empty history.

        Args:
            step: seconds between two points.
            span: seconds that are kept.
            carry: longest gap, in seconds, that is filled with the value before it; a longer one stays unknown.
        """
        if not (math.isfinite(step) and step > 0):
            raise ValueError(f"step is {step!r} s: must be a positive number of seconds")
        if not span >= step:
            raise ValueError(f"span is {span!r} s: must be at least one step, {step!r} s")
        if not carry >= 0:
            raise ValueError(f"carry is {carry!r} s: must not be negative")
        self.step = step
        self.span = span
        self.carry = carry
        self._capacity = math.floor(span / step + 1e-9) + 1
        self._rings: dict[tuple[str, Signal], _Ring] = {}
        self._latest = -math.inf
        self._doubted_since: float | None = None
        self._doubt_told = False

    def record(self, key: str, signal: Signal, reading: Reading, *, now: float) -> None:
        """Takes a reading in; an Unknown leaves a gap.

        A `now` more than a step behind an earlier one is not believed: its readings are ignored. One look that took
        long ends like that, while others went on. Where later ones are behind as well the clock was set back, which is
        logged. If it has not caught up after `PATIENCE` seconds it was wrong before: what was recorded after `now` is
        forgotten and it goes on from there.
        """
        if isinstance(reading, Known) and self._believes(now):
            value = min(max(reading.value, -LARGEST), LARGEST)
            self._ring(key, signal).put(self._cell(reading.at), value)

    def load(self, key: str, signal: Signal, series: Series) -> None:
        """Takes the past of a source in; where there are readings of our own, these stay."""
        known = ~np.isnan(series.values)
        if known.any():
            cells = np.floor(series.times[known] / self.step + 1e-6).astype(np.int64)
            self._ring(key, signal).fill(cells, np.clip(series.values[known], -LARGEST, LARGEST))

    def series(self, key: str, signal: Signal, *, now: float, since: float | None = None) -> Series:
        """The past from the first known point (or `since`, Unix seconds) to `now`; empty when nothing is known.

        Gaps up to `carry` seconds hold the value before them, also at the end; longer ones are NaN.
        """
        last = self._cell(now)
        ring = self._rings.get((key, signal))
        if ring is None or ring.first > last:
            return Series(last * self.step, self.step, np.empty(0))
        first = max(ring.first, last - self._capacity + 1)
        begin = first if since is None else max(first, min(math.ceil(since / self.step - 1e-9), last + 1))
        carried = math.floor(self.carry / self.step + 1e-9)
        early = max(begin - carried, first)  # a gap at the beginning is filled from before it
        values = _filled(ring.between(early, last), carried)[begin - early :]
        return Series(begin * self.step, self.step, values)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forgets all other targets."""
        self._rings = {key: ring for key, ring in self._rings.items() if key[0] in keys}

    def _cell(self, time: float) -> int:
        return math.floor(time / self.step + 1e-6)

    def _ring(self, key: str, signal: Signal) -> "_Ring":
        ring = self._rings.get((key, signal))
        if ring is None:
            ring = self._rings[key, signal] = _Ring(self._capacity)
        return ring

    def _believes(self, now: float) -> bool:
        if now >= self._latest - self.step:
            self._latest = max(now, self._latest)
            self._doubted_since = None
            return True
        if self._doubted_since is None or now < self._doubted_since:
            self._doubted_since, self._doubt_told = now, False
        elif now > self._doubted_since and not self._doubt_told:
            self._doubt_told = True
            _log.warning("clock_set_back", seconds=round(self._latest - now, 1))
        if now - self._doubted_since < PATIENCE:
            return False
        self._rewind(now)
        return True

    def _rewind(self, now: float) -> None:
        _log.warning("clock_believed_again", forgotten_s=round(self._latest - now, 1))
        for ring in self._rings.values():
            ring.forget_after(self._cell(now))
        self._latest = now
        self._doubted_since = None


class _Ring:
    """Cells by number, the newest `capacity` of them."""

    def __init__(self, capacity: int) -> None:
        self._values: npt.NDArray[np.float32] = np.full(capacity, np.nan, dtype=np.float32)
        self._readings = 0  # in the newest cell
        self._empty = True
        self.first = 0
        self.last = -1

    def put(self, cell: int, value: float) -> None:
        """Takes one value into a cell; one from before the span is left out."""
        if not self._empty and cell <= self.last - len(self._values):
            return
        newest = self._empty or cell > self.last
        self._reach(cell)
        at = cell % len(self._values)
        old = self._values[at]
        if np.isnan(old):
            self._values[at] = value
        else:
            weight = self._readings if cell == self.last else 1  # how many an older cell had is forgotten
            self._values[at] = old + (value - old) / (max(weight, 1) + 1)
        if cell == self.last:
            self._readings = 1 if newest else self._readings + 1

    def fill(self, cells: npt.NDArray[np.int64], values: Floats) -> None:
        """Takes means of many values into those cells that have none."""
        newest = int(cells.max()) if self._empty else max(self.last, int(cells.max()))
        kept = cells > newest - len(self._values)
        if not kept.any():
            return
        numbers, inverse, weights = np.unique(cells[kept], return_inverse=True, return_counts=True)
        means = np.bincount(inverse, weights=values[kept]) / weights
        had = self.last
        self._reach(int(numbers[-1]))
        self._reach(int(numbers[0]))
        at = numbers % len(self._values)
        vacant = np.isnan(self._values[at])
        self._values[at[vacant]] = means[vacant]
        if self.last != had:
            self._readings = 1

    def between(self, first: int, last: int) -> Floats:
        """Values of the cells from `first` to `last`, both included; NaN where there are none."""
        values = np.full(last - first + 1, np.nan)
        begin, end = max(first, self.first), min(last, self.last)
        if begin <= end:
            at = np.arange(begin, end + 1) % len(self._values)
            values[begin - first : end - first + 1] = self._values[at]
        return values

    def forget_after(self, cell: int) -> None:
        """Drops the cells after one."""
        if self._empty or self.last <= cell:
            return
        kept = max(cell, self.first - 1)
        self._values[np.arange(kept + 1, self.last + 1) % len(self._values)] = np.nan
        self.last = kept
        self._readings = 1
        self._empty = self.last < self.first

    def _reach(self, cell: int) -> None:
        """Makes room for a cell within the capacity of the newest."""
        if self._empty:
            self.first = self.last = cell
            self._empty = False
        if cell > self.last:
            fresh = np.arange(max(self.last + 1, cell - len(self._values) + 1), cell + 1)
            self._values[fresh % len(self._values)] = np.nan
            self.last = cell
        self.first = max(min(self.first, cell), self.last - len(self._values) + 1)


def _filled(values: Floats, longest: int) -> Floats:
    """Gaps of at most `longest` points filled with the value before them."""
    missing = np.isnan(values)
    if longest == 0 or not missing.any():
        return values
    index = np.arange(len(values))
    known = np.where(missing, -1, index)
    before = np.maximum.accumulate(known)
    after = np.minimum.accumulate(np.where(missing, len(values), index)[::-1])[::-1]
    short = missing & (before >= 0) & (after - before - 1 <= longest)
    return np.where(short, values[before], values)
