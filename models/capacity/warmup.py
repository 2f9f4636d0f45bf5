"""How long a new replica takes, and how far ahead that makes one look."""

import dataclasses
from collections.abc import Sequence

import numpy as np

FEWEST = 3  # measured warm-ups of which a p90 says more than what was configured


@dataclasses.dataclass(frozen=True, slots=True)
class Horizons:
    """How far ahead to look, seconds: before raising, and before lowering."""

    raising: float
    lowering: float


def warm_up(measured: Sequence[float], *, default: float) -> float:
    """p90 of the measured warm-ups (seconds, pod created to first Ready), or `default` while fewer than FEWEST."""
    if len(measured) < FEWEST:
        return default
    return float(np.quantile(np.asarray(measured, dtype=np.float64), 0.9))


def horizons(warm_up: float, *, interval: float, signal_age: float) -> Horizons:
    """Horizons from the warm-up, the loop interval and the age of the signals, all in seconds.

    What is decided now is ready after the warm-up, was seen `signal_age` ago, and can be decided again only after
    `interval`. Keeping an idle replica for as long as its warm-up costs as much as warming it again, so lowering looks
    one more warm-up ahead.
    """
    raising = warm_up + interval + signal_age
    return Horizons(raising, raising + warm_up)
