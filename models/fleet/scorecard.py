"""How well a fleet served, in a size that does not grow with the number of requests."""

import dataclasses

import numpy as np

from models.fleet.histogram import QuantileHistogram


@dataclasses.dataclass(frozen=True, slots=True)
class Scorecard:
    """What came of all requests so far.

    Attributes:
        requests: arrived.
        finished: got their last token.
        missed_ttft: got their first token later than the objective, or wait for it for longer than that already.
        rejected: turned away after the time-out of the router, or too long for any replica.
        in_flight: in a batch or waiting, in the fleet or in the router.
        ttft: seconds to the first token by probability.
        itl: seconds between tokens by probability.
    """

    requests: int
    finished: int
    missed_ttft: int
    rejected: int
    in_flight: int
    ttft: dict[float, float | None]
    itl: dict[float, float | None]

    @property
    def attainment(self) -> float | None:
        """Share of the requests that met the objective; None before the first."""
        if self.requests == 0:
            return None
        return 1 - (self.missed_ttft + self.rejected) / self.requests


class Recorder:
    """Counts first tokens and gaps as they come."""

    QUANTILES = (0.5, 0.9, 0.95, 0.99)

    def __init__(self, ttft_objective: float) -> None:
        """Counts a first token that takes longer than `ttft_objective` seconds as missed."""
        self.objective = ttft_objective
        self.missed = 0
        self._ttft = QuantileHistogram()
        self._itl = QuantileHistogram()

    def add_ttfts(self, seconds: list[float]) -> None:
        """First tokens, seconds from arrival."""
        values = np.asarray(seconds, dtype=np.float64)
        self.missed += int(np.count_nonzero(values > self.objective))
        self._ttft.add(values)

    def add_gaps(self, seconds: list[float], tokens: list[int]) -> None:
        """Mean gaps of finished requests and how many gaps each had."""
        self._itl.add(np.asarray(seconds, dtype=np.float64), np.asarray(tokens, dtype=np.int64))

    def ttft(self) -> dict[float, float | None]:
        """Quantiles of the time to the first token, seconds."""
        return {q: self._ttft.quantile(q) for q in self.QUANTILES}

    def itl(self) -> dict[float, float | None]:
        """Quantiles of the gap between tokens, seconds."""
        return {q: self._itl.quantile(q) for q in self.QUANTILES}
