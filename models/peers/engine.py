"""What the Dynamo Planner knows of one engine from its profiling: times of a step, and the rate it sustains."""

import dataclasses
import functools
import math
from typing import Protocol

CANDIDATES = 128


class StepLaw(Protocol):
    """Milliseconds of one step of the engine."""

    def step(self, *, decoding: float = 0, prefill: float = 0, context: float = 0, square: float = 0) -> float:
        """Milliseconds with so many decoding sequences, prefill tokens, context tokens of the decoding ones.

        `square` is the sum over prefill chunks of chunk x (start + chunk / 2).
        """
        ...


@dataclasses.dataclass(frozen=True)
class Engine:
    """One replica that prefills and decodes.

    Attributes:
        law: times of a step.
        kv_tokens: KV cache, tokens.
        token_budget: tokens in one step at most.
        max_seqs: sequences in one batch at most.
        overhead: seconds a request takes besides its steps.
    """

    law: StepLaw
    kv_tokens: float
    token_budget: float = 2048.0
    max_seqs: int = 256
    overhead: float = 0.0

    def __post_init__(self) -> None:
        if not (self.kv_tokens > 0 and self.token_budget > self.max_seqs >= 1):
            raise ValueError(f"{self}: needs a KV cache, and a token budget above max_seqs")

    def itl(self, batch: float, *, context: float, prefill: float = 0.0, prompt: float = 0.0) -> float:
        """Seconds of a step with `batch` decoding sequences of `context` tokens and `prefill` tokens of prompts."""
        return (
            self.law.step(decoding=batch, prefill=prefill, context=batch * context, square=prefill * prompt / 2) / 1e3
        )

    def ttft(self, tokens: float, *, batch: float, context: float) -> float:
        """Seconds until `tokens` of prompts, queued ones included, are prefilled beside a decoding batch."""
        room = max(self.token_budget - batch, 1.0)
        steps = max(math.ceil(tokens / room), 1)
        return self.overhead + steps * self.itl(batch, context=context, prefill=tokens / steps, prompt=tokens)


@functools.lru_cache(maxsize=4096)
def capacity(engine: Engine, *, prompt: int, output: int, ttft: float, itl: float) -> float:
    """The most requests a second one aggregated engine serves within the objectives (seconds); lengths in tokens.

    Best of b / (output x itl(b)) over the batches b: context is the prompt and half the output, and the prefill that
    such a rate needs, ceil(b x prompt / output) tokens a step, fits the budget beside b. An engine that cannot meet
    the objectives at all is taken at a batch of 1, as the planner does.
    """
    context = prompt + output / 2
    most = max(min(engine.max_seqs, int(engine.kv_tokens / context)), 1)
    best = 0.0
    for k in range(min(most, CANDIDATES)):
        batch = round(1 + k * (most - 1) / max(min(most, CANDIDATES) - 1, 1))
        prefill = math.ceil(batch * prompt / output)
        step = engine.itl(batch, context=context, prefill=prefill, prompt=prompt)
        first = engine.ttft(prompt, batch=batch, context=context)
        if prefill <= engine.token_budget - batch and step <= itl and first <= ttft:
            best = max(best, batch / (output * step))
    return best or 1 / (output * engine.itl(1, context=context, prefill=prompt / output, prompt=prompt))
