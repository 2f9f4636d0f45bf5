"""Any CSV file, by a mapping of its columns."""

import dataclasses
import datetime as dt
import enum
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from models.series import Floats, Series
from models.signals import Signal
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay import columns, gridding
from predictor.replay.recorded import Key, Note, Recorded

FLOWS = (Signal.ARRIVALS, Signal.TOKENS_IN, Signal.TOKENS_OUT)  # what a unit is needed for; the others are states
ALIASES = {"requests": Signal.ARRIVALS, "duration": Signal.DURATION_MEAN}
TOLD_IN = {Signal.ARRIVALS: "requests", Signal.TOKENS_IN: "tokens", Signal.TOKENS_OUT: "tokens"}
FEW_RESETS, FEW_OF_ROWS = 3, 0.01  # restarts of what counts; a count a row falls at every second one or so
MILLISECONDS_FROM = 1e11  # as seconds the year 5138


class Unit(enum.StrEnum):
    """What a column of requests or tokens says."""

    RATE = "rate"  # per second
    COUNT = "count"  # in the time up to the next row
    TOTAL = "total"  # since some beginning: a counter


@dataclasses.dataclass(frozen=True, slots=True)
class Mapped:
    """Which column is what.

    Attributes:
        time: column of the times.
        target: column of the target's name; empty when all rows are of one.
        signals: column of each signal.
    """

    time: str
    target: str
    signals: Mapping[Signal, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read.

    Attributes:
        mapped: which column is what.
        unit: what requests and tokens are given in.
        zone: of times that do not say theirs.
        step: seconds between two points; None for the usual distance of the rows.
    """

    mapped: Mapped
    unit: Unit = Unit.RATE
    zone: dt.tzinfo = dt.UTC
    step: float | None = None


def mapped(text: str) -> Mapped:
    """Reads "time=ts,requests=rps,in_flight=running".

    Raises:
        ConfigurationError: a part cannot be used.
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    given = {role.strip(): column.strip() for role, _, column in pairs}
    roles = ["time", "target", *ALIASES, *Signal]
    for role, column in given.items():
        if role not in roles or not column:
            known = ", ".join(roles)
            raise ConfigurationError(f"--columns: {role}={column}: write role=column; the roles are {known}")
    signals = {
        ALIASES.get(role) or Signal(role): name for role, name in given.items() if role not in ("time", "target")
    }
    if "time" not in given or not signals:
        raise ConfigurationError(f"--columns: {text!r} needs time=COLUMN and a signal, as in time=ts,requests=rps")
    return Mapped(given["time"], given.get("target", ""), signals)


def read(path: Path, reading: Reading) -> Recorded:
    """The file's series, with Unix times.

    Raises:
        ConfigurationError: there is no such file, or it has no such column.
        HistoryError: a cell cannot be read, or there is nothing in the columns.
    """
    frame = columns.read(path)
    wanted = [reading.mapped.time, *reading.mapped.signals.values()]
    wanted += [reading.mapped.target] if reading.mapped.target else []
    for column in wanted:
        if column not in frame:
            have = ", ".join(map(str, frame.columns))
            raise ConfigurationError(f"--columns: {path} has no column {column!r}; it has {have}")
    notes: list[Note] = []
    times = _times(frame, path, reading, notes)
    if reading.unit is Unit.RATE:
        notes += _whole_rates(frame, path, reading.mapped)
    series: dict[Key, Series] = {}
    for target, rows in _targets(frame, path, reading):
        kept = rows & np.isfinite(times)
        try:
            for signal, one in _signals(frame, path, reading, kept=kept, times=times, notes=notes):
                series[target, signal] = one
        except gridding.GridError as error:
            raise HistoryError(f"{path}: {target}: {error}") from error
    return Recorded(series, tuple(notes))


def _targets(frame: pd.DataFrame, path: Path, reading: Reading) -> Iterator[tuple[str, np.ndarray]]:
    column = reading.mapped.target
    if not column:
        yield path.name.removesuffix(".gz").removesuffix(".csv"), np.ones(len(frame), dtype=bool)
        return
    names = frame[column]
    empty = np.flatnonzero(names.isna().to_numpy())
    if len(empty):
        raise columns.wrong_cell(path, int(empty[0]), column, "", "names no target", more=len(empty) - 1)
    for name in sorted(names.unique()):
        yield str(name), (names == name).to_numpy()


def _signals(
    frame: pd.DataFrame, path: Path, reading: Reading, *, kept: np.ndarray, times: Floats, notes: list[Note]
) -> Iterator[tuple[Signal, Series]]:
    mine = times[kept]
    usual = gridding.usual_step(mine)
    for signal, column in reading.mapped.signals.items():
        where = f"{path.name}: {column}"
        unit = reading.unit if signal in FLOWS else Unit.RATE
        values = columns.numbers(frame, column, path=path)[kept]
        if signal not in FLOWS or unit is Unit.COUNT:
            values = columns.without_negatives(values, where, notes)
        rules = gridding.EXACT if unit is Unit.COUNT else gridding.measured(usual, counter=unit is Unit.TOTAL)
        try:
            series, repairs = gridding.on_grid(
                mine, values / usual if unit is Unit.COUNT else values, step=reading.step or usual, rules=rules
            )
        except gridding.GridError as error:
            raise gridding.GridError(f"column {column}: {error}") from error
        notes.extend(Note(where, told) for told in gridding.told(series, repairs, rules))
        if repairs.resets > max(FEW_RESETS, FEW_OF_ROWS * repairs.samples):
            what = (
                f"fell {repairs.resets} times in {repairs.samples} rows: is it a count a row? --unit count reads it so"
            )
            notes.append(Note(where, what, doubtful=True))
        yield signal, series


def _whole_rates(frame: pd.DataFrame, path: Path, mapping: Mapped) -> Iterator[Note]:
    """Asks whether columns of whole numbers, which a rate seldom has, are counts."""
    for signal in FLOWS:
        column = mapping.signals.get(signal)
        if column is None:
            continue
        values = columns.numbers(frame, column, path=path)
        values = values[~np.isnan(values)]
        if (values == np.rint(values)).all() and (values > 0).any():
            told = TOLD_IN[signal]
            what = f"all whole numbers, read as {told} a second; --unit count reads them as {told} a row"
            yield Note(f"{path.name}: {column}", what, doubtful=True)


def _times(frame: pd.DataFrame, path: Path, reading: Reading, notes: list[Note]) -> Floats:
    """Unix times; NaN for a local time that does not say which of two it is, or that never was."""
    column = reading.mapped.time
    text = frame[column]
    as_numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(as_numbers).all():
        return as_numbers / 1000 if np.median(as_numbers) > MILLISECONDS_FROM else as_numbers
    zoned = text.str.contains(r"(?:Z|[+-]\d\d:?\d\d)$", na=False)
    stamps = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=bool(zoned.any()))
    bad = np.flatnonzero(stamps.isna().to_numpy())
    if len(bad):
        why = "is no time: write 2026-03-01T08:00:00Z, or Unix seconds"
        raise columns.wrong_cell(path, int(bad[0]), column, str(text.iloc[bad[0]]), why, more=len(bad) - 1)
    if zoned.any() and not zoned.all():
        row = int(np.flatnonzero(~zoned.to_numpy())[0])
        raise columns.wrong_cell(path, row, column, str(text.iloc[row]), "has no time zone while others have one")
    if not zoned.any():
        stamps = stamps.dt.tz_localize(reading.zone, ambiguous="NaT", nonexistent="NaT")
    lost = int(stamps.isna().sum())
    if lost:
        what = f"{lost} rows lie in an hour that the clocks skip or repeat: left out; write times with their offset"
        notes.append(Note(f"{path.name}: {column}", what))
    epoch = pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray((stamps - epoch) / pd.Timedelta(seconds=1), dtype=np.float64)
