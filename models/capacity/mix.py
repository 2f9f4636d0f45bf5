"""How large the requests of the last quarter of an hour are, from counters that every engine has.

Prompt tokens are counted when a request is taken up, output tokens one by one, requests when they end. So that a surge
does not look like longer requests, tokens are divided by the requests that were taken up: those that ended, and those
by which there are more running; of the output of these half is there.
"""

import dataclasses
import math

from models.capacity.sizes import Sizes

MEMORY = 900.0  # seconds after which a request counts for 1/e
PRIOR = 30.0  # requests of the tested sizes that count beside those seen: a few requests say little
LONGEST = 60.0  # seconds for which one look speaks at most: what passed in a gap nobody saw
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
        running: requests that ran then.
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
    """The mix after one more look; afresh where the clock was set back."""
    if mix is None or at < mix.at:
        return Mix(at, flow.running)
    if at - mix.at < APART:
        return mix
    seconds = min(at - mix.at, LONGEST)
    kept = math.exp(-(at - mix.at) / MEMORY)
    more = flow.running - mix.running
    return Mix(
        at,
        flow.running,
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
