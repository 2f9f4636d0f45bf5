"""The one tree of errors that end the program; `cli.main` is where they are handled.

    FloorcastError              exit 1: could not go on
    ├── ConfigurationError  exit 2: refused before anything was started
    ├── HistoryError        exit 1: a recorded history cannot be read, or holds nothing to replay
    └── ListenError         exit 1: the address for metrics and health is not to be had

What a signal source or the API server answers is no error but a value (`Unknown`, `Refused`): the loops go on.
"""

from collections.abc import Iterable
from typing import ClassVar


class FloorcastError(Exception):
    """A failure that ends the program, in one or more lines for a person."""

    exit_code: ClassVar[int] = 1

    def __init__(self, lines: Iterable[str] | str) -> None:
        self.lines = (lines,) if isinstance(lines, str) else tuple(lines)
        super().__init__("\n".join(self.lines))


class ConfigurationError(FloorcastError):
    """The configuration cannot be used; one line for each problem: key, value, bound and remedy."""

    exit_code = 2


class ListenError(FloorcastError):
    """The address to serve on is taken or does not exist."""


class HistoryError(FloorcastError):
    """A recorded history cannot be used: file, line, column, and what to do about it."""
