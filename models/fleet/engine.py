"""How long one step of a serving engine takes, and what one replica of it can hold.

Step law: a step with n decoding sequences, p prefill tokens, KV context tokens and S = sum of chunk x (start + chunk/2)
over the prefill chunks takes, in milliseconds,

    T = a + (w^4 + (d (n + p))^4)^(1/4) + b n + c KV + q S + overhead

The coefficients of the rows below were fitted to measured operator tables (aiconfigurator 0.12.0, Apache-2.0).
"""

import dataclasses

import numpy as np

from models.series import Floats

MILLISECOND = 1e-3
TOKEN_BUDGET = 2048  # prompt tokens vLLM prefills in one step by default (max_num_batched_tokens)


@dataclasses.dataclass(frozen=True, slots=True)
class StepLaw:
    """Coefficients of the step law, milliseconds per unit; `alpha0` is HTTP and tokenising, per request."""

    a: float
    w: float
    d: float
    b: float
    c: float
    q: float
    overhead: float
    alpha0: float


@dataclasses.dataclass(frozen=True, slots=True)
class Engine:
    """One replica: model, hardware and scheduler limits.

    Attributes:
        model: served model name.
        law: the step law of this model on this hardware.
        kv_tokens: KV-cache capacity, tokens.
        max_num_seqs: sequences in one batch at most.
        gpus: GPUs of one replica.
        weights_bytes: what has to be loaded before the first request.
    """

    model: str
    law: StepLaw
    kv_tokens: int
    max_num_seqs: int = 256
    gpus: int = 1
    weights_bytes: float = 16e9

    def __post_init__(self) -> None:
        for name in ("kv_tokens", "max_num_seqs", "gpus"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must be at least 1")

    def decode_steps(self) -> list[float]:
        """Seconds of a step without prefill, by the number of sequences 0..max_num_seqs, KV reads not included."""
        law = self.law
        n = np.arange(self.max_num_seqs + 1, dtype=np.float64)
        mixed = (law.w**4 + (law.d * n) ** 4) ** 0.25
        steps: list[float] = ((law.a + mixed + law.b * n + law.overhead) * MILLISECOND).tolist()
        return steps

    def prefill_seconds(self, prompt_tokens: Floats) -> Floats:
        """Seconds a prompt adds to the steps it is prefilled in, shape as given.

        A prompt above the token budget takes steps of its own, which cost their fixed part.
        """
        law = self.law
        p = np.asarray(prompt_tokens, dtype=np.float64)
        more_steps = np.ceil(p / TOKEN_BUDGET) - 1
        mixed = (law.w**4 + (law.d * p) ** 4) ** 0.25 - law.w
        milliseconds = mixed + law.q * p * p / 2 + more_steps * (law.a + law.overhead)
        seconds: Floats = milliseconds * MILLISECOND
        return seconds


LLAMA_8B_H100 = Engine(
    "meta-llama/Llama-3.1-8B-Instruct",
    StepLaw(a=4.54, w=2.06, d=0.01653, b=0.00329, c=4.08e-5, q=2.31e-6, overhead=1.1, alpha0=18),
    kv_tokens=432_992,
)
LLAMA_70B_H100_TP4 = Engine(
    "meta-llama/Llama-3.1-70B-Instruct",
    StepLaw(a=11.79, w=4.15, d=0.05087, b=0, c=2.71e-5, q=8.61e-6, overhead=0, alpha0=8),
    kv_tokens=454_016,
    gpus=4,
    weights_bytes=141e9,
)
QWEN_32B_H100_TP2 = Engine(
    "Qwen/Qwen3-32B",
    StepLaw(a=6.79, w=7.71, d=0.04752, b=0.00495, c=4.16e-5, q=2.46e-6, overhead=0.5, alpha0=12),
    kv_tokens=301_810,
    gpus=2,
    weights_bytes=65e9,
)
LLAMA_8B_RTX4090 = Engine(
    "meta-llama/Llama-3.1-8B-Instruct",
    StepLaw(a=6.34, w=11.31, d=0.08829, b=0.00937, c=1.415e-4, q=4.99e-6, overhead=0, alpha0=0),
    kv_tokens=41_408,
)
