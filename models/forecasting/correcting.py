"""The adaptive correction: how a band widens after misses and narrows after hits."""

import dataclasses

import numpy as np

from models.forecasting.lanes import SOME, Lanes, Plan
from models.series import Floats

CAUTION = 1.5  # reactions by which a young lane widens more where it is missed by a width of its band
GROWN = 720  # scores from which on a lane is not young any more: a day of them at two minutes, an hour at five seconds
EXCUSED = 0.5  # hits that a miss below the value of then counts for: as none, p90 would cover more than .91 on average
EXACT = 1e-9  # roots: less than that is rounding


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """A band and what became of it, as roots; NaN where unknown.

    Attributes:
        band: quantiles forecast, before the value of then became their least, shape (lanes, quantiles).
        present: the value of then, shape (lanes,).
        came: the largest value within the horizon, shape (lanes,).
    """

    band: Floats
    present: Floats
    came: Floats


def correct(lanes: Lanes, plan: Plan, outcome: Outcome) -> None:
    """Adaptive conformal correction: a miss widens by q, a hit narrows by 1 - q, in units of `reaction`.

    What lay above the band but not above the value of then, below which no bound is issued, is half a hit: as a whole
    one it would narrow a band that missed, further and further while a series falls. Horizons of n origins overlap and
    repeat a miss n times: by the root of n less each time, what chance alone does to the correction is alike at all
    horizons. Young lanes widen by how far they were missed as well.

    Source: Gibbs and Candes (2021), with a leak that forgets.
    """
    probabilities, came = np.asarray(plan.settings.quantiles), outcome.came[:, None]
    ok = ~np.isnan(came) & ~np.isnan(outcome.band)
    over = np.where(ok, came - outcome.band, 0.0)
    missed = over > EXACT
    excused = missed & (came <= outcome.present[:, None] + EXACT)
    young = np.clip(1 - lanes.seen / GROWN, 0.0, 1.0)[:, None]
    push = missed - (1 - probabilities) + CAUTION * young * np.clip(over / width(outcome.band), 0.0, 1.0)
    reaction = plan.settings.reaction / np.sqrt(plan.lag(lanes.steps))[:, None]
    moved = lanes.shift + reaction * np.where(excused, -EXCUSED * (1 - probabilities), push)
    lanes.shift = np.where(ok, plan.settings.forgetting * moved, lanes.shift)


def width(band: Floats) -> Floats:
    """From the least quantile to the largest, roots, shape (lanes, 1); never zero."""
    return np.asarray(np.maximum(band[:, -1:] - band[:, :1], SOME))
