"""Whether a target that a command line names is one that the configuration knows, and which those are."""

from collections.abc import Callable

from predictor.errors import ConfigurationError
from predictor.settings.root import Settings

PARTS = 2  # namespace and name


def check(target: str, settings: Settings, *, kept: Callable[[], bool] = lambda: False) -> None:
    """Refuses a target that nobody can know.

    A configuration without targets, or with discovery, refuses none but those that are written wrongly: others may be
    found by label, or be those of a service elsewhere.

    Args:
        target: as it was written.
        settings: the configuration.
        kept: whether there are records of it all the same, of a time when it was configured; asked only if it matters.

    Raises:
        ConfigurationError: it is not written as namespace/name, or it is none of the configuration's.
    """
    parts = target.split("/")
    if len(parts) != PARTS or not all(parts):
        raise ConfigurationError(f"{target!r} is no target: write namespace/name{known(settings)}")
    names = {one.key for one in settings.targets}
    if names and target not in names and not settings.discovery.enabled and not kept():
        raise ConfigurationError(f"{target!r} is none of the configuration's targets{known(settings)}")


def known(settings: Settings) -> str:
    """What the configuration knows, as the end of a sentence; empty where that is nothing."""
    names = ", ".join(one.key for one in settings.targets)
    found = "others are found by label" if settings.discovery.enabled else ""
    told = ", ".join(filter(None, (f"use one of {names}" if names else "", found)))
    return f"; {told}" if told else ""
