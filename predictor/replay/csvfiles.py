"""Any CSV file, by a mapping of its columns."""

import dataclasses
import datetime as dt
import enum
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from models.series import CLOSE, Floats, Series
from models.signals import Signal
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay import columns, gridding
from predictor.replay.recorded import Key, Note, Recorded

FLOWS = (Signal.ARRIVALS, Signal.TOKENS_IN, Signal.TOKENS_OUT)  # what a unit is needed for; the others are states
ALIASES = {"requests": Signal.ARRIVALS, "duration": Signal.DURATION_MEAN}
TOLD_IN = {Signal.ARRIVALS: "requests", Signal.TOKENS_IN: "tokens", Signal.TOKENS_OUT: "tokens"}
FEW_RESETS, FEW_OF_ROWS = 3, 0.01  # restarts of what counts; a count a row falls at every second one or so
UNITS_FROM = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # nano-, micro-, milliseconds: 1e11 s is the year 5138
BEGINNING = 1e8  # seconds: 1973; times before count from something else than 1970

UTC = r"\s*(?:UTC|GMT)$"  # as data bases write it
OFFSET = r"(?:[Zz]|\s*(?:UTC|GMT)|:\d\d(?:[.,]\d+)?\s*[+-]\d\d(?::?\d\d)?)$"  # not the day of a date alone


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
    pairs = [(role.strip(), column.strip()) for role, _, column in (part.partition("=") for part in _parts(text))]
    given = dict(pairs)
    roles = ["time", "target", *ALIASES, *Signal]
    for role, column in pairs:
        if role not in roles or not column:
            known = ", ".join(roles)
            raise ConfigurationError(
                f"--columns: {role}={column}: write role=column; the roles are {known}; a column whose name holds a"
                " comma is given by its number, as in requests=#2"
            )
    signals = {
        ALIASES.get(role) or Signal(role): name for role, name in given.items() if role not in ("time", "target")
    }
    if len(signals) + ("time" in given) + ("target" in given) < len(pairs):
        raise ConfigurationError(
            f"--columns: {text!r} gives a role twice, as requests and arrivals are one; give each once"
        )
    if "time" not in given or not signals:
        raise ConfigurationError(f"--columns: {text!r} needs time=COLUMN and a signal, as in time=ts,requests=rps")
    return Mapped(given["time"], given.get("target", ""), signals)


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]


def read(path: Path, reading: Reading) -> Recorded:
    """The file's series, with Unix times.

    Raises:
        ConfigurationError: there is no such file, or it has no such column.
        HistoryError: a cell cannot be read, or there is nothing in the columns.
    """
    frame = columns.read(path)
    reading = dataclasses.replace(reading, mapped=_found(reading.mapped, frame, path))
    notes: list[Note] = []
    times = _times(frame, path, reading, notes)
    if reading.unit is Unit.RATE:
        notes += _whole_rates(frame, path, reading.mapped)
    numbers = {signal: columns.numbers(frame, column, path=path) for signal, column in reading.mapped.signals.items()}
    series: dict[Key, Series] = {}
    unusable: list[Note] = []
    for target, rows in _targets(frame, path, reading):
        kept = rows & np.isfinite(times)
        mine = {signal: values[kept] for signal, values in numbers.items()}
        try:
            for signal, one in _signals(mine, path, reading, times=times[kept], notes=notes):
                series[target, signal] = one
        except gridding.GridError as error:
            series = {key: one for key, one in series.items() if key[0] != target}
            unusable.append(Note(target, f"left out: {error}", doubtful=True))
    if not series:
        raise HistoryError([f"{path}: {note.where}: {note.what.removeprefix('left out: ')}" for note in unusable])
    return Recorded(series, (*notes, *unusable))


def _found(mapping: Mapped, frame: pd.DataFrame, path: Path) -> Mapped:
    """The mapping with columns that were given by number by their names."""

    def named(column: str) -> str:
        if column in frame:
            return column
        number = column.removeprefix("#")
        if column.startswith("#") and number.isdecimal() and 1 <= int(number) <= len(frame.columns):
            return str(frame.columns[int(number) - 1])
        have = ", ".join(map(str, frame.columns))
        raise ConfigurationError(f"--columns: {path} has no column {column!r}; it has {have}")

    return Mapped(
        named(mapping.time),
        named(mapping.target) if mapping.target else "",
        {signal: named(column) for signal, column in mapping.signals.items()},
    )


def _targets(frame: pd.DataFrame, path: Path, reading: Reading) -> Iterator[tuple[str, np.ndarray]]:
    column = reading.mapped.target
    if not column:
        yield path.name.removesuffix(".gz").removesuffix(".csv"), np.ones(len(frame), dtype=bool)
        return
    names = frame[column].str.strip()
    empty = np.flatnonzero((names == "").to_numpy())
    if len(empty):
        raise columns.wrong_cell(
            path, int(empty[0]), column, "", "names no target", more=len(empty) - 1, remedy=columns.DELETED
        )
    places, known = pd.factorize(names, sort=True)
    for place, name in enumerate(known):
        yield str(name), places == place


def _signals(
    numbers: Mapping[Signal, Floats], path: Path, reading: Reading, *, times: Floats, notes: list[Note]
) -> Iterator[tuple[Signal, Series]]:
    """The series of one target, of its numbers at its times."""
    usual = gridding.usual_step(times)
    for signal, column in reading.mapped.signals.items():
        where = f"{path.name}: {column}"
        unit = reading.unit if signal in FLOWS else Unit.RATE
        values = numbers[signal]
        if np.isnan(values).all() and signal is not Signal.ARRIVALS:
            notes.append(Note(where, "empty throughout: unknown"))
            continue
        if signal not in FLOWS or unit is Unit.COUNT:
            values = columns.without_negatives(values, where, notes)
        rules = gridding.EXACT if unit is Unit.COUNT else gridding.measured(usual, counter=unit is Unit.TOTAL)
        step = reading.step or usual
        try:
            if unit is Unit.COUNT and step < usual * (1 - CLOSE):
                raise gridding.GridError(  # noqa: TRY301  (it gets the column's name below)
                    f"a step of {step:g} s was asked for: there is a count for every {usual:g} s only; use as many"
                )
            series, repairs = gridding.on_grid(
                times, values / usual if unit is Unit.COUNT else values, step=step, rules=rules
            )
        except gridding.GridError as error:
            raise gridding.GridError(f"column {column}: {error}") from error
        notes.extend(Note(where, told) for told in gridding.told(series, repairs, rules))
        if repairs.resets > max(FEW_RESETS, FEW_OF_ROWS * repairs.samples):
            other = "count a row? --unit count" if _whole(values) else "rate? --unit rate"
            what = f"fell {repairs.resets} times in {repairs.samples} rows: is it a {other} reads it so"
            notes.append(Note(where, what, doubtful=True))
        yield signal, series


def _whole_rates(frame: pd.DataFrame, path: Path, mapping: Mapped) -> Iterator[Note]:
    """Asks whether columns of whole numbers, which a rate seldom has, are counts."""
    for signal in FLOWS:
        column = mapping.signals.get(signal)
        if column is None:
            continue
        values = columns.numbers(frame, column, path=path)
        if _whole(values) and (values > 0).any():
            told = TOLD_IN[signal]
            what = f"all whole numbers, read as {told} a second; --unit count reads them as {told} a row"
            yield Note(f"{path.name}: {column}", what, doubtful=True)


def _whole(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return bool((known == np.rint(known)).all())


def _times(frame: pd.DataFrame, path: Path, reading: Reading, notes: list[Note]) -> Floats:
    """Unix times; NaN for a local time that does not say which of two it is, or that never was."""
    column = reading.mapped.time
    text = frame[column].str.strip()
    as_numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    numeric = np.isfinite(as_numbers)
    if np.count_nonzero(numeric) > len(text) / 2:  # the others are what is wrong then
        _refuse(path, column, text, ~numeric, "is no number, as the times of other rows are")
        return _seconds(as_numbers, f"{path.name}: {column}", notes)
    zoned = text.str.contains(OFFSET, na=False).to_numpy(dtype=np.bool_)
    written = text.str.replace(UTC, "Z", regex=True)
    stamps = pd.to_datetime(written, format="ISO8601", errors="coerce", utc=bool(zoned.any()))
    wrong = stamps.isna().to_numpy(dtype=np.bool_)
    _refuse(path, column, text, wrong, "is no time: write 2026-03-01T08:00:00Z, or Unix seconds")
    if zoned.any():
        _refuse(path, column, text, ~zoned, "has no time zone while others have one")
    else:
        stamps = stamps.dt.tz_localize(reading.zone, ambiguous="NaT", nonexistent="NaT")
    lost = int(stamps.isna().sum())
    if lost:
        what = f"{lost} rows lie in an hour that the clocks skip or repeat: left out; write times with their offset"
        notes.append(Note(f"{path.name}: {column}", what, doubtful=True))
    epoch = pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray((stamps - epoch) / pd.Timedelta(seconds=1), dtype=np.float64)


def _seconds(times: Floats, where: str, notes: list[Note]) -> Floats:
    """Unix times of numbers whose unit their size says."""
    usual = float(np.median(times))
    seconds = times / next((unit for least, unit in UNITS_FROM if usual > least), 1.0)
    if np.max(np.abs(seconds)) < BEGINNING:
        first = dt.datetime.fromtimestamp(float(np.min(seconds)), tz=dt.UTC)
        what = f"read as Unix seconds, the first being {first:%Y-%m-%d %H:%M:%S} UTC; are they seconds?"
        notes.append(Note(where, what, doubtful=True))
    return seconds


def _refuse(path: Path, column: str, text: pd.Series, wrong: npt.NDArray[np.bool_], why: str) -> None:
    """Raises for the first wrong row, if there is any."""
    rows = np.flatnonzero(wrong)
    if len(rows):
        cell = str(text.iloc[rows[0]])
        raise columns.wrong_cell(path, int(rows[0]), column, cell, why, more=len(rows) - 1, remedy=columns.DELETED)
