"""From rows as they were recorded to series on a grid; every repair is counted and told."""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from models.series import Floats, Series

CLOSE = 1e-6  # of a step: rounding of times written in decimals
LONGEST = 20_000_000  # points a series may have: a year at 1.6 s; more is a wrong unit of time


class GridError(ValueError):
    """The rows make no series; the message says why and what to do."""


@dataclasses.dataclass(slots=True)
class Repairs:
    """What was done to a column, in rows unless said otherwise.

    Attributes:
        rows: read.
        unknown: without a value.
        negative: with a value below zero, which is taken as unknown.
        out_of_order: older than the row before.
        merged: that share a point with another: the point is their mean.
        resets: at which a running total fell.
        points: points of the grid.
        gaps: stretches of unknown points.
        longest_gap: of these, in seconds.
        missing: unknown points.
    """

    rows: int = 0
    unknown: int = 0
    negative: int = 0
    out_of_order: int = 0
    merged: int = 0
    resets: int = 0
    points: int = 0
    gaps: int = 0
    longest_gap: float = 0.0
    missing: int = 0

    def sentences(self) -> Iterator[str]:
        """One for each kind of repair that was needed."""
        if self.unknown:
            yield f"{self.unknown} of {self.rows} rows have no value: unknown, not zero"
        if self.negative:
            yield f"{self.negative} of {self.rows} rows are negative: taken as unknown"
        if self.out_of_order:
            yield f"{self.out_of_order} of {self.rows} rows are older than the row before: sorted"
        if self.merged:
            yield f"{self.merged} of {self.rows} rows share a point of the grid with another: averaged"
        if self.resets:
            yield f"the running total fell {self.resets} times: counted from zero again there"
        if self.gaps:
            share = self.missing / max(self.points, 1)
            yield (
                f"{self.gaps} gaps, {self.missing} of {self.points} points ({share:.1%}), the longest"
                f" {self.longest_gap / 60:g} min: left unknown"
            )


def usual_step(times: Floats) -> float:
    """The distance most rows have, seconds.

    Raises:
        GridError: fewer than two different times.
    """
    apart = np.diff(np.unique(times[np.isfinite(times)]))
    if not len(apart):
        raise GridError("there are fewer than two different times: a history needs at least two")
    return float(np.median(apart))


def on_grid(times: Floats, values: Floats, *, step: float) -> tuple[Series, Repairs]:
    """Mean of the rows in each step; a step without any is NaN.

    Args:
        times: seconds, shape (n,), in any order, all finite.
        values: shape (n,), NaN where unknown.
        step: seconds.

    Raises:
        GridError: no row has a value, or the span holds more points than anybody records.
    """
    repairs = Repairs(rows=len(values), unknown=int(np.isnan(values).sum()))
    repairs.negative = int((values < 0).sum())
    repairs.out_of_order = int((np.diff(times) < 0).sum())
    known = values >= 0
    if not known.any():
        raise GridError("no row has a value")
    cells = np.floor(times / step + CLOSE)
    first, count = cells.min(), int(cells.max() - cells.min()) + 1
    if count > LONGEST:
        raise GridError(
            f"{count} points of {step:g} s from the first time to the last: the unit of the times, or one of"
            " them, is wrong"
        )
    places = (cells - first).astype(np.intp)[known]
    rows = np.bincount(places, minlength=count)
    sums = np.bincount(places, weights=values[known], minlength=count)
    repairs.merged = int(np.maximum(rows - 1, 0).sum())
    on = np.where(rows > 0, sums / np.maximum(rows, 1), np.nan)
    _count_gaps(on, step, repairs)
    return Series(float(first) * step, step, on), repairs


def increments(times: Floats, totals: Floats) -> tuple[Floats, int]:
    """Rate of growth of a running total before each row, and how often it fell.

    After a fall it counts from zero. The first row, and rows after an unknown one, are measured from the last known.
    """
    order = np.argsort(times, kind="stable")
    known = order[~np.isnan(totals[order])]
    rates = np.full(len(totals), np.nan)
    grown, apart = np.diff(totals[known]), np.diff(times[known])
    resets = grown < 0
    grown = np.where(resets, totals[known][1:], grown)
    later = apart > 0
    rates[known[1:][later]] = grown[later] / apart[later]
    return rates, int(resets.sum())


def coarser(series: Series, step: float) -> Series:
    """The same on a coarser grid: means of the known points.

    Raises:
        GridError: `step` is finer than what was recorded, or no multiple of it.
    """
    ratio = step / series.step
    if ratio < 1 - CLOSE or abs(ratio - round(ratio)) > CLOSE:
        raise GridError(
            f"a step of {step:g} s was asked for: the recording has one of {series.step:g} s; use a multiple"
        )
    if round(ratio) == 1:
        return series
    known = ~np.isnan(series.values)
    found, _ = on_grid(series.times[known], series.values[known], step=step)
    return found


def _count_gaps(values: Floats, step: float, repairs: Repairs) -> None:
    unknown = np.isnan(values)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], unknown, [False]]).astype(np.int8)))
    lengths = edges[1::2] - edges[::2]
    repairs.points, repairs.missing, repairs.gaps = len(values), int(unknown.sum()), len(lengths)
    repairs.longest_gap = float(lengths.max(initial=0)) * step if math.isfinite(step) else 0.0
