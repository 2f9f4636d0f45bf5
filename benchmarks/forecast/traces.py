"""Traces as counts on their own grid."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from models.series import Floats

MINUTE = 60.0
SHORTEST = 12 * 3600.0  # seconds a trace must last to be averaged: in less, one surge is all there is
FEWEST = 3  # points: two that a forecast needs, and one that comes
TRAIN = 86400.0  # seconds of a trace that are not scored, or its first quarter


@dataclasses.dataclass(frozen=True)
class Trace:
    """Requests per step.

    Attributes:
        name: file name without its endings.
        step: seconds.
        counts: shape (n,), NaN where unknown.
        held_out: whether no choice was made on it: every second file of the folder in alphabetical order.
    """

    name: str
    step: float
    counts: Floats
    held_out: bool

    @property
    def long(self) -> bool:
        """Whether it counts in averages."""
        return len(self.counts) * self.step >= SHORTEST

    @property
    def origins(self) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
        """Indices at which forecasts are issued: all, as the service looks at every point at least once."""
        return np.arange(1, len(self.counts))

    @property
    def scored_from(self) -> int:
        """First index whose forecast is scored."""
        return int(min(TRAIN / self.step, len(self.counts) / 4))


def read(folder: Path, tell: Callable[[str], None]) -> list[Trace]:
    """All traces of a folder: request files (`arrival_s`) as requests a minute, others on the grid they come on.

    A file that holds too few points for one forecast and what came of it is left out, and told.
    """
    files = sorted(folder.glob("*.csv.gz")) + sorted(folder.glob("*.csv"))
    found = [_trace(path, held_out=i % 2 == 1) for i, path in enumerate(files)]
    for trace in found:
        if len(trace.counts) < FEWEST:
            tell(f"{trace.name} has {len(trace.counts)} whole steps of {trace.step:g} s: left out, {FEWEST} are needed")
    return [trace for trace in found if len(trace.counts) >= FEWEST]


def _trace(path: Path, *, held_out: bool) -> Trace:
    frame = pd.read_csv(path)
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    if "arrival_s" in frame:
        arrivals = frame["arrival_s"].to_numpy(dtype=np.float64)
        minutes = np.floor((arrivals - arrivals.min(initial=np.inf)) / MINUTE).astype(np.intp)
        # The last minute is cut off by the end of the recording.
        return Trace(name, MINUTE, np.bincount(minutes)[:-1].astype(np.float64), held_out)
    starts = frame["minute"].to_numpy(dtype=np.float64) * MINUTE
    step = float(np.median(np.diff(starts))) if len(starts) > 1 else MINUTE
    places = np.rint((starts - starts[:1]) / step).astype(np.intp)
    values = np.full(int(places.max(initial=-1)) + 1, np.nan)
    values[places] = frame["requests"].to_numpy(dtype=np.float64)
    return Trace(name, step, values, held_out)


def largest_ahead(trace: Trace, steps: int) -> Floats:
    """What came: largest value over the next `steps` points of each point, NaN where more than half is unknown."""
    out = np.full(len(trace.counts), np.nan)
    for i in range(len(out)):
        ahead = trace.counts[i + 1 : i + 1 + steps]
        known = ahead[~np.isnan(ahead)]
        if len(ahead) == steps and len(known) * 2 >= steps:
            out[i] = known.max()
    return out
