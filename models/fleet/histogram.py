"""Two histograms: the fixed buckets of an engine's metrics page, and a fine one that merges for quantiles."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from models.series import Floats

# The bucket bounds vLLM 0.33 exports, seconds.
TTFT_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
ITL_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
E2E_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
)  # fmt: skip


class BucketHistogram:
    """Counts by upper bound, as Prometheus has them; the bounds are inclusive."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._edges = np.asarray(bounds, dtype=np.float64)
        self._counts = np.zeros(len(bounds) + 1, dtype=np.int64)
        self.sum = 0.0

    def add(self, values: Floats, weights: npt.NDArray[np.int64] | None = None) -> None:
        """Adds values, each once or as often as its weight says."""
        weights = np.ones(len(values), dtype=np.int64) if weights is None else weights
        np.add.at(self._counts, np.searchsorted(self._edges, values, side="left"), weights)
        self.sum += float(values @ weights)

    def cumulative(self) -> list[int]:
        """Counts at or below each bound, the last one at +Inf."""
        counts: list[int] = np.cumsum(self._counts).tolist()
        return counts


class QuantileHistogram:
    """Counts on a logarithmic grid, so that quantiles of any number of values cost the same memory and merge.

    Values from 0.1 ms to 10 hours in steps of 2 %: a quantile is off by at most that.
    """

    GROWTH = 1.02
    LOWEST = 1e-4
    BINS = 1000

    def __init__(self) -> None:
        self._counts = np.zeros(self.BINS, dtype=np.int64)

    @property
    def count(self) -> int:
        """Values so far."""
        return int(self._counts.sum())

    def add(self, values: Floats, weights: npt.NDArray[np.int64] | None = None) -> None:
        """Adds values (seconds), each once or as often as its weight says."""
        weights = np.ones(len(values), dtype=np.int64) if weights is None else weights
        positions = np.log(np.maximum(values, self.LOWEST) / self.LOWEST) / math.log(self.GROWTH)
        np.add.at(self._counts, np.clip(np.ceil(positions).astype(np.int64), 0, self.BINS - 1), weights)

    def merge(self, other: "QuantileHistogram") -> None:
        """Adds the counts of another one."""
        self._counts += other._counts  # noqa: SLF001  (the same class)

    def quantile(self, probability: float) -> float | None:
        """The value (seconds) below which `probability` of the counted lie; None while there are none."""
        total = self.count
        if total == 0:
            return None
        position = int(np.searchsorted(np.cumsum(self._counts), probability * total, side="left"))
        return self.LOWEST * self.GROWTH**position
