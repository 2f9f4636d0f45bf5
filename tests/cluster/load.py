"""How many requests a second come in over one recurring period."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import yaml


@dataclass(frozen=True)
class Season:
    """Straight lines between points, again and again.

    Args:
        period_s: seconds after which it repeats; each period starts at a Unix time that is a multiple of it.
        points: (seconds into the period, requests a second), in order.
    """

    period_s: float
    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        moments = [moment for moment, _ in self.points]
        if not moments or moments != sorted(moments) or moments[0] < 0 or moments[-1] >= self.period_s:
            raise ValueError(f"points must lie in order within [0, {self.period_s}): {moments}")
        if min(rate for _, rate in self.points) < 0:
            raise ValueError("a rate cannot be negative")

    def rate_per_s(self, at_s: float) -> float:
        """Return requests a second at Unix time `at_s`."""
        moments, rates = zip(*self.points, strict=True)
        return float(np.interp(at_s % self.period_s, moments, rates, period=self.period_s))

    def write(self, path: Path) -> Path:
        """Write it as YAML, in one step: a reader never sees half of it."""
        unfinished = path.with_suffix(".new")
        unfinished.write_text(yaml.safe_dump({**asdict(self), "points": [list(point) for point in self.points]}))
        return unfinished.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote, or a person: `period_s` and `points` as lists of two."""
        content = yaml.safe_load(path.read_text())
        return cls(float(content["period_s"]), tuple((float(at), float(rate)) for at, rate in content["points"]))


def ramp(*, period_s: float = 300.0, base_per_s: float, peak_per_s: float) -> Season:
    """Half of the period calm, then up within a tenth, a plateau of a quarter, down within a tenth."""
    shape = ((0.0, base_per_s), (0.5, base_per_s), (0.6, peak_per_s), (0.85, peak_per_s), (0.95, base_per_s))
    return Season(period_s, tuple((share * period_s, rate) for share, rate in shape))


def steady(per_s: float) -> Season:
    """Always the same."""
    return Season(1.0, ((0.0, per_s),))
