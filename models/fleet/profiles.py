"""What one replica is: the step law of a model on its hardware, the scheduler's limits, the size of the KV cache.

Step law: a step with n decoding sequences, p prefill tokens, KV context tokens of the decoding ones, and S = sum over
the prefill chunks of chunk x (start + chunk / 2) takes, in milliseconds,

    T = a + (w^4 + (d (n + p))^4)^(1/4) + b n + c KV + q S + overhead

Sources: the rows of vLLM on H100, H200 and A100 were fitted to the measured operator tables of the Python package
aiconfigurator 0.12.0 (Apache-2.0); the row of the RTX 4090 comes from a published layer profile (LLMServingSim, MIT).
`calibrated` says whether overhead and alpha0 were checked on a real run.
"""

import dataclasses
import math

from models.fleet.layout import MOST_SEQUENCES

MILLISECOND = 1e-3


@dataclasses.dataclass(frozen=True, slots=True)
class StepLaw:
    """Coefficients in milliseconds, per token or token pair; `alpha0` is HTTP and tokenising, once a request."""

    a: float
    w: float
    d: float
    b: float
    c: float
    q: float
    overhead: float = 0.0
    alpha0: float = 0.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{field.name} is {value!r} ms: must be finite and not negative")
        if self.a + self.w + self.overhead <= 0:
            raise ValueError("a, w and overhead are all 0: a step would take no time")

    def step(self, *, decoding: float = 0, prefill: float = 0, context: float = 0, square: float = 0) -> float:
        """Milliseconds of one step; `square` is S of the law."""
        root: float = (self.w**4 + (self.d * (decoding + prefill)) ** 4) ** 0.25
        return self.a + root + self.b * decoding + self.c * context + self.q * square + self.overhead


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """One replica of a served model.

    Attributes:
        name: short name, as benchmarks take it.
        model: served model name.
        law: its step law.
        kv_tokens: KV-cache capacity, tokens.
        source: where the numbers come from.
        calibrated: overhead and alpha0 were checked on a real run.
        gpu: kind of GPU.
        gpus: of one replica.
        weights_bytes: read before the first request.
        token_budget: tokens in one step at most (max_num_batched_tokens).
        max_num_seqs: sequences in one batch at most.
        block: tokens in which the KV cache is given out; a power of two. By tokens (1) the peak of the real vLLM 0.19
            run comes out exactly (49 sequences); by vLLM's blocks of 16 it is one less, for a reason not yet found.
        reserve_prompt: admit only when the room for the whole prompt is free, not just for its chunk (vLLM since 0.19).
        async_scheduling: plan a step while the one before runs (vLLM since 0.14; seen in the trace of the 0.19 run):
            a request joins, and what a finished one held is free, one step later. Where alpha0 was calibrated without
            it, alpha0 holds that step already.
        prefix_caching: reuse the KV of a session's earlier turns.
    """

    name: str
    model: str
    law: StepLaw
    kv_tokens: int
    source: str
    calibrated: bool = True
    gpu: str = "H100"
    gpus: int = 1
    weights_bytes: float = 16e9
    token_budget: int = 2048
    max_num_seqs: int = 256
    block: int = 1
    reserve_prompt: bool = True
    prefix_caching: bool = False
    async_scheduling: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.max_num_seqs <= MOST_SEQUENCES:
            raise ValueError(f"max_num_seqs is {self.max_num_seqs!r}: must lie in 1..{MOST_SEQUENCES}")
        if self.block not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"block is {self.block!r} tokens: must be a power of two, 64 at most")
        if self.token_budget <= self.max_num_seqs:
            raise ValueError(
                f"token_budget is {self.token_budget!r}: must exceed max_num_seqs ({self.max_num_seqs}), else a full "
                "batch leaves no room for prefill"
            )
        if self.kv_tokens < 2 * self.block:
            raise ValueError(f"kv_tokens is {self.kv_tokens!r}: must hold two blocks of {self.block} at least")
        if self.gpus < 1:
            raise ValueError(f"gpus is {self.gpus!r}: must be at least 1")

    @property
    def blocks(self) -> int:
        """Usable KV blocks: vLLM keeps one as the null block."""
        return self.kv_tokens // self.block - 1


_TABLES = "fit to the operator tables of aiconfigurator 0.12.0 (Apache-2.0)"
_8B, _70B = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"

LLAMA_8B_H100 = Profile(
    "llama-8b-h100", _8B, StepLaw(4.54, 2.06, 0.01653, 0.00329, 4.08e-5, 2.31e-6, 1.1, 18), 432_992, _TABLES
)
LLAMA_8B_H200 = Profile(
    "llama-8b-h200", _8B, StepLaw(3.35, 1.74, 0.01716, 0.00324, 2.98e-5, 1.88e-6, 1.1, 18), 882_732, _TABLES,
    calibrated=False, gpu="H200",
)  # fmt: skip
LLAMA_8B_A100 = Profile(
    "llama-8b-a100", _8B, StepLaw(8.58, 3.41, 0.05548, 0, 8.06e-5, 0, 1, 18), 432_992, _TABLES,
    calibrated=False, gpu="A100",
)  # fmt: skip
LLAMA_70B_H100_TP4 = Profile(
    "llama-70b-h100-tp4", _70B, StepLaw(11.79, 4.15, 0.05087, 0, 2.71e-5, 8.61e-6, 0, 8), 454_016, _TABLES,
    gpus=4, weights_bytes=141e9,
)  # fmt: skip
LLAMA_70B_H100_TP8 = Profile(
    "llama-70b-h100-tp8", _70B, StepLaw(8.95, 1.31, 0.03724, 0, 1.27e-5, 0, 0, 8), 1_338_649, _TABLES,
    calibrated=False, gpus=8, weights_bytes=141e9,
)  # fmt: skip
LLAMA_70B_H200_TP2 = Profile(
    "llama-70b-h200-tp2", _70B, StepLaw(6.09, 15.68, 0.09996, 0.00523, 3.66e-5, 4.03e-6, 0, 8), 370_583, _TABLES,
    calibrated=False, gpu="H200", gpus=2, weights_bytes=141e9,
)  # fmt: skip
LLAMA_70B_H200_TP4 = Profile(
    "llama-70b-h200-tp4", _70B, StepLaw(8.33, 4.37, 0.05398, 0.00011, 1.92e-5, 4.89e-6, 0, 8), 1_173_601, _TABLES,
    calibrated=False, gpu="H200", gpus=4, weights_bytes=141e9,
)  # fmt: skip
QWEN_32B_H100_TP2 = Profile(
    "qwen-32b-h100-tp2", "Qwen/Qwen3-32B", StepLaw(6.79, 7.71, 0.04752, 0.00495, 4.16e-5, 2.46e-6, 0.5, 12), 301_810,
    _TABLES, calibrated=False, gpus=2, weights_bytes=65e9,
)  # fmt: skip
LLAMA_8B_RTX4090 = Profile(
    "llama-8b-rtx4090", _8B, StepLaw(6.34, 11.31, 0.08829, 0.00937, 1.415e-4, 4.99e-6), 41_408,
    "published layer profile of vLLM 0.19 (LLMServingSim, MIT)", gpu="RTX 4090", async_scheduling=True,
)  # fmt: skip

PROFILES = {
    profile.name: profile
    for profile in (
        LLAMA_8B_H100, LLAMA_8B_H200, LLAMA_8B_A100, LLAMA_70B_H100_TP4, LLAMA_70B_H100_TP8, LLAMA_70B_H200_TP2,
        LLAMA_70B_H200_TP4, QWEN_32B_H100_TP2, LLAMA_8B_RTX4090,
    )
}  # fmt: skip


def named(name: str) -> Profile:
    """The profile of that name. Raises ValueError naming those there are."""
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
