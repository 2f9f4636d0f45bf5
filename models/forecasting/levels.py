"""The present level: simple exponential smoothing, its weight chosen by the squared error of the last two hours.

The level of now comes from statsforecast. Levels at past origins, of which scores are made, come from the same
smoothing at a few fixed weights, carried along the series in one pass for all rows: fitting each origin anew would
cost a fit for every two minutes of a week.
"""

import numpy as np
from scipy import signal
from statsforecast.models import SimpleExponentialSmoothingOptimized

from models.series import Floats

WEIGHTS: Floats = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.99])  # over statsforecast's own range, .01 to .99
FEW = 100  # rows below which filtering row by row is faster
_SES = SimpleExponentialSmoothingOptimized()


def present_levels(rows: list[Floats]) -> Floats:
    """Level after the last point of each row, shape (len(rows),); rows hold at least one known value and no NaN.

    The model's own `forecast` is called, without a frame: a thousand series take half the time, one a seventieth.
    Where statsforecast gives no finite number (it does so silently), the last value stands in.
    """
    levels = np.array([_SES.forecast(y=row, h=1)["mean"][0] for row in rows], dtype=np.float64)
    last = np.array([row[-1] for row in rows])
    return np.where(np.isfinite(levels), np.maximum(levels, 0.0), last)


def past_levels(values: Floats, window: float) -> Floats:
    """Level after each point of rows without inner gaps, shape (rows, n); NaN before the first known value.

    Args:
        values: shape (rows, n); may begin with NaN.
        window: points over which squared errors are remembered (exponentially, to 1/e).
    """
    return _by_filter(values, window) if len(values) < FEW else _by_column(values, window)


def _by_filter(values: Floats, window: float) -> Floats:
    """One weight after the other over whole rows: 40 times as fast for one row, half as fast for a thousand."""
    begun = np.maximum.accumulate(~np.isnan(values), axis=1)
    first = np.take_along_axis(values, begun.argmax(axis=1)[:, None], axis=1)
    whole = np.where(begun, values, first)  # a level that starts at the first value errs by nothing before it
    out, least = np.full_like(whole, np.nan), np.full_like(whole, np.inf)
    for weight in WEIGHTS:
        smooth, _ = signal.lfilter([weight], [1.0, weight - 1.0], whole, axis=1, zi=(1 - weight) * whole[:, :1])
        ahead = np.zeros_like(whole)
        ahead[:, 1:] = (whole[:, 1:] - smooth[:, :-1]) ** 2
        errors = signal.lfilter([1.0], [1.0, -np.exp(-1.0 / window)], ahead, axis=1)
        better = errors < least * (1 - 1e-9)  # of equals the first, whatever the last bit says
        least, out = np.where(better, errors, least), np.where(better, smooth, out)
    return np.where(begun, out, np.nan)


def _by_column(values: Floats, window: float) -> Floats:
    """One column after the other for all rows and weights."""
    rows, n = values.shape
    keep = np.exp(-1.0 / window)
    smooth = np.full((rows, len(WEIGHTS)), np.nan)
    errors = np.zeros((rows, len(WEIGHTS)))
    out = np.full((rows, n), np.nan)
    for i in range(n):
        value = values[:, i, None]
        error = value - smooth
        known = ~np.isnan(error)
        errors = keep * errors + np.where(known, error, 0.0) ** 2
        smooth = np.where(known, smooth + WEIGHTS * error, value)
        out[:, i] = smooth[np.arange(rows), errors.argmin(axis=1)]
    return out
