"""The present level: simple exponential smoothing, its weight chosen by the squared error of the last two hours.

The level of now comes from statsforecast. Levels at past origins, of which scores are made, come from the same
smoothing at a few fixed weights, carried along the series in one pass for all rows: fitting each origin anew would
cost a fit for every two minutes of a week.
"""

import numpy as np
from statsforecast.models import SimpleExponentialSmoothingOptimized

from models.series import Floats

WEIGHTS: Floats = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.99])  # over statsforecast's own range, .01 to .99
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
