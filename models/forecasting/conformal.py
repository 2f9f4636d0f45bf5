"""Quantiles of past scores, and what each would have cost."""

import numpy as np
import numpy.typing as npt

from models.series import Floats


def quantiles(scores: npt.NDArray[np.floating], probabilities: tuple[float, ...]) -> Floats:
    """Split-conformal quantiles: the ceil((n + 1) q)-th smallest of n scores, the largest where that is beyond n.

    Source: Vovk, Gammerman, Shafer (2005), section 4; Angelopoulos and Bates (2023), section 1.

    Args:
        scores: shape (rows, n), n > 0; NaN where unknown.
        probabilities: q, in (0, 1).

    Returns:
        shape (rows, len(probabilities)); NaN for rows without a known score.
    """
    ordered = np.sort(scores, axis=1)
    count = np.count_nonzero(~np.isnan(scores), axis=1)[:, None]
    ranks = np.ceil((count + 1) * np.asarray(probabilities) - 1e-9).astype(np.intp)
    at = np.clip(ranks - 1, 0, np.maximum(count - 1, 0))
    return np.take_along_axis(ordered, at, axis=1).astype(np.float64)


def mean_pinball(
    scores: npt.NDArray[np.floating],
    values: Floats,
    probabilities: tuple[float, ...],
    *,
    weights: npt.NDArray[np.floating],
) -> Floats:
    """Mean pinball loss of constant `values` against `scores`, shape (rows, len(probabilities)).

    Source: Koenker and Bassett (1978): q (s - v) above the value, (1 - q) (v - s) below it, that is
    q s - q v + max(v - s, 0) on both sides.

    Args:
        scores: shape (rows, n), NaN where unknown (left out).
        values: shape (rows, len(probabilities)).
        probabilities: q, in (0, 1).
        weights: of each score, shape (rows, n).
    """
    known = ~np.isnan(scores)
    weight = np.where(known, weights, 0)
    clean = np.where(known, scores, 0)
    count = np.maximum(np.count_nonzero(known, axis=1), 1)[:, None]
    mean = (np.einsum("rn,rn->r", weight, clean)[:, None] - weight.sum(axis=1)[:, None] * values) / count
    below = [
        np.einsum("rn,rn->r", weight, np.maximum(column[:, None].astype(scores.dtype) - clean, 0))
        for column in values.T
    ]
    return np.asarray(np.asarray(probabilities) * mean + np.stack(below, axis=1) / count)
