"""From rows as they were recorded to series on a grid; every repair is counted and told."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from models import regularise
from models.regularise import Grid, Repairs, Rules, Samples
from models.series import CLOSE, Floats, Series

LONGEST = 20_000_000  # points a series may have: a year at 1.6 s; more is a wrong unit of time


class GridError(ValueError):
    """The rows make no series; the message says why and what to do."""


LATEST = 6e10  # seconds from 1970: the year 3871
EXACT = Rules(short_gap=0.0, spike=None)  # counts of a file that holds everything: what lacks in it is not known


@dataclasses.dataclass(frozen=True, slots=True)
class Gaps:
    """Stretches of unknown points: how many, the points in all, and the longest in seconds."""

    count: int
    points: int
    longest: float


def measured(usual_step: float, *, counter: bool = False) -> Rules:
    """How values that a monitoring system took are read.

    A lone sample that stands for minutes may be a surge that lasted them: it is cut down as a spike only where samples
    lie no farther apart than what a short gap is.
    """
    rules = Rules(counter=counter)
    return rules if usual_step <= rules.short_gap else dataclasses.replace(rules, spike=None)


def told(series: Series, repairs: Repairs, rules: Rules) -> Iterator[str]:
    """A sentence for each kind of repair that was needed."""
    of = f"of {repairs.samples} rows"
    if repairs.unknown:
        yield f"{repairs.unknown} {of} have no value: unknown, not zero"
    if repairs.late:
        yield f"{repairs.late} {of} are older than the row before: sorted"
    if repairs.duplicate:
        yield f"{repairs.duplicate} {of} have the time of another: the last counts"
    if repairs.resets:
        yield f"the running total fell {repairs.resets} times: counted from zero again there"
    if repairs.negative:
        yield f"{repairs.negative} {of} are negative: taken as zero, as rates from monitoring dip below it"
    if repairs.spikes:
        yield (
            f"{repairs.spikes} {of} stand alone at more than {rules.spike:g} times their neighbours: cut down to that,"
            " as errors of monitoring; real surges last longer than one sample"
        )
    if repairs.averaged:
        yield f"{repairs.averaged} {of} share a point of the grid with another: averaged"
    if repairs.carried:
        yield (
            f"{repairs.carried} of {len(series)} points lack a row: the value before is carried on for up to"
            f" {rules.short_gap:g} s"
        )
    gaps = _gaps(series)
    if gaps.count:
        yield (
            f"{gaps.count} gaps, {gaps.points} of {len(series)} points ({gaps.points / len(series):.1%}), the longest"
            f" {gaps.longest / 60:g} min: left unknown"
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


def on_grid(times: Floats, values: Floats, *, step: float, rules: Rules = EXACT) -> tuple[Series, Repairs]:
    """Rows by the rules, on the whole multiples of `step` from the first row to the last, with or without a value.

    Args:
        times: seconds, shape (n,), in any order, all finite.
        values: shape (n,), NaN where unknown.
        step: seconds.
        rules: how the rows are read.

    Raises:
        GridError: no row has a value, or the span holds more points than anybody records.
    """
    if np.isnan(values).all():
        raise GridError("no row has a value")
    cells = np.floor(times / step + CLOSE)
    count = int(cells.max() - cells.min()) + 1
    believed(times, count, step)
    grid = Grid(start=float(cells.min()) * step, step=step, points=count)
    return regularise.regular(Samples(times, values), grid, rules)


def believed(times: Floats, count: int, step: float) -> None:
    """Refuses more points than anybody records, and times that no calendar has.

    Raises:
        GridError: there are more, or such times.
    """
    if count > LONGEST:
        raise GridError(
            f"{count} points of {step:g} s from the first time, {times.min():.0f} s, to the last, {times.max():.0f} s:"
            " the unit of the times, or one of them, is wrong"
        )
    if np.abs(times).max() > LATEST:
        raise GridError(f"times from {times.min():.0f} s to {times.max():.0f} s: the unit of the times is wrong")


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


def _gaps(series: Series) -> Gaps:
    unknown = np.isnan(series.values)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], unknown, [False]]).astype(np.int8)))
    lengths = edges[1::2] - edges[::2]
    return Gaps(len(lengths), int(unknown.sum()), float(lengths.max(initial=0)) * series.step)
