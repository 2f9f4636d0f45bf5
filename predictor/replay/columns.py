"""Columns of CSV files, as text first: what cannot be read is named by file, line and column."""

from pathlib import Path

import numpy as np
import pandas as pd

from models.series import Floats
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay.recorded import Note

HEADER = 1  # lines before the first row


def read(path: Path) -> pd.DataFrame:
    """All cells of a CSV file, gzip or plain, as text; an empty cell is NaN.

    Raises:
        ConfigurationError: there is no such file.
        HistoryError: it is no CSV file, or an empty one.
    """
    if not path.is_file():
        raise ConfigurationError(f"{path}: no such file; name a CSV file, gzipped or not")
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        frame = pd.read_csv(path, dtype=str, compression="gzip" if packed else None, skipinitialspace=True)
    except (OSError, EOFError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise HistoryError(f"{path}: cannot be read as CSV: {error}; give UTF-8 with a header line") from error
    if frame.empty:
        raise HistoryError(f"{path}: has no rows below its header; give a recording with at least two")
    return frame


def numbers(frame: pd.DataFrame, column: str, *, path: Path) -> Floats:
    """A column as numbers, NaN where the cell is empty.

    Raises:
        HistoryError: a cell is no finite number.
    """
    text = frame[column]
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    said_unknown = text.isna() | text.str.strip().str.lower().isin(("nan", "null", "none", ""))
    bad = np.flatnonzero(~np.isfinite(values) & ~said_unknown.to_numpy())
    if len(bad):
        raise wrong_cell(path, int(bad[0]), column, str(text.iloc[bad[0]]), "is no finite number", more=len(bad) - 1)
    return values


def times_of_every_row(values: Floats, column: str, *, path: Path) -> Floats:
    """The same values, refused when one is missing: a row without a time belongs nowhere."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise wrong_cell(path, int(bad[0]), column, "", "is empty, and a row needs a time", more=len(bad) - 1)
    return values


def without_negatives(values: Floats, where: str, notes: list[Note]) -> Floats:
    """Negative values as NaN, with a note: a count or a state below zero is a mark for "not known", not a small one."""
    negative = values < 0
    if negative.any():
        notes.append(Note(where, f"{int(negative.sum())} of {len(values)} rows are negative: taken as unknown"))
    return np.where(negative, np.nan, values)


def wrong_cell(path: Path, row: int, column: str, text: str, why: str, *, more: int = 0) -> HistoryError:
    """The error for one cell, and how many more there are."""
    others = f" (and {more} more)" if more else ""
    line = row + 1 + HEADER
    return HistoryError(
        f"{path}: line {line}, column {column}: {text!r} {why}{others}; correct it, or leave the cell empty"
    )
