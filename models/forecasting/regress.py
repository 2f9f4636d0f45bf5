"""Ridge regressions of many rows at once, forgetting the past exponentially."""

import dataclasses

import numpy as np
import numpy.typing as npt

from models.series import Floats

PENALTY = 20.0  # pseudo-observations that pull each coefficient to zero: a young series keeps to its level


@dataclasses.dataclass(slots=True)
class Ridge:
    """Running second moments and the coefficients solved from them, one regression a row.

    Attributes:
        moments: sums of x x' and, in the last column, of x y; shape (rows, p, p + 1).
        count: remembered observations, shape (rows,).
        coefficients: shape (rows, p).
    """

    moments: Floats
    count: Floats
    coefficients: Floats

    @classmethod
    def empty(cls, rows: int, width: int) -> "Ridge":
        """Nothing observed; predicts zero."""
        return cls(np.zeros((rows, width, width + 1)), np.zeros(rows), np.zeros((rows, width)))

    def observe(self, inputs: Floats, target: Floats, weight: Floats, *, keep: float) -> None:
        """Take in one observation of every row.

        Args:
            inputs: x, shape (rows, p).
            target: y, shape (rows,).
            weight: of the squared error, shape (rows,); 0 leaves the row as it is.
            keep: what is kept of earlier observations.
        """
        seen = weight > 0
        fade = np.where(seen, keep, 1.0)
        both = np.concatenate([inputs, target[:, None]], axis=1)
        self.moments *= fade[:, None, None]
        self.moments += (weight[:, None] * inputs)[:, :, None] * both[:, None, :]
        self.count = fade * self.count + seen

    def solve(self, rows: npt.NDArray[np.intp]) -> None:
        """Solve `rows` (indices) anew.

        The penalty of each coefficient is in units of its own mean square, so that the solution does not depend on
        the units of input or output.
        """
        if not len(rows):
            return
        square = self.moments[rows, :, :-1]
        own = np.diagonal(square, axis1=1, axis2=2)
        penalty = PENALTY * own / np.maximum(self.count[rows], 1.0)[:, None]
        system = square + (penalty + 1e-9)[:, :, None] * np.eye(square.shape[1])
        self.coefficients[rows] = np.linalg.solve(system, self.moments[rows, :, -1:])[..., 0]

    def predict(self, inputs: Floats) -> Floats:
        """Predictions for inputs of shape (rows, p), shape (rows,)."""
        return np.asarray(np.einsum("rp,rp->r", inputs, self.coefficients))
