"""Quantiles of past scores, and what each would have cost."""

import numpy as np

from models.series import Floats


def quantiles(scores: Floats, probabilities: tuple[float, ...]) -> Floats:
    """Split-conformal quantiles: the ceil((n + 1) q)-th smallest of n scores, the largest where that is beyond n.

    Source: Vovk, Gammerman, Shafer (2005), section 4; Angelopoulos and Bates (2023), section 1.

    Args:
        scores: shape (rows, n), NaN where unknown.
        probabilities: q, in (0, 1).

    Returns:
        shape (rows, len(probabilities)); NaN for rows without a known score.
    """
    ordered = np.sort(scores, axis=1)
    count = np.count_nonzero(~np.isnan(scores), axis=1)
    ranks = np.ceil((count[:, None] + 1) * np.asarray(probabilities) - 1e-9).astype(np.intp)
    at = np.clip(ranks - 1, 0, np.maximum(count[:, None] - 1, 0))
    return np.asarray(np.take_along_axis(ordered, at, axis=1)) if scores.shape[1] else np.full(at.shape, np.nan)


def mean_pinball(scores: Floats, values: Floats, probabilities: tuple[float, ...]) -> Floats:
    """Mean pinball loss of constant `values` against `scores`, shape (rows, len(probabilities)).

    Source: Koenker and Bassett (1978): q (s - v) above the value, (1 - q) (v - s) below it.

    Args:
        scores: shape (rows, n), NaN where unknown (left out).
        values: shape (rows, len(probabilities)).
        probabilities: q, in (0, 1).
    """
    count = np.maximum(np.count_nonzero(~np.isnan(scores), axis=1), 1)
    losses = []
    for column, q in zip(values.T, probabilities, strict=True):
        over = np.nan_to_num(scores - column[:, None])
        losses.append(np.maximum(q * over, (q - 1) * over).sum(axis=1) / count)
    return np.stack(losses, axis=1)
