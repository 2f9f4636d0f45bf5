"""How long a request takes when it does not queue."""

import numpy as np

from models.series import Series

# The lower quartile of a day: the mean duration holds the queueing of the busy hours, and a plan made from it would ask
# for more replicas the later the last ones came.
UNLOADED_QUANTILE = 0.25
LOOKBACK = 86400.0  # seconds of the series to hand over: a day has quiet hours, and a new model is known after one
FEWEST_POINTS = 10


def unloaded(durations: Series) -> float | None:
    """Seconds a request takes on an unloaded replica, from a series of mean durations; None with too few points."""
    known = durations.values[np.isfinite(durations.values) & (durations.values > 0)]
    if len(known) < FEWEST_POINTS:
        return None
    return float(np.quantile(known, UNLOADED_QUANTILE))
