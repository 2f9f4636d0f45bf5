"""Room for surges that nothing announces: what came within a horizon lately, whatever the load was just before.

A band that follows the level tells how much may come where the present tells something of it. Where surges begin
without warning it rises after each one, too late for that one, and is paid for until it has come down again. A fleet of
one size then serves as many requests for less (docs/decisions/0009). So both are judged by what each would have cost
over the last day: a bound that follows, as the replicas asked for it stay, and a quantile of that day's horizon maxima.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from models.forecasting import conformal, levels
from models.series import Floats

Ints = npt.NDArray[np.intp]
JUDGED = (0.9, 0.99)  # least and largest probability by whose bounds replicas are asked for
# Seconds for which replicas stay beyond the horizon they were asked for: the hold time of the rules and two steps down.
STAYS = 300.0
# Times the cost of what follows, up to which the steady bound is planned for, and from which on it counts for nothing.
# On the traces of the benchmark it is .7 to 1.3 where nothing announces a surge, 1.4 to 15 elsewhere.
ALL, NONE = 1.2, 1.35
# When a level has ended: times the dearest spell of the window that waiting for it has cost, and the share of what came
# before that lay as low as what has come lately. Between two surges the load is as low as it was for much of the day.
DEARER, AS_LOW = 1.5, 0.05
ROUNDING = 1e-3  # of maxima kept in half precision
WHOLE = 0.9  # of the window that has to be known
SPAN = 86400.0  # seconds that the window has to span: a part of a day would take the afternoon for all there is
DEAREST = 1e38  # cost that is kept: 32 bits hold three times as much, and no load can come near
FOLLOWS, STAYS_PUT = 0, 1  # places in `bounds` and `costs`


@dataclasses.dataclass(frozen=True, slots=True)
class Present:
    """What is seen at an origin, roots, shape (lanes,); NaN where unknown.

    Attributes:
        now: last value.
        lately: average of the last twenty steps.
        most: largest value within the last horizon.
    """

    now: Floats
    lately: Floats
    most: Floats


@dataclasses.dataclass(slots=True)
class Steady:
    """What is remembered of one kind of bound and of the other; the first axis of each array is the lane.

    Attributes:
        bounds: roots, what replicas that follow the band were standing for and what came lately, at the last origins;
            shape (lanes, delay, 2, quantiles).
        costs: pinball loss of both in the unit of the signal, summed over the judged probabilities; shape (lanes, 2,
            scores), NaN where unknown.
        maxima: roots of past horizon maxima, in `learning.UNIT`, shape (lanes, scores).
        quantiles: of these, roots, shape (lanes, quantiles).
        share: weight of the steady bound in what is planned for, shape (lanes,).
    """

    bounds: Floats
    costs: npt.NDArray[np.float32]
    maxima: npt.NDArray[np.float16]
    quantiles: Floats
    share: Floats

    @classmethod
    def empty(cls, rows: int, *, delay: int, scores: int, probabilities: int) -> "Steady":
        """Nothing known: the band is planned for."""
        return cls(
            bounds=np.full((rows, delay, 2, probabilities), np.nan),
            costs=np.full((rows, 2, scores), np.nan, dtype=np.float32),
            maxima=np.full((rows, scores), np.nan, dtype=np.float16),
            quantiles=np.full((rows, probabilities), np.nan),
            share=np.zeros(rows),
        )

    def issue(
        self, bands: Floats, present: Present, probabilities: tuple[float, ...], *, slot: int, stays: Ints
    ) -> None:
        """Keep both bounds of an origin until its horizon has passed.

        Args:
            bands: of the last origins, that of `slot` among them, roots, shape (lanes, delay, quantiles).
            present: what is seen at the origin.
            probabilities: of the quantiles.
            slot: place of the origin.
            stays: origins for which replicas stay, shape (lanes,).
        """
        ago = np.arange(int(stays.max(initial=0)) + 1)
        standing = bands[:, (slot - ago) % bands.shape[1]]
        standing[ago > stays[:, None]] = np.nan
        self.bounds[:, slot, FOLLOWS] = np.maximum(np.fmax.reduce(standing, axis=1), present.now[:, None])
        # With its rounding: following a load that does not move costs nothing then, and is gone on with when it ends.
        steady = self._kept(self.quantiles, bands[:, slot], present, probabilities)
        self.bounds[:, slot, STAYS_PUT] = np.maximum(steady, present.now[:, None])

    def score(self, came: Floats, probabilities: tuple[float, ...], *, slots: Ints, column: int) -> None:
        """Take in what came, roots, shape (lanes,), of the origins in `slots`."""
        judged = _judged(probabilities)
        q = np.asarray(probabilities)[judged]
        bounds = levels.square(self.bounds[np.arange(len(came)), slots][..., judged])
        over = levels.square(came)[:, None, None] - bounds
        self.costs[:, :, column] = np.minimum(np.maximum(q * over, (q - 1) * over).sum(axis=2), DEAREST)

    def measure(
        self, rows: Ints, maxima: npt.NDArray[np.floating], probabilities: tuple[float, ...], *, newest: int
    ) -> None:
        """Take the quantiles of lanes `rows` anew, and the share of the steady bound.

        Args:
            rows: of the lanes.
            maxima: of these, roots, shape (len(rows), scores).
            probabilities: of the quantiles.
            newest: column of the newest score.
        """
        self.quantiles[rows] = conformal.quantiles(maxima, probabilities)
        costs = self.costs[rows]
        known = np.asarray(~np.isnan(costs).any(axis=1))
        sums = np.where(known[:, None], costs, 0.0).sum(axis=2, dtype=np.float64)
        ratio = sums[:, STAYS_PUT] / np.maximum(sums[:, FOLLOWS], 1e-9)
        enough = (known.sum(axis=1) >= WHOLE * known.shape[1]) & (sums[:, FOLLOWS] > 0)
        share = np.where(enough, np.clip((NONE - ratio) / (NONE - ALL), 0.0, 1.0), 0.0)
        kept, oldest_first = np.flatnonzero(share > 0), np.arange(newest + 1 - costs.shape[2], newest + 1)
        ended = _ended(costs[kept][..., oldest_first], maxima[kept][..., oldest_first])
        self.share[rows] = share
        self.share[rows[kept[ended]]] = 0.0

    def planned(self, bounds: Floats, present: Present, probabilities: tuple[float, ...]) -> Floats:
        """What to keep room for, in the unit of the signal, shape (lanes, quantiles).

        Args:
            bounds: of the forecast, likewise; not below the value of now, and neither is what is planned for.
            present: what is seen now.
            probabilities: of the quantiles.
        """
        share = self.share[:, None]
        # Less the rounding: 60 in flight at 6 a replica would need an eleventh one, and an idle target its first.
        exact = self.quantiles / (1 + ROUNDING)
        kept = levels.square(self._kept(exact, levels.root(bounds), present, probabilities))
        steady = np.where(share > 0, np.maximum(kept, levels.square(present.now)[:, None]), bounds)
        return np.maximum.accumulate(share * steady + (1 - share) * bounds, axis=1)

    def _kept(self, steady: Floats, bands: Floats, present: Present, probabilities: tuple[float, ...]) -> Floats:
        """The steady bound, roots; at least the band where the load has outgrown what the last day tells of.

        That is where it rose above the largest judged quantile within the last horizon, or lies above the least one on
        average: nobody has room for a new level who waits until it has become usual.
        """
        judged = _judged(probabilities)
        if not judged:
            return steady
        least, most = self.quantiles[:, judged[0]], self.quantiles[:, judged[-1]]
        outgrown = (present.most > most * (1 + ROUNDING)) | (present.lately > least)
        return np.where(outgrown[:, None], np.fmax(steady, bands), steady)


def _ended(costs: npt.NDArray[np.float32], maxima: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
    """Whether the level that room is kept for has ended, shape (rows,).

    As long as nothing comes that needs it, room costs more than following; when something comes, less. What it has cost
    more since it was last worth it is compared with the most that this came to before, and what came in the latter half
    of that spell with what came before the spell. The cost alone would let go of the room between two surges that are
    further apart than usual, a low level alone would do so in any lull.
    Source of the sum: Page (1954), Continuous inspection schemes.

    Args:
        costs: oldest first, shape (rows, 2, scores); NaN where unknown.
        maxima: likewise, roots, shape (rows, scores).
    """
    more = np.nan_to_num(costs[:, STAYS_PUT] - NONE * costs[:, FOLLOWS], copy=False)
    spells = np.zeros((more.shape[0], more.shape[1] + 1))
    np.cumsum(more, axis=1, out=spells[:, 1:])
    spells -= np.minimum.accumulate(spells, axis=1)
    scores = np.arange(spells.shape[1])
    begun = scores[-1] - np.argmax(spells[:, ::-1] == 0, axis=1)
    ended = np.asarray(spells[:, -1] > DEARER * spells.max(axis=1, where=scores <= begun[:, None], initial=0.0))
    dear = np.flatnonzero(ended)
    ended[dear] = _lower(maxima[dear], begun[dear][:, None])
    return ended


def _lower(maxima: npt.NDArray[np.floating], begun: Ints) -> npt.NDArray[np.bool_]:
    """Whether most of the latter half since score number `begun` lies below nearly all before it; not where unknown."""
    scores = np.arange(maxima.shape[1])
    latter = (begun + maxima.shape[1]) // 2
    lately = conformal.quantiles(np.where(scores >= latter, maxima, np.nan), (0.5,))
    before = conformal.quantiles(np.where(scores < begun, maxima, np.nan), (AS_LOW,))
    return np.asarray(lately < before)[:, 0]


def _judged(probabilities: tuple[float, ...]) -> list[int]:
    """Places of those by whose bounds replicas are asked for."""
    return [i for i, q in enumerate(probabilities) if JUDGED[0] <= q <= JUDGED[1]]
