"""What the signal catalogue has to say about the configuration: engines that exist, queries that can be asked."""

import difflib
from collections.abc import Iterator

from predictor.errors import ConfigurationError
from predictor.settings.checks import Contradiction
from predictor.settings.root import Settings
from predictor.signals import shelf


def problems(settings: Settings) -> Iterator[Contradiction]:
    """Engines that the catalogue has not; queries in place of its own that it cannot use."""
    try:
        known = sorted(shelf.load(overrides=settings.signals))
    except ConfigurationError as error:
        yield from (_of_the_catalogue(line) for line in error.lines)
        return
    for number, target in enumerate(settings.targets):
        if target.engine not in known:
            near = difflib.get_close_matches(target.engine, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            text = f"{target.engine!r} is no engine of the signal catalogue; {hint}"
            yield Contradiction(("targets", number, "engine"), text)


def _of_the_catalogue(line: str) -> Contradiction:
    """Its lines begin with the key: "signals.vllm: no such engine"."""
    key, _, text = line.partition(": ")
    return Contradiction(tuple(key.split(".")), text)
