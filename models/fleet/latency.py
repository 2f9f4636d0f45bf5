"""Latency histograms of the compiled fleet: 1 % bins, added up over replicas, pools and runs."""

import dataclasses

import numpy as np

from models.fleet.layout import BIN_FLOOR, BINS, BINS_PER_E, PAGE_BUCKETS
from models.series import Floats

# Bucket bounds of vLLM's page, seconds (vllm/v1/metrics/loggers.py); +Inf comes on top.
TTFT_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0,
    640.0, 2560.0,
)  # fmt: skip
ITL_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
E2E_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip


def edges() -> Floats:
    """Lower edges of the bins, seconds, shape (BINS,); the first bin also holds all that is shorter."""
    found: Floats = BIN_FLOOR * np.exp(np.arange(BINS) / BINS_PER_E)
    return found


def bucket_table() -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    """Which page bucket each bin falls into, by its middle: TTFT, ITL, end to end; shape (3, BINS)."""
    middles = edges() * np.exp(0.5 / BINS_PER_E)
    rows = [np.searchsorted(np.asarray(bounds), middles) for bounds in (TTFT_BOUNDS, ITL_BOUNDS, E2E_BOUNDS)]
    table = np.stack(rows).astype(np.int8)
    if table.max() >= PAGE_BUCKETS:
        raise ValueError(f"{table.max() + 1} buckets on a page: at most {PAGE_BUCKETS}")
    return table


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Latency:
    """How long something took, over many requests or tokens. `counts` has shape (BINS,); read-only."""

    counts: np.ndarray[tuple[int], np.dtype[np.int64]]
    total: float

    @property
    def count(self) -> int:
        """How many were counted."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float | None:
        """Seconds, exact; None while there is none."""
        return self.total / self.count if self.count else None

    def quantile(self, probability: float) -> float | None:
        """Seconds, within half a per cent; None while there is none."""
        if not 0 <= probability <= 1:
            raise ValueError(f"probability is {probability!r}: must lie in 0..1")
        reached = np.cumsum(self.counts)
        if reached[-1] == 0:
            return None
        position = int(np.searchsorted(reached, max(probability * reached[-1], 1)))
        return float(BIN_FLOOR * np.exp((position + 0.5) / BINS_PER_E))

    def share_within(self, seconds: float) -> float | None:
        """Share not longer than so many seconds, to the bin; None while there is none."""
        if self.count == 0:
            return None
        return float(self.counts[: int(np.searchsorted(edges(), seconds))].sum()) / self.count

    def __add__(self, other: "Latency") -> "Latency":
        return Latency(self.counts + other.counts, self.total + other.total)
