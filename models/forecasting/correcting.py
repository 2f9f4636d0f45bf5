"""The adaptive correction: how a band widens after misses and narrows after hits."""

import dataclasses

import numpy as np

from models.forecasting import conformal
from models.forecasting.lanes import SOME, Lanes, Plan
from models.series import Floats

GUARDED = 0.9  # probabilities above it react by `alarm`: p90 covers .91 on average and has no room to react more
CAUTION = 0.135  # widths by which a young lane widens more where it is missed by a width of its band
GUARDED_CAUTION = 0.018  # the same of guarded quantiles, over the share 1 - q they leave out: p95 gets .36
RARE_CAUTION = 0.036  # and of those above `conformal.RARE`: p99 gets 3.6
GROWN = 720  # scores from which on a lane is not young any more: a day of them at two minutes, an hour at five seconds
RARE_GROWN = 1440  # the same for quantiles above `conformal.RARE`: on a second day p99 still misses what is new to it
EXCUSED = 0.5  # hits that a miss below the value of then counts for: as none, p90 would cover more than .91 on average
EXACT = 1e-9  # roots: less than that is rounding
BESIDE = 120.0  # seconds between origins for which the reactions were chosen


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


@dataclasses.dataclass(frozen=True, slots=True)
class Temper:
    """How each quantile answers what came, shape (quantiles,).

    Attributes:
        reaction: widths by which a miss widens, per q.
        keep: what is kept of the correction from one origin to the next.
        caution: widths by which a young lane widens more where it is missed by a width.
        grown: scores from which on a lane is not young any more.
    """

    reaction: Floats
    keep: Floats
    caution: Floats
    grown: Floats

    @classmethod
    def of(cls, plan: Plan) -> "Temper":
        """The temper of each quantile on a grid.

        Where origins are n times as far apart as two minutes, three hours hold so many fewer of them: each is answered
        root of n times as strongly. Guarded quantiles also forget by the clock; the others by the number of origins,
        since p90 would cover .001 more on average.
        """
        settings, apart = plan.settings, max(plan.spacing / BESIDE, 1.0)
        left = 1 - np.asarray(settings.quantiles)
        guarded, rare = left < 1 - GUARDED - EXACT, left < 1 - conformal.RARE - EXACT
        return cls(
            reaction=np.where(guarded, settings.alarm, settings.reaction) * np.sqrt(apart),
            keep=np.where(guarded, settings.alarm_forgetting**apart, settings.forgetting),
            caution=np.select([rare, guarded], [RARE_CAUTION / left, GUARDED_CAUTION / left], CAUTION),
            grown=np.where(rare, RARE_GROWN, GROWN),
        )


def correct(lanes: Lanes, plan: Plan, outcome: Outcome) -> None:
    """Adaptive conformal correction: a miss widens by q, a hit narrows by 1 - q, in units of the reaction.

    What lay above the band but not above the value of then, below which no bound is issued, is half a hit: as a whole
    one it would narrow a band that missed, further and further while a series falls. Horizons of n origins overlap and
    repeat a miss n times: by the root of n less each time, what chance alone does to the correction is alike at all
    horizons. Young lanes widen by how far they were missed as well.

    Source: Gibbs and Candes (2021), with a leak that forgets.
    """
    probabilities, came, temper = np.asarray(plan.settings.quantiles), outcome.came[:, None], Temper.of(plan)
    ok = ~np.isnan(came) & ~np.isnan(outcome.band)
    over = np.where(ok, came - outcome.band, 0.0)
    missed = over > EXACT
    excused = missed & (came <= outcome.present[:, None] + EXACT)
    push = temper.reaction * np.where(excused, -EXCUSED * (1 - probabilities), missed - (1 - probabilities))
    young = np.clip(1 - lanes.seen[:, None] / temper.grown, 0.0, 1.0)
    far = np.where(excused, 0.0, np.clip(over / width(outcome.band), 0.0, 1.0))
    moved = lanes.shift + (push + temper.caution * young * far) / np.sqrt(plan.lag(lanes.steps))[:, None]
    lanes.shift = np.where(ok, temper.keep * moved, lanes.shift)


def width(band: Floats) -> Floats:
    """From the least quantile to the largest, roots, shape (lanes, 1); never zero."""
    return np.asarray(np.maximum(band[:, -1:] - band[:, :1], SOME))
