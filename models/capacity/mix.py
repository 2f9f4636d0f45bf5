"""How large the requests of the last quarter of an hour are, from counters.

Of an engine that counts prompt tokens when a request is taken up, output tokens one by one, and requests when they end.
So that a surge does not look like longer requests, tokens are divided by the requests that were taken up: those that
ended, and those by which there are more running; of the output of these half is there. What runs is averaged over as
long a time as rates lag behind.
"""

import dataclasses
import math

from models.capacity.sizes import Sizes

MEMORY = 900.0  # seconds after which a request counts for 1/e
PRIOR = 30.0  # requests of the tested sizes that count beside those seen: a few requests say little
LONGEST = 60.0  # seconds for which one look speaks at most: what passed in a gap nobody saw
LAG = 30.0  # seconds by which rates are behind: half a window of one minute
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
        running: requests that ran of late, mean.
        prompt: tokens of prompts.
        output: tokens generated.
        taken: requests that were taken up.
        served: of these, by the share of their output that is there.
    """

    at: float
    running: float
    prompt: float = 0.0
    output: float = 0.0
    taken: float = 0.0
    served: float = 0.0


def after(mix: Mix | None, flow: Flow, *, at: float) -> Mix:
    """The mix after one more look; a late one adds nothing, and it begins anew where the clock was set back."""
    if mix is None or at < mix.at - SET_BACK:
        return Mix(at, flow.running)
    if at - mix.at < APART:
        return mix
    passed = at - mix.at
    seconds, kept = min(passed, LONGEST), math.exp(-passed / MEMORY)
    running = mix.running + (flow.running - mix.running) * (1 - math.exp(-passed / LAG))
    more = running - mix.running if passed <= LONGEST else 0.0
    return Mix(
        at,
        running,
        mix.prompt * kept + flow.tokens_in * seconds,
        mix.output * kept + flow.tokens_out * seconds,
        mix.taken * kept + flow.completions * seconds + more,
        mix.served * kept + flow.completions * seconds + more / 2,
    )


def sizes(mix: Mix | None, tested: Sizes) -> Sizes:
    """Mean sizes of the requests seen, with `PRIOR` requests of the tested sizes among them."""
    if mix is None or mix.taken <= 0 or mix.served <= 0:
        return tested
    return Sizes(
        (mix.prompt + PRIOR * tested.prompt) / (mix.taken + PRIOR),
        (mix.output + PRIOR * tested.output) / (mix.served + PRIOR),
    )
