"""Quantiles of past scores, and what each would have cost."""

import dataclasses

import numpy as np
import numpy.typing as npt

from models.series import Floats

RARE = 0.98  # probabilities above it are doubted while young: p95 and p975, which floors follow, cost replica-hours


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """Quantiles and the mean pinball loss of each on the very scores they were taken from: (rows, probabilities)."""

    values: Floats
    losses: Floats


def quantiles(scores: npt.NDArray[np.floating], probabilities: tuple[float, ...]) -> Floats:
    """Split-conformal quantiles: the ceil((n + 1) q)-th smallest of n scores, the largest where that is beyond n.

    Source: Vovk, Gammerman, Shafer (2005), section 4; Angelopoulos and Bates (2023), section 1.

    Args:
        scores: shape (rows, n), n > 0; NaN where unknown.
        probabilities: q, in (0, 1).

    Returns:
        shape (rows, len(probabilities)); NaN for rows without a known score.
    """
    ordered = np.sort(scores, axis=1)  # unknown ones last
    at, _ = _places(ordered, probabilities)
    return np.take_along_axis(ordered, at, axis=1).astype(np.float64)


def measured(
    scores: npt.NDArray[np.floating], probabilities: tuple[float, ...], *, overlap: npt.NDArray[np.floating]
) -> Measured:
    """The same with ranks in `doubted`, and what these quantiles would have cost.

    Args:
        scores: as above; rows without a known score have no loss.
        probabilities: as above.
        overlap: scores that repeat each other, as horizons of so many origins do, shape (rows,).
    """
    ordered = np.sort(scores, axis=1)
    asked = doubted(probabilities, _known(ordered), window=ordered.shape[1], overlap=overlap[:, None])
    at, count = _places(ordered, asked)
    values = np.take_along_axis(ordered, at, axis=1).astype(np.float64)
    known = ordered if count.min(initial=0) == ordered.shape[1] else np.nan_to_num(ordered, copy=False)
    sums = np.cumsum(known, axis=1, dtype=np.float64)
    whole = sums[:, -1:]
    below = (at + 1) * values - np.take_along_axis(sums, at, axis=1)
    losses = (np.asarray(probabilities) * (whole - count * values) + below) / np.maximum(count, 1)
    return Measured(values, np.nan_to_num(losses))


def doubted(
    probabilities: tuple[float, ...],
    known: npt.NDArray[np.intp],
    *,
    window: int,
    overlap: npt.NDArray[np.floating],
) -> Floats:
    """Probabilities whose ranks to take while a window fills, shape (rows, len(probabilities)); one is the largest.

    What a conformal quantile covers depends on the scores it was taken from: on average q, with a deviation of
    sqrt(q (1 - q) / n) for n of them that are independent. Rare quantiles are taken higher by that deviation, less
    what is left of it once the window is full: asked of seasoned lanes as well, p99 would cover .994.

    Source: Vovk (2012), coverage given the calibration set is a beta distribution.

    Args:
        probabilities: q, in (0, 1).
        known: scores, shape (rows, 1).
        window: scores when it is full.
        overlap: scores that count as one, shape (rows, 1).
    """
    q = np.asarray(probabilities)
    missing = np.maximum(1 / np.maximum(known, 1) - 1 / window, 0.0)
    return np.asarray(np.where(q > RARE, np.minimum(q + np.sqrt(q * (1 - q) * overlap * missing), 1.0), q))


def _known(ordered: npt.NDArray[np.floating]) -> npt.NDArray[np.intp]:
    """How many scores of each row are known, shape (rows, 1)."""
    count: npt.NDArray[np.intp] = np.count_nonzero(~np.isnan(ordered), axis=1)[:, None]
    return count


def _places(
    ordered: npt.NDArray[np.floating], probabilities: tuple[float, ...] | Floats
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Column of each quantile, shape (rows, len(probabilities)), and how many scores are known, shape (rows, 1).

    Probabilities are the same for all rows, or have one row each.
    """
    count = _known(ordered)
    ranks = np.ceil((count + 1) * np.asarray(probabilities) - 1e-9).astype(np.intp)
    return np.clip(ranks - 1, 0, np.maximum(count - 1, 0)), count


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
