"""The one time-series type: values on a regular grid, gaps are NaN."""

import dataclasses
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
CLOSE = 1e-6  # of a step: times in decimals, and sums of steps of a second from 1970 on, are off by less


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """Values of one signal of one target on a regular grid.

    Attributes:
        start: Unix time of the first point, seconds.
        step: distance between two points, seconds.
        values: shape (n,), in the unit of the signal; NaN where nothing is known. Read-only.
    """

    start: float
    step: float
    values: Floats

    def __post_init__(self) -> None:
        if not (math.isfinite(self.step) and self.step > 0):
            raise ValueError(f"step is {self.step!r} s: must be a positive number of seconds")
        if not math.isfinite(self.start):
            raise ValueError(f"start is {self.start!r}: must be a Unix time in seconds")
        values = np.ascontiguousarray(self.values, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"values have shape {values.shape}: must be one-dimensional")
        if np.isinf(values).any():
            raise ValueError("values contain infinity: what is not known is NaN")
        if values is self.values:
            values = values.copy()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def end(self) -> float:
        """Unix time of the last point; one step before `start` when empty."""
        return self.start + (len(self.values) - 1) * self.step

    @property
    def times(self) -> Floats:
        """Unix times of the points, shape (n,)."""
        return self.start + self.step * np.arange(len(self.values), dtype=np.float64)

    @property
    def known(self) -> int:
        """How many points have a value."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    def since(self, time: float) -> "Series":
        """The points at or after `time` (Unix seconds)."""
        skip = min(max(math.ceil((time - self.start) / self.step - CLOSE), 0), len(self.values))
        return Series(self.start + skip * self.step, self.step, self.values[skip:])

    def until(self, time: float) -> "Series":
        """The points at or before `time` (Unix seconds)."""
        keep = min(max(math.floor((time - self.start) / self.step + CLOSE) + 1, 0), len(self.values))
        return Series(self.start, self.step, self.values[:keep])
