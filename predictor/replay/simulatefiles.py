"""Files that `floorcast simulate` serves, as the back-test reads them: a row a request, or a row a step."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from models.fleet import workload
from models.fleet.requests import Requests
from models.race.running import Recording
from models.series import Floats, Series
from predictor.errors import HistoryError
from predictor.replay import columns, simulateload, tracefiles
from predictor.replay.recorded import Note


def read(path: Path, *, hours: float, seed: int, tokens: tuple[float, float]) -> simulateload.Workload:
    """A file in the traces' format, read as the back-test reads it.

    Args:
        path: the file.
        hours: to simulate, the last ones.
        seed: of what is drawn.
        tokens: mean prompt and output of a request where the file does not say.

    Raises:
        ConfigurationError: there is no such file.
        HistoryError: it cannot be used.
    """
    frame, name = tracefiles.table(path), tracefiles.name_of(path)
    if "arrival_s" not in frame:
        return simulateload.recorded(tracefiles.read([path]), name, hours=hours, seed=seed, tokens=tokens)
    notes: list[Note] = []
    try:
        return _of_requests(name, _requests(path, frame, tokens, seed, notes), hours, tuple(notes))
    except ValueError as error:
        raise HistoryError(f"{path}: {error}") from error


def _requests(path: Path, frame: pd.DataFrame, tokens: tuple[float, float], seed: int, notes: list[Note]) -> Requests:
    """Every row as a request, in order of time."""
    times = columns.times_of_every_row(columns.numbers(frame, "arrival_s", path=path), "arrival_s", path=path)
    order = np.argsort(times, kind="stable")
    lengths = []
    for place, (column, usual) in enumerate(zip(("prompt_tokens", "output_tokens"), tokens, strict=True)):
        given = columns.numbers(frame, column, path=path) if column in frame else np.full(len(times), np.nan)
        given = columns.without_negatives(given, f"{path.name}: {column}", notes)
        rng = np.random.default_rng([seed, place])
        lengths.append(_lengths(given, usual, rng, where=f"{path.name}: {column}", notes=notes)[order])
    return Requests(times[order], *lengths)


def _lengths(
    given: Floats, usual: float, rng: np.random.Generator, *, where: str, notes: list[Note]
) -> npt.NDArray[np.int64]:
    """Tokens of every request; those not known are drawn around the mean of the others, or the usual one."""
    unknown = np.isnan(given)
    if unknown.all():
        notes.append(Note(where, simulateload.usual_tokens(usual)))
    elif unknown.any():
        usual = float(given[~unknown].mean())
        what = f"unknown for {int(unknown.sum())} of {len(given)} requests: drawn around {usual:.4g}, the others' mean"
        notes.append(Note(where, what))
    drawn = workload.drawn_lengths(rng, len(given), usual)
    return np.where(unknown, drawn, np.maximum(np.nan_to_num(given, nan=1.0), 1.0)).astype(np.int64)


def _of_requests(name: str, given: Requests, hours: float, notes: tuple[Note, ...]) -> simulateload.Workload:
    given = given.shifted(-float(given.times[0]))
    counts = np.bincount((given.times // simulateload.MINUTE).astype(np.int64)).astype(np.float64)
    start, end = simulateload.checked(simulateload.window(len(counts) * simulateload.MINUTE, hours))
    arrivals = Series(simulateload.MINUTE, simulateload.MINUTE, counts / simulateload.MINUTE)
    return simulateload.Workload(
        name, Recording(given), arrivals, start, end, simulateload.some_of(given, start), notes
    )
