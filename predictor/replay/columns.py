"""Columns of CSV files, as text first: what cannot be read is named by file, line and column."""

import gzip
import re
import warnings
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from models.series import Floats
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay.recorded import Note

HEADER = 1  # lines before the first row
SEPARATORS = ",;\t|"  # the first of those that the header line has most of
LEFT_EMPTY = "correct it, or leave the cell empty"
DELETED = "correct it, or delete the row"
LARGEST = 3e38  # what the service stores readings in: 32 bits
UNKNOWN_IN_ANY_CASE = frozenset({"nan", "null", "none"})
UNKNOWN = frozenset(
    {"", "-NaN", "-nan", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA"}
    | {"1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)  # what pandas reads as missing


def read(path: Path) -> pd.DataFrame:
    """All cells of a CSV file, gzip or plain, as text; an empty cell is "".

    Raises:
        ConfigurationError: there is no such file.
        HistoryError: it is no CSV file, or an empty one, or its header line does not name each column.
    """
    if path.is_dir():
        raise ConfigurationError(f"{path}: is a folder; name the CSV file in it")
    if not path.exists():
        raise ConfigurationError(f"{path}: no such file; name a CSV file, gzipped or not")
    try:
        frame = _cells(path)
    except pd.errors.ParserWarning as error:  # pandas would leave out the last cells
        raise HistoryError(
            f"{path}: rows have more cells than the header line has names; name every column, and write decimals with a"
            " point, as 1234.5"
        ) from error
    except (OSError, EOFError, zlib.error, ValueError) as error:  # pandas' own are ValueErrors
        why = " ".join(str(error).split())
        raise HistoryError(
            f"{path}: cannot be read as CSV: {why}; give UTF-8, plain or gzipped, with a header line and rows of as"
            " many cells"
        ) from error
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise HistoryError(f"{path}: its header line has {twice[0]!r} twice; give each column a name of its own")
    if frame.empty:
        raise HistoryError(f"{path}: has no rows below its header; give a recording with at least two")
    return frame


def _cells(path: Path) -> pd.DataFrame:
    """What is in the file; its cells are not read as numbers or as missing yet: NA may be a region's name."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            file,
            dtype=str,
            sep=_separator(path, packed=packed),
            skipinitialspace=True,
            keep_default_na=False,
            index_col=False,  # a separator at the end of each row moves no column
            encoding="utf-8-sig",
        )
    return frame.rename(columns=str.strip).fillna("")


def _separator(path: Path, *, packed: bool) -> str:
    """What stands between the names of the header line, quoted ones aside."""
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        header = next((line for line in file if line.strip()), b"").decode("utf-8", errors="replace")
    bare = re.sub(r'"[^"]*"', "", header)
    return max(SEPARATORS, key=bare.count)


def numbers(frame: pd.DataFrame, column: str, *, path: Path) -> Floats:
    """A column as numbers, NaN where the cell is empty or says that nothing is known.

    Raises:
        HistoryError: a cell is no finite number, or one that no load can have.
    """
    text = frame[column]
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    odd = np.flatnonzero(~(np.abs(values) <= LARGEST))
    bad = odd[~said_unknown(text.iloc[odd])]
    if len(bad):
        row, cell = int(bad[0]), str(text.iloc[bad[0]])
        why = f"is more than {LARGEST:g}" if np.isfinite(values[row]) else f"is no finite number{_hint(cell)}"
        raise wrong_cell(path, row, column, cell, why, more=len(bad) - 1)
    return values


def said_unknown(text: pd.Series) -> npt.NDArray[np.bool_]:
    """Where cells are empty or hold one of the words for a missing value, shape (rows,)."""
    bare = text.str.strip()
    return (bare.isin(UNKNOWN) | bare.str.lower().isin(UNKNOWN_IN_ANY_CASE)).to_numpy(dtype=np.bool_)


def _hint(cell: str) -> str:
    if not re.fullmatch(r"[+-]?\d[\d\s.,'\u2019]*", cell):
        return ""
    return ": write a point before decimals and nothing between thousands, as 1234.5"


def times_of_every_row(values: Floats, column: str, *, path: Path) -> Floats:
    """The same values, refused when one is missing: a row without a time belongs nowhere."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        why = "is empty, and a row needs a time"
        raise wrong_cell(path, int(bad[0]), column, "", why, more=len(bad) - 1, remedy=DELETED)
    return values


def without_negatives(values: Floats, where: str, notes: list[Note]) -> Floats:
    """Negative values as NaN, with a note: a count or a state below zero is a mark for "not known", not a small one."""
    negative = values < 0
    if negative.any():
        notes.append(Note(where, f"{int(negative.sum())} of {len(values)} rows are negative: taken as unknown"))
    return np.where(negative, np.nan, values)


def wrong_cell(  # noqa: PLR0913  (where, what and why)
    path: Path, row: int, column: str, text: str, why: str, *, more: int = 0, remedy: str = LEFT_EMPTY
) -> HistoryError:
    """The error for one cell, and how many more there are."""
    others = f" (and {more} more)" if more else ""
    line = row + 1 + HEADER
    return HistoryError(f"{path}: line {line}, column {column}: {text!r} {why}{others}; {remedy}")
