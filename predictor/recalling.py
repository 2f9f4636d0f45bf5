"""How large requests were before the service started, from what its source remembers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from models.capacity import mix
from models.capacity.mix import Flow, Mix
from models.series import Series
from models.signals import Cause, Signal, Unknown
from predictor.board import Entry
from predictor.ports import SignalSource
from predictor.targets import Target

SPAN = 2 * mix.FADING  # seconds that are asked for: what was seen before counts for little
STEP = 60.0  # seconds between two looks at the past: no more than rates look back over
# Requests that end come first: where an engine does not count them, the others are not asked for.
ASKED = (Signal.COMPLETIONS, Signal.TOKENS_IN, Signal.TOKENS_OUT, Signal.IN_FLIGHT)
PASSING = (Cause.SOURCE_DOWN, Cause.PARTIAL)

Past: TypeAlias = Mapping[str, Mix | Unknown | None]


def wanted(entry: Entry, *, loaded: bool) -> bool:
    """Whether the past of a target's sizes is to be asked for, unless it was answered before.

    `loaded`: the source has given the history of loads. It is then asked again only for what is known by no other way.
    """
    return entry.target.objectives.profile.by_size is not None and not (loaded and mix.known(entry.mix))


def past(source: SignalSource, targets: Sequence[Target], *, now: float, lag: float) -> Past:
    """Sizes by target key, as they would be known had the last day been looked at; None where nothing was served.

    Unknown where the source has no past of one of the signals, or not now.

    Args:
        source: of the signals.
        targets: those whose sizes matter.
        now: Unix time, seconds.
        lag: seconds by which its rates are behind what runs.
    """
    grid = {"since": now - SPAN, "until": now, "step": STEP}
    found: dict[str, Unknown] = {}
    series: dict[str, list[Series]] = {target.key: [] for target in targets}
    for signal in ASKED:
        left = [target for target in targets if target.key not in found]
        for key, answer in source.history(left, signal, **grid).items() if left else ():
            if isinstance(answer, Unknown):
                found[key] = answer
            else:
                series[key].append(answer)
    told = {key: mix.through(_looks(*given), lag=lag) for key, given in series.items() if key not in found}
    return {**found, **told}


def answered(found: Mix | Unknown | None) -> bool:
    """Whether asking again would give nothing else."""
    return not (isinstance(found, Unknown) and found.cause in PASSING)


def _looks(completions: Series, tokens_in: Series, tokens_out: Series, running: Series) -> Iterator[tuple[float, Flow]]:
    """What was seen at each time at which all is known; the four have one grid."""
    columns = [one.values.tolist() for one in (tokens_in, tokens_out, completions, running)]
    for at, values in zip(running.times.tolist(), zip(*columns, strict=True), strict=True):
        if all(map(math.isfinite, values)):
            yield at, Flow(*values)
