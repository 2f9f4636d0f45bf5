"""How large the requests of the last quarter of an hour are, or the last few hundred, from counters.

Of an engine that counts prompt tokens when a request is taken up, output tokens one by one, and requests when they end.
So that a surge does not look like longer requests, tokens are divided by the requests that were taken up: those that
ended, and those by which there are more running; of the output of these half is there. What runs is averaged over as
long a time as rates lag behind.
"""

import dataclasses
import math
from collections.abc import Iterable

from models.capacity.sizes import Sizes

MEMORY = 900.0  # seconds after which a request counts for 1/e, while there are more than `FEWEST`
FEWEST = 300.0  # requests: where lengths scatter by 1.5 times their mean, that of as many is right to a tenth
# Seconds after which the last few count for 1/e. In nine recorded traces the sizes of four hours ago foretell those of
# now better than the mean of all days on six, those of a day ago on three; and load tests may be far from that mean. So
# after a night the tested sizes weigh a fifth, after a day nearly half, and a little later what was seen is not known.
FADING = 43200.0
PRIOR = 30.0  # requests of the tested sizes that count beside those seen: a few requests say little
LAG = 30.0  # seconds by which rates are behind: half a window of one minute, if the source has no other
SET_BACK = 600.0  # seconds: a look that much older is no late answer, the clock was set back
APART = 1.0  # seconds: two loops may look at the same sample


@dataclasses.dataclass(frozen=True, slots=True)
class Flow:
    """A fleet at one look: tokens and requests a second, and the requests that run."""

    tokens_in: float
    tokens_out: float
    completions: float
    running: float


@dataclasses.dataclass(frozen=True, slots=True)
class Mix:
    """What was seen until a Unix time (seconds), older things weighing less.

    Attributes:
        at: of the last look.
        running: requests that ran of late, mean; None where nobody has looked since.
        prompt: tokens of prompts.
        output: tokens generated.
        taken: requests that were taken up.
        served: of these, by the share of their output that is there.
    """

    at: float
    running: float | None
    prompt: float = 0.0
    output: float = 0.0
    taken: float = 0.0
    served: float = 0.0


def after(mix: Mix | None, flow: Flow, *, at: float, lag: float = LAG) -> Mix:
    """The mix after one more look, which speaks for its window at most: what passed in a longer gap nobody saw.

    A late one adds nothing; where the clock was set back, what is known stands and is looked at from there.

    Args:
        mix: what was seen before.
        flow: what is seen.
        at: Unix time of it, seconds.
        lag: seconds by which its rates are behind what runs: half the window over which they are taken.
    """
    if mix is None:
        return Mix(at, flow.running)
    if at < mix.at - SET_BACK:
        return dataclasses.replace(mix, at=at, running=flow.running)
    if at - mix.at < APART:
        return mix
    passed, window = at - mix.at, 2 * lag
    seconds, kept = min(passed, window), _kept(mix.taken, passed)
    before = flow.running if mix.running is None or passed > window else mix.running
    more = (flow.running - before) * (1 - math.exp(-passed / lag))
    return Mix(
        at,
        before + more,
        mix.prompt * kept + flow.tokens_in * seconds,
        mix.output * kept + flow.tokens_out * seconds,
        mix.taken * kept + flow.completions * seconds + more,
        mix.served * kept + flow.completions * seconds + more / 2,
    )


def through(looks: Iterable[tuple[float, Flow]], *, lag: float = LAG) -> Mix | None:
    """The mix after many looks, as (Unix time in seconds, flow), oldest first; None of none."""
    mix = None
    for at, flow in looks:
        mix = after(mix, flow, at=at, lag=lag)
    return mix


def recalled(mix: Mix, *, now: float) -> Mix:
    """What is left at a Unix time (seconds) of what another process saw."""
    kept = _kept(mix.taken, max(now - mix.at, 0.0))
    return Mix(now, None, *[amount * kept for amount in (mix.prompt, mix.output, mix.taken, mix.served)])


def fuller(first: Mix | None, second: Mix | None, *, now: float) -> Mix | None:
    """The one of the two that knows of more requests at a Unix time (seconds); of as many, the first."""
    if first is None or second is None:
        return first or second
    return second if recalled(second, now=now).taken > recalled(first, now=now).taken else first


def known(mix: Mix | None) -> bool:
    """Whether sizes are known: as many requests count as are supposed."""
    return mix is not None and mix.taken >= PRIOR


def sizes(mix: Mix | None, tested: Sizes) -> Sizes:
    """Mean sizes of the requests seen, with `PRIOR` requests of the tested sizes among them."""
    if mix is None or mix.taken <= 0 or mix.served <= 0:
        return tested
    return Sizes(
        (mix.prompt + PRIOR * tested.prompt) / (mix.taken + PRIOR),
        (mix.output + PRIOR * tested.output) / (mix.served + PRIOR),
    )


def _kept(taken: float, passed: float) -> float:
    """The share that still counts of so many requests seconds later: down to `FEWEST` they fade soon, then slowly."""
    soon = math.exp(-passed / MEMORY)
    if taken * soon >= FEWEST:
        return soon
    over = max(taken / FEWEST, 1.0)
    return math.exp(-(passed - MEMORY * math.log(over)) / FADING) / over
