"""The largest value ahead of each point of a grid."""

import numpy as np

from models.series import Floats


def largest_ahead(values: Floats, steps: int) -> Floats:
    """Largest value over the next `steps` points of each point, shape (rows, n).

    NaN where these points lie beyond the end, or where fewer than half of them are known: the largest of a few
    known points says little about the largest of all.
    """
    rows, n = values.shape
    out = np.full((rows, n), np.nan)
    if n <= steps:
        return out
    known = ~np.isnan(values)
    counts = np.cumsum(np.pad(known, ((0, 0), (1, 0))), axis=1)
    enough = (counts[:, steps + 1 :] - counts[:, 1:-steps]) * 2 >= steps
    out[:, :-steps] = np.where(enough, _sliding_maximum(np.where(known, values, -np.inf), steps), np.nan)
    return out


def _sliding_maximum(values: Floats, steps: int) -> Floats:
    """Maximum of `steps` points after each point, by doubling: log2(steps) passes instead of `steps`."""
    width, best = 1, values[:, 1:]
    while width * 2 <= steps:
        best = np.maximum(best[:, :-width], best[:, width:])
        width *= 2
    rest = steps - width
    return np.maximum(best[:, : best.shape[1] - rest], best[:, rest:]) if rest else best
