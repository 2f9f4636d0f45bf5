"""How good the forecasts were, beside how good the rivals' would have been."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from models.forecasting import scoring
from models.series import Floats
from predictor.replay import rivals
from predictor.replay.backtest import Replayed

BLOCK = 3 * 3600.0  # seconds: the worst three hours
OURS = "Floorcast"
SAMPLES = 40  # origins at which a rival that is too slow for all of them is asked


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """One forecaster on one replay.

    Attributes:
        name: of the forecaster.
        scored: forecasts that count.
        coverage: share of values at or below each quantile, shape (q,).
        pinball: mean loss at each, in the unit of the signal.
        worst: least coverage of any three hours in a row, shape (q,); NaN with less than three hours.
        ratio: Floorcast's loss over this one's on the same origins, shape (q,); below 1 Floorcast is better.
    """

    name: str
    scored: int
    coverage: Floats
    pinball: Floats
    worst: Floats
    ratio: Floats


@dataclasses.dataclass(frozen=True, slots=True)
class Scores:
    """Every forecaster on one replay, Floorcast first.

    Attributes:
        replayed: what was scored.
        table: by forecaster.
        hours: coverage by hour of day, shape (24, q); NaN for an hour without forecasts.
        hourly_pinball: likewise.
        sampled: forecasters that were asked at some origins only, and at how many.
    """

    replayed: Replayed
    table: tuple[Score, ...]
    hours: Floats
    hourly_pinball: Floats
    sampled: Mapping[str, int]

    @property
    def ours(self) -> Score:
        """Floorcast's."""
        return self.table[0]


def of(one: Replayed, zone: dt.tzinfo, *, slow: bool, tell: Callable[[str], None] = lambda _: None) -> Scores:
    """Scores of a replay.

    Args:
        one: the replay.
        zone: time zone of the hours of day.
        slow: whether rivals that are asked at some origins only are asked at all.
        tell: called with the name of each rival before it is asked.
    """
    came = one.scored
    known = np.flatnonzero(~np.isnan(came) & ~np.isnan(one.bounds).any(axis=1))
    sampled: dict[str, int] = {}
    table = [_score(OURS, one, came, one.bounds)]
    for rival in _asked(slow=slow):
        tell(rival.name)
        places = known[np.linspace(0, len(known) - 1, min(SAMPLES, len(known))).astype(np.intp)]
        places = places if rival.sampled else np.arange(len(one.origins))
        bounds = np.full_like(one.bounds, np.nan)
        bounds[places] = rival.bounds(one, places.tolist())
        table.append(_score(rival.name, one, came, bounds))
        if rival.sampled:
            sampled[rival.name] = len(places)
    hours, losses = _by_hour(one, zone)
    return Scores(one, tuple(table), hours, losses, sampled)


def _asked(*, slow: bool) -> Iterator[rivals.Rival]:
    missing = rivals.missing()
    return (one for one in rivals.ALL if one.name not in missing and (slow or not one.sampled))


def _score(name: str, one: Replayed, came: Floats, bounds: Floats) -> Score:
    block = max(round(BLOCK / (one.every * one.series.step)), 1)
    dense = np.count_nonzero(~np.isnan(bounds[:, 0])) > len(bounds) / 2
    both = ~np.isnan(one.bounds) & ~np.isnan(bounds)
    shared = np.where(both.all(axis=1), came, np.nan)
    own = scoring.pinball(shared, one.bounds, one.probabilities)
    his = scoring.pinball(shared, bounds, one.probabilities)
    least = 1e-9 * (1 + float(np.nanmax(came, initial=0.0)))  # where neither errs, no ratio says anything
    return Score(
        name=name,
        scored=int(np.count_nonzero(~np.isnan(came) & ~np.isnan(bounds).any(axis=1))),
        coverage=scoring.coverage(came, bounds),
        pinball=his if name != OURS else own,
        worst=np.array(
            [scoring.worst_block(came, column, block) if dense else np.nan for column in bounds.T], dtype=np.float64
        ),
        ratio=np.where(his > least, own / np.maximum(his, least), np.nan),
    )


def _by_hour(one: Replayed, zone: dt.tzinfo) -> tuple[Floats, Floats]:
    stamps = pd.to_datetime(one.times, unit="s", utc=True)
    hours = np.asarray(stamps.tz_convert(zone).hour)
    came = one.scored
    each = [np.where(hours == hour, came, np.nan) for hour in range(24)]
    coverage = np.stack([scoring.coverage(values, one.bounds) for values in each])
    return coverage, np.stack([scoring.pinball(values, one.bounds, one.probabilities) for values in each])


@dataclasses.dataclass(frozen=True, slots=True)
class Overall:
    """A forecaster over all replays.

    Attributes:
        name: of the forecaster.
        coverage: mean, shape (q,).
        least: least coverage of a replay.
        worst: mean of the worst three hours.
        ratio: geometric mean of Floorcast's loss over this one's.
    """

    name: str
    coverage: Floats
    least: Floats
    worst: Floats
    ratio: Floats


def overall(found: list[Scores]) -> list[Overall]:
    """Each forecaster over the replays that have scores; losses are compared as ratios, since units differ."""
    names = list(dict.fromkeys(score.name for one in found for score in one.table))
    out = []
    for name in names:
        mine = [score for one in found for score in one.table if score.name == name and score.scored]
        if mine:
            ratios = np.log(np.stack([score.ratio for score in mine]))
            out.append(
                Overall(
                    name,
                    _mean(np.stack([score.coverage for score in mine])),
                    np.nanmin(np.stack([score.coverage for score in mine]), axis=0),
                    _mean(np.stack([score.worst for score in mine])),
                    np.exp(_mean(ratios)),
                )
            )
    return out


def _mean(rows: Floats) -> Floats:
    """Mean of what is known in each column; NaN where nothing is."""
    known = np.isfinite(rows)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, rows, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
