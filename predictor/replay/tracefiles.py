"""Files in the traces' format: one row a request (`arrival_s`), or one a step (`minute`); each file is a target."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from models.series import Floats, Series
from models.signals import Signal
from predictor.errors import HistoryError
from predictor.replay import columns, gridding
from predictor.replay.recorded import Key, Note, Recorded

MINUTE = 60.0
TOKENS = {"prompt_tokens": Signal.TOKENS_IN, "output_tokens": Signal.TOKENS_OUT}


def read(paths: Sequence[Path], *, step: float | None = None) -> Recorded:
    """All files. Times count from the beginning of each recording.

    Args:
        paths: the files; a file's name without its endings is the target's.
        step: seconds between two points; None for a minute for request files, and what the others come in.

    Raises:
        ConfigurationError: there is no such file.
        HistoryError: a file cannot be used.
    """
    series: dict[Key, Series] = {}
    notes: list[Note] = []
    for path in paths:
        name = name_of(path)
        if any(target == name for target, _ in series):
            raise HistoryError(f"{path}: a file called {name} was given already; rename one of them")
        frame = table(path)
        try:
            found = dict(_series(path, frame, step, notes))
        except gridding.GridError as error:
            raise HistoryError(f"{path}: {error}") from error
        series.update({(name, signal): one for signal, one in found.items()})
    return Recorded(series, tuple(notes), absolute=False)


def name_of(path: Path) -> str:
    """A file's name without its endings."""
    return path.name.removesuffix(".gz").removesuffix(".csv")


def table(path: Path) -> pd.DataFrame:
    """The cells of a file in one of the two formats, as text.

    Raises:
        ConfigurationError: there is no such file.
        HistoryError: it is no CSV file, or one in neither format.
    """
    frame = columns.read(path)
    if "arrival_s" not in frame and not {"minute", "requests"} <= set(frame.columns):
        have = ", ".join(map(str, frame.columns))
        raise HistoryError(
            f"{path}: columns are {have}: needs arrival_s (one row a request) or minute and requests (one a step);"
            " backtest takes any other file as --csv with --columns"
        )
    return frame


def _series(path: Path, frame: pd.DataFrame, step: float | None, notes: list[Note]) -> Iterator[tuple[Signal, Series]]:
    if "arrival_s" in frame:
        return _requests(path, frame, step or MINUTE, notes)
    return _counts(path, frame, step, notes)


def _requests(path: Path, frame: pd.DataFrame, step: float, notes: list[Note]) -> Iterator[tuple[Signal, Series]]:
    """Requests counted into steps; a step without any is zero, since the file holds every request."""
    times = columns.times_of_every_row(columns.numbers(frame, "arrival_s", path=path), "arrival_s", path=path)
    gridding.believed(times, math.ceil((times.max() - times.min()) / step), step)
    cells = np.floor(times / step).astype(np.int64)
    first, count = int(cells.min()), int(cells.max() - cells.min())
    if count < 1:
        raise gridding.GridError(f"all requests arrive within {step:g} s: a history needs at least two steps")
    unsorted = int((np.diff(times) < 0).sum())
    if unsorted:
        notes.append(Note(f"{path.name}: arrival_s", f"{unsorted} requests are older than the one before: sorted"))
    cut = int((cells == first + count).sum())
    notes.append(
        Note(f"{path.name}: arrival_s", f"the last step is left out, with {cut} requests: the recording ends in it")
    )
    whole = cells < first + count
    places = (cells - first)[whole]

    def summed(weights: Floats | None) -> Series:
        sums = np.bincount(places, weights=weights, minlength=count).astype(np.float64)
        return Series(first * step, step, sums / step)

    yield Signal.ARRIVALS, summed(None)
    for column, signal in TOKENS.items():
        if column in frame:
            tokens = columns.numbers(frame, column, path=path)
            unknown = int(np.isnan(tokens).sum())
            if unknown:
                notes.append(
                    Note(f"{path.name}: {column}", f"unknown for {unknown} requests: so are sums of their steps")
                )
            if unknown < len(tokens):
                yield signal, summed(tokens[whole])


def _counts(path: Path, frame: pd.DataFrame, step: float | None, notes: list[Note]) -> Iterator[tuple[Signal, Series]]:
    minutes = columns.times_of_every_row(columns.numbers(frame, "minute", path=path), "minute", path=path)
    own = gridding.usual_step(minutes * MINUTE)
    for column, signal in {"requests": Signal.ARRIVALS, **TOKENS}.items():
        if column not in frame:
            continue
        where, values = f"{path.name}: {column}", columns.numbers(frame, column, path=path)
        if np.isnan(values).all() and signal is not Signal.ARRIVALS:
            notes.append(Note(where, "empty throughout: unknown"))
            continue
        values = columns.without_negatives(values, where, notes)
        series, repairs = gridding.on_grid(minutes * MINUTE, values / own, step=own)
        notes.extend(Note(where, told) for told in gridding.told(series, repairs, gridding.EXACT))
        yield signal, gridding.coarser(series, step or own)
