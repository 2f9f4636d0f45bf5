"""The present level: simple exponential smoothing, its weight chosen by the squared error of the last two hours.

The level of now comes from statsforecast. Levels at past origins, of which scores are made, come from the same
smoothing at a few fixed weights, carried along the series in one pass for all rows: fitting each origin anew would
cost a fit for every two minutes of a week.
"""

import dataclasses

import numpy as np

from models.forecasting.library import SimpleExponentialSmoothingOptimized
from models.series import Floats

WEIGHTS: Floats = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.99])  # over statsforecast's own range, .01 to .99
SHIFT = 3 / 8  # Anscombe (1948): sqrt(count + 3/8) has nearly the same variance at every count
SPANS: Floats = np.array([5.0, 20.0, 15.0, 60.0])  # steps: two averages of the root, two of its absolute changes
_SES = SimpleExponentialSmoothingOptimized()


def root(values: Floats) -> Floats:
    """Square root that makes the spread of counts alike at every level; negatives count as zero."""
    return np.asarray(np.sqrt(np.maximum(values, 0.0) + SHIFT))


def square(roots: Floats) -> Floats:
    """Inverse of `root`. Negative roots are zero: squared, they would come back as load."""
    return np.asarray(np.maximum(np.maximum(roots, 0.0) ** 2 - SHIFT, 0.0))


def present_levels(rows: list[Floats]) -> Floats:
    """Level after the last point of each row, shape (len(rows),); rows hold at least one value and no NaN.

    The model's own `forecast` is called, without a frame: a thousand series take half the time, one a seventieth.
    Where statsforecast gives no finite number (it does so silently), the last value stands in.
    """
    levels = np.array([_SES.forecast(y=row, h=1)["mean"][0] for row in rows], dtype=np.float64)
    last = np.array([row[-1] for row in rows])
    return np.where(np.isfinite(levels), np.maximum(levels, 0.0), last)


@dataclasses.dataclass(slots=True)
class Levels:
    """Running levels of many rows, one a row.

    Attributes:
        smooth: smoothed value at each of WEIGHTS, shape (rows, weights).
        errors: remembered squared one-step errors of each, shape (rows, weights).
        averages: running averages over SPANS, shape (rows, 4).
        last: last known value, shape (rows,); NaN before the first.
        gap: points since it, shape (rows,).
        begun: points since the first known value, shape (rows,).
    """

    smooth: Floats
    errors: Floats
    averages: Floats
    last: Floats
    gap: Floats
    begun: Floats

    @classmethod
    def empty(cls, rows: int) -> "Levels":
        """Nothing known yet."""
        return cls(
            smooth=np.full((rows, len(WEIGHTS)), np.nan),
            errors=np.zeros((rows, len(WEIGHTS))),
            averages=np.tile([np.nan, np.nan, 0.0, 0.0], (rows, 1)),
            last=np.full(rows, np.nan),
            gap=np.zeros(rows),
            begun=np.zeros(rows),
        )

    def push(self, values: Floats, *, window: float) -> None:
        """Take in one point of every row, shape (rows,). An unknown one changes nothing but `gap`.

        `window` is the number of points over which squared errors are remembered (exponentially, to 1/e).
        """
        known = ~np.isnan(values)
        value = np.where(known, np.maximum(values, 0.0), self.last)
        error = value[:, None] - self.smooth
        begun = ~np.isnan(error)
        self.errors *= np.exp(-1.0 / window)
        self.errors += np.where(begun, error, 0.0) ** 2
        self.smooth = np.where(begun, self.smooth + WEIGHTS * error, value[:, None])
        here = root(value)
        seen = np.stack([here, here, *([np.abs(here - root(self.last))] * 2)], axis=1)
        moved = self.averages + (1 - np.exp(-1.0 / SPANS)) * (seen - self.averages)
        first = np.isnan(self.averages)
        self.averages = np.where(first, seen, np.where(np.isnan(moved), self.averages, moved))
        self.gap = np.where(known, 0.0, self.gap + 1)
        self.begun = self.begun + ~np.isnan(value)
        self.last = value

    def now(self) -> Floats:
        """Roots of the level, of the last value and both averages, then both average changes: (rows, 6)."""
        best = self.smooth[np.arange(len(self.smooth)), self.errors.argmin(axis=1)]
        return np.column_stack([root(best), root(self.last), self.averages])
