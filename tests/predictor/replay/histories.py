"""Generated histories for the tests of the back-test."""

import numpy as np

from models.series import Floats, Series
from models.signals import Signal
from predictor.replay.recorded import Key

KEY: Key = ("chat", Signal.ARRIVALS)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def daily(days: float, *, step: float = MINUTE, seed: int = 1, low: float = 2.0, high: float = 20.0) -> Floats:
    """A day and night with noise."""
    times = np.arange(round(days * DAY / step)) * step
    wave = low + (high - low) * np.clip(np.sin(2 * np.pi * times / DAY), 0, None) ** 2
    return np.maximum(wave * (1 + 0.08 * np.random.default_rng(seed).standard_normal(len(times))), 0.0)


def steep(days: float, *, seed: int = 1) -> Floats:
    """Every hour the load goes from one to nine within two minutes, for a quarter of an hour."""
    minute = np.arange(round(days * 1440)) % 60
    busy = (minute >= 20) & (minute < 35)
    return np.where(busy, 9.0, 1.0) * (1 + 0.02 * np.random.default_rng(seed).standard_normal(len(minute)))


def surges(days: float, *, seed: int = 3) -> Floats:
    """Calm, with a surge of ten times now and then that nothing announces."""
    rng = np.random.default_rng(seed)
    values = 1.0 + 0.03 * rng.standard_normal(round(days * 1440))
    for start in rng.choice(len(values) - 20, size=round(days * 6), replace=False):
        values[start : start + 12] *= 10
    return np.abs(values)


def series(values: Floats, *, start: float = 0.0, step: float = MINUTE) -> Series:
    return Series(start, step, values)
