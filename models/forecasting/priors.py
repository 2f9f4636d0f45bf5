"""Scores a target starts from while it has too few of its own.

Quantiles of `(sqrt(max over horizon + 3/8) - sqrt(level + 3/8)) / sigma`, measured on in-flight and arrival series of
LLM traffic at steps of 10, 30 and 60 s. Divided by sigma they depend on the number of steps in the horizon and on
hardly anything else, so they are kept by that number.
"""

import numpy as np

from models.series import Floats

PROBABILITIES: Floats = np.array([0.5, 0.75, 0.8, 0.9, 0.95, 0.975, 0.99])
STEPS: Floats = np.array([1, 2, 3, 6, 10, 20, 30, 60, 72], dtype=np.float64)
SCORES: Floats = np.array(
    [
        [-0.07, 0.63, 0.79, 1.33, 1.79, 2.25, 3.18],
        [0.39, 1.01, 1.20, 1.68, 2.02, 2.50, 3.30],
        [0.60, 1.25, 1.48, 1.96, 2.48, 2.91, 3.73],
        [1.00, 1.60, 1.75, 2.20, 2.70, 3.20, 4.30],
        [1.36, 1.93, 2.10, 2.60, 3.20, 4.10, 6.50],
        [1.60, 2.20, 2.35, 2.85, 3.45, 4.40, 8.00],
        [1.85, 2.41, 2.56, 2.98, 3.56, 4.40, 8.50],
        [2.17, 2.72, 2.92, 3.39, 4.12, 5.05, 9.59],
        [2.24, 2.90, 3.08, 3.83, 4.69, 7.19, 14.99],
    ],
)

SIGMA = 0.6  # one-step deviation of a square-rooted count: .5 from Poisson noise, a little from the level
SIGMA_WEIGHT = 5.0  # observations that SIGMA counts for: with five own residuals both count alike


def prior_scores(steps: int, probabilities: tuple[float, ...]) -> Floats:
    """Prior scores in units of sigma for a horizon of `steps` grid steps, shape (len(probabilities),).

    Between the numbers of steps measured it goes linearly in their logarithm; outside them, the nearest is taken.
    """
    at = np.log(np.clip(steps, STEPS[0], STEPS[-1]))
    row = np.array([np.interp(at, np.log(STEPS), column) for column in SCORES.T])
    return np.asarray(np.interp(probabilities, PROBABILITIES, row))


def shrunk_sigma(squares: Floats, count: Floats) -> Floats:
    """One-step deviation from the sum of squared residuals of square roots and their count, shrunk to SIGMA."""
    return np.sqrt((SIGMA_WEIGHT * SIGMA**2 + squares) / (SIGMA_WEIGHT + count))
