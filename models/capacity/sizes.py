"""What a replica sustains for requests of another size than those of one load test.

Twice the output tokens can mean a third of the requests a second, or nearly as many: it depends on whether prefill, the
KV cache or the batch binds. So it is measured: load tests at three sizes or more say by which power of the mean prompt
and of the mean output what a replica sustains falls, log y = c + a log(prompt) + b log(output), by least squares.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from models.series import Floats

BEYOND = 2.0  # how many times further than tested the powers are believed
APART = 1.5  # largest over least size, in prompts as in outputs: closer, and 5 % of noise make powers of anything
STEEPEST = -2.0  # power of throughput: attention over a prompt goes with its square. Beyond, a test met the cliff where
# even a lone request misses the objective, and no number of replicas mends that
LEAST = 3  # tests: a constant and two powers


@dataclasses.dataclass(frozen=True, slots=True)
class Sizes:
    """Mean tokens of a request."""

    prompt: float
    output: float

    def __post_init__(self) -> None:
        for name in ("prompt", "output"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value!r}: must be a positive number of tokens")


@dataclasses.dataclass(frozen=True, slots=True)
class LoadTest:
    """The highest load of one replica that met the objectives.

    Attributes:
        sizes: of the requests of the test.
        throughput: requests per second.
        concurrency: requests in flight.
    """

    sizes: Sizes
    throughput: float
    concurrency: float

    def __post_init__(self) -> None:
        for name in ("throughput", "concurrency"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value!r}: must be a positive number")


@dataclasses.dataclass(frozen=True, slots=True)
class BySize:
    """How what a replica sustains changes with the size of requests.

    Attributes:
        tested: sizes at which the figures of a profile hold.
        throughput: powers of mean prompt and mean output, `STEEPEST` to 0: longer requests are no lighter ones.
        concurrency: likewise, `STEEPEST` to its opposite.
        least: smallest sizes that were tested.
        most: largest ones.
    """

    tested: Sizes
    throughput: tuple[float, float]
    concurrency: tuple[float, float]
    least: Sizes
    most: Sizes

    def relative(self, sizes: Sizes) -> tuple[float, float]:
        """Throughput and concurrency over those at the tested sizes; no further than `BEYOND` times what was tested."""
        prompt = _within(sizes.prompt, self.least.prompt, self.most.prompt) / self.tested.prompt
        output = _within(sizes.output, self.least.output, self.most.output) / self.tested.output
        first, second = self.throughput, self.concurrency
        return prompt ** first[0] * output ** first[1], prompt ** second[0] * output ** second[1]


def fitted(tests: Sequence[LoadTest]) -> BySize:
    """The powers of several load tests; the first of them is the one whose figures a profile has.

    Raises ValueError where there are fewer than three, or their sizes do not tell prompts and outputs apart.
    """
    if len(tests) < LEAST:
        raise ValueError(f"{len(tests)} load tests: it takes {LEAST}, at two lengths of prompts and two of outputs")
    prompts = np.array([test.sizes.prompt for test in tests])
    outputs = np.array([test.sizes.output for test in tests])
    rows = np.column_stack([np.ones(len(tests)), np.log(prompts), np.log(outputs)])
    apart = min(float(prompts.max() / prompts.min()), float(outputs.max() / outputs.min()))
    spread = np.linalg.svd(rows[:, 1:] - rows[:, 1:].mean(axis=0), compute_uv=False)
    if apart < APART or spread[-1] < math.log(APART) / 2:
        raise ValueError(
            f"prompts of {_listed(prompts)} and outputs of {_listed(outputs)} tokens: test longer prompts with the"
            f" outputs as they are, and the other way round, each at least {APART:g} times as long"
        )
    throughput = np.clip(_powers(rows, [test.throughput for test in tests]), STEEPEST, 0.0)
    concurrency = np.clip(_powers(rows, [test.concurrency for test in tests]), STEEPEST, -STEEPEST)
    return BySize(
        tests[0].sizes,
        (float(throughput[0]), float(throughput[1])),
        (float(concurrency[0]), float(concurrency[1])),
        Sizes(float(prompts.min()), float(outputs.min())),
        Sizes(float(prompts.max()), float(outputs.max())),
    )


def _powers(rows: Floats, values: list[float]) -> Floats:
    solved = np.linalg.lstsq(rows, np.log(values), rcond=None)[0]
    return np.asarray(solved[1:], dtype=np.float64)


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least / BEYOND), most * BEYOND)


def _listed(values: Floats) -> str:
    return ", ".join(f"{value:g}" for value in values)
