"""What the pods of one target did since they are watched: counters that go on through restarts and changes of pods."""

import collections
import dataclasses
import math

import numpy as np

from models.series import Floats
from predictor.signals import layout

REMEMBERED = 86400.0  # seconds for which a pod that is not listed may come back: one that fails its probes is not Ready
JITTER = 5.0  # seconds a look may lie behind the one before: two loops take the time and then wait for their turn


@dataclasses.dataclass(frozen=True, slots=True)
class Sheet:
    """A page of one pod, read."""

    pod: str
    layout: layout.Layout
    values: Floats


@dataclasses.dataclass(frozen=True, slots=True)
class Levels:
    """Gauges of one page by part: sum and number of its series."""

    sums: Floats
    counts: Floats


@dataclasses.dataclass(frozen=True, slots=True)
class Increase:
    """What was added to each place in a stretch of time, shape (plan.size,), and its length in seconds."""

    amounts: Floats
    seconds: float


@dataclasses.dataclass(slots=True)
class _Pod:
    sheet: Sheet
    levels: Levels
    read_at: float
    listed_at: float


class Tally:
    """Running totals of one target.

    A counter that fell was reset: it counts from zero. A pod that was never listed before is new: its counters count
    from zero too. A pod that went away takes nothing back, and goes on from its last page when it comes back: as a new
    one, all it has ever served would have come at once. What a pod did while its page was not read is spread evenly
    over that time: hours of it are no burst of one look. A pod listed all along whose page shows up late has unknown
    beginnings: it counts from its first page.
    """

    def __init__(self, plan: layout.Plan) -> None:
        self._plan = plan
        self._totals = np.zeros(plan.size)
        self._pods: dict[str, _Pod] = {}
        self._listed: frozenset[str] | None = None
        self._marks: collections.deque[tuple[float, Floats]] = collections.deque()

    def add(self, sheets: list[Sheet], *, listed: frozenset[str], now: float, keep: float) -> list[Levels]:
        """Adds one look at the pods.

        Args:
            sheets: the pages that could be read.
            listed: all pods that should have had one.
            now: Unix time, seconds; one far behind the last starts rates afresh.
            keep: seconds for which looks are remembered.

        Returns:
            Gauges of each page.
        """
        if self._marks and now < self._marks[-1][0] - JITTER:
            self._marks.clear()
        if self._marks:
            now = max(now, self._marks[-1][0])  # two loops looked at nearly the same time
        levels = [self._levels(sheet) for sheet in sheets]
        for sheet, level in zip(sheets, levels, strict=True):
            self._absorb(sheet, level, now=now)
        for pod in listed & self._pods.keys():
            self._pods[pod].listed_at = now
        for gone in [pod for pod, kept in self._pods.items() if now - kept.listed_at > REMEMBERED]:
            del self._pods[gone]
        self._listed = listed
        if self._marks and self._marks[-1][0] == now:
            self._marks.pop()
        self._marks.append((now, self._totals))
        while len(self._marks) > 2 and self._marks[1][0] <= now - keep:  # noqa: PLR2004  (one before, one after)
            self._marks.popleft()
        return levels

    def increase(self, window: float) -> Increase | None:
        """What was added in the last `window` seconds, or in what is remembered of them; None after a first look."""
        if len(self._marks) < 2:  # noqa: PLR2004  (an increase lies between two)
            return None
        now, totals = self._marks[-1]
        time, before = self._marks[0]
        for mark in self._marks:
            if mark[0] > now - window + 1e-6:
                break
            time, before = mark
        amounts = totals.copy()
        amounts[: len(before)] -= before
        return Increase(np.pad(amounts, (0, self._plan.size - len(amounts))), now - time)

    def _levels(self, sheet: Sheet) -> Levels:
        parts, count = sheet.layout.parts, self._plan.part_count
        sums = np.bincount(parts, weights=sheet.values[sheet.layout.levels], minlength=count).astype(np.float64)
        return Levels(sums, np.bincount(parts, minlength=count).astype(np.float64))

    def _absorb(self, sheet: Sheet, levels: Levels, *, now: float) -> None:
        before = self._pods.get(sheet.pod)
        known = self._listed is not None and sheet.pod in self._listed
        if before is not None:
            grown, is_reset = self._grown(sheet, levels, _past_values(before.sheet, sheet.layout), before.levels)
            # One that restarted and was not Ready at the last look has served nothing before it.
            self._add(grown, since=now if is_reset and not known else before.read_at, now=now)
        elif self._listed is not None and not known:
            nothing = Levels(np.zeros_like(levels.sums), levels.counts)
            grown, _ = self._grown(sheet, levels, np.zeros(len(sheet.values)), nothing)
            self._add(grown, since=now, now=now)
        self._pods[sheet.pod] = _Pod(sheet, levels, now, now)

    def _grown(self, sheet: Sheet, levels: Levels, past: Floats, past_levels: Levels) -> tuple[Floats, bool]:
        """What a page adds to each place, shape (plan.size,), and whether its counters were reset."""
        flows = sheet.layout.flows
        present = sheet.values[flows]
        grown = present - past[flows]
        reset = grown < 0
        grown = np.where(reset, present, grown)
        is_reset = bool(reset.any())
        moved = levels.sums - (np.zeros_like(levels.sums) if is_reset else past_levels.sums)
        slots = np.concatenate([sheet.layout.slots, self._plan.growth_slots])
        amounts = np.concatenate([grown, moved[self._plan.growing_parts]])
        finite = np.where(np.isfinite(amounts), amounts, 0.0)  # one NaN would stay in the totals for ever
        return np.bincount(slots, weights=finite, minlength=self._plan.size).astype(np.float64), is_reset

    def _add(self, grown: Floats, *, since: float, now: float) -> None:
        """Adds what came evenly since a time, to looks in between as well; ordinarily there are none."""
        self._totals = _plus(self._totals, grown)
        for place in range(len(self._marks) - 1, -1, -1):
            time, totals = self._marks[place]
            if time <= since:
                break
            self._marks[place] = time, _plus(totals, grown * (time - since) / (now - since))


def _plus(totals: Floats, more: Floats) -> Floats:
    """Their sum, where there are more places than before."""
    return (np.pad(totals, (0, len(more) - len(totals))) if len(more) > len(totals) else totals) + more


def _past_values(sheet: Sheet, now: layout.Layout) -> Floats:
    """The pod's values of last time, in the order of now; a series that is new counts from zero."""
    if sheet.layout is now:
        return sheet.values
    known = dict(zip(sheet.layout.series, sheet.values.tolist(), strict=True))
    return np.array([known.get(series, 0.0) for series in now.series])


def quantile(probability: float, bounds: Floats, counts: Floats) -> float:
    """A quantile of what a histogram observed, interpolated within its bucket as PromQL's histogram_quantile does.

    Args:
        probability: 0 to 1.
        bounds: ascending upper bounds of the buckets, the last one infinite; shape (n,).
        counts: observations at or below each bound, shape (n,).

    Returns:
        The quantile, the largest finite bound if it lies above that, NaN without observations.
    """
    counts = np.maximum.accumulate(counts)  # pods with other bounds must not make it fall
    if len(bounds) < 2 or not math.isinf(bounds[-1]) or not counts[-1] > 0:  # noqa: PLR2004  (one finite bound)
        return math.nan
    rank = probability * counts[-1]
    bucket = int(np.searchsorted(counts, rank))
    if bucket >= len(bounds) - 1:
        return float(bounds[-2])
    low = bounds[bucket - 1] if bucket else min(0.0, bounds[0])
    below = counts[bucket - 1] if bucket else 0.0
    return float(low + (bounds[bucket] - low) * (rank - below) / (counts[bucket] - below))
