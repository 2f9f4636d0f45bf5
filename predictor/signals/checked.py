"""From a number that a source gave to a reading: what cannot be true is not known."""

import math

import numpy as np

from models.series import Floats
from models.signals import Cause, Known, Reading, Signal, Unknown

PERCENT_ABOVE = 1.5  # a share above this is written in percent: some builds and dashboards multiply by 100
_CLIPPED = (Signal.ARRIVALS, Signal.TOKENS_IN, Signal.TOKENS_OUT)  # sums with a delta of a gauge dip below zero


def reading(signal: Signal, value: float, *, at: float) -> Reading:
    """A reading of a raw value in the signal's unit, or why it is none.

    A negative rate is zero: completions plus the change of what is inside falls below it when a pod goes away.
    Negative anything else is a fault of the source.
    """
    if not math.isfinite(value):
        return Unknown(Cause.NOT_FINITE, f"{value}")
    if value < 0 and signal not in _CLIPPED:
        return Unknown(Cause.NEGATIVE, f"{value:g}")
    if signal is Signal.KV_USAGE and value > PERCENT_ABOVE:
        value /= 100
    return Known(max(value, 0.0), at)


def values(signal: Signal, raw: Floats) -> Floats:
    """The same for many raw values of shape (n,); NaN where a reading would be Unknown."""
    clean = np.where(np.isfinite(raw), raw, np.nan)
    clean = np.maximum(clean, 0.0) if signal in _CLIPPED else np.where(clean < 0, np.nan, clean)
    if signal is Signal.KV_USAGE:
        clean = np.where(clean > PERCENT_ABOVE, clean / 100, clean)
    return clean
