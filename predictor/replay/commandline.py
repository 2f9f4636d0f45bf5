"""What the command lines of `backtest` and `simulate` share: durations, a progress bar, who is asked for a history."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rich.console
import rich.progress
from pydantic_core import PydanticCustomError

from predictor.errors import ConfigurationError
from predictor.settings import durations, sections
from predictor.settings.root import Settings

LEAST_SINCE = 3600.0  # seconds; less is a unit that was forgotten
MOST_SINCE = 3660 * 86400.0  # seconds; more is a wrong unit as well: no Prometheus keeps ten years


def seconds(flag: str, text: str) -> float:
    """A duration as it was written after a flag, seconds.

    Raises:
        ConfigurationError: it is none, or not longer than nothing.
    """
    try:
        found = durations.parse(text)
    except PydanticCustomError as error:
        raise ConfigurationError(f"{flag}: {text!r} {error.message()}") from None
    if found <= 0:
        raise ConfigurationError(f"{flag}: {text!r} must be longer than nothing")
    return float(found)


def folder(flag: str, path: Path) -> None:
    """Whether a folder is there to be written to, or can be made; nothing is made yet.

    Raises:
        ConfigurationError: it is a file, lies below one, or may not be written to.
    """
    there = next(one for one in (path, *path.absolute().parents) if one.exists())
    if not there.is_dir():
        raise ConfigurationError(f"{flag}: {there} is no folder; name a folder for the report")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{flag}: {there} may not be written to; name another folder")


@contextmanager
def progress(terminal: rich.console.Console) -> Iterator[rich.progress.Progress]:
    """A bar for what is being done and how long it still takes; gone when it is over."""
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=terminal, transient=True) as bar:
        yield bar


def since(text: str) -> float:
    """How far back a Prometheus is asked, seconds.

    Raises:
        ConfigurationError: it is no duration, or so short or long that its unit must be wrong.
    """
    found = seconds("--since", text)
    if found < LEAST_SINCE:
        raise ConfigurationError(f"--since: {text!r} is {found:g} s: ask for an hour at least, better 14d")
    if found > MOST_SINCE:
        raise ConfigurationError(f"--since: {text!r} is more than ten years: ask for less, best 14d")
    return found


def prometheus(settings: Settings | None) -> Settings:
    """The configuration, if there is a history to ask for with it.

    Raises:
        ConfigurationError: there is none, it names no Prometheus, or no target.
    """
    if settings is None or settings.source.kind is not sections.SourceKind.PROMETHEUS:
        raise ConfigurationError("--since: needs a configuration whose source.kind is prometheus; give --config")
    if not settings.targets:
        raise ConfigurationError("targets: the configuration names none; name the workloads to look at")
    return settings
