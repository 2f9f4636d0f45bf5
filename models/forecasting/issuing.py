"""From what is remembered to forecasts: the level of now, prior scores while young, bounds, quality."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from models.forecasting import learning, levels, priors, windows
from models.forecasting.forecast import Forecast, Quality
from models.forecasting.lanes import EXPERTS, Lanes, Plan
from models.forecasting.settings import DAY
from models.series import Floats

OWN = 30  # own scores up to which a forecast is cold
GAPS = 0.1  # share of unknown points in the level window from which on a forecast is degraded


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """The last level window of each lane, and when it ends.

    Attributes:
        end: grid index of the last column.
        values: shape (lanes, n); NaN where unknown and before a series begins.
        levels: level of each lane now, shape (lanes,).
        horizons: as asked, seconds, one a lane.
    """

    end: int
    values: Floats
    levels: Floats
    horizons: tuple[float, ...]


def forecasts(lanes: Lanes, plan: Plan, window: Window) -> list[Forecast]:
    """One forecast a lane."""
    bounds = _bounds(lanes, plan, window).tolist()
    probabilities = plan.settings.quantiles
    named = _names(lanes, plan)
    quality = _qualities(lanes, plan, window)
    return [
        Forecast(
            issued_at=window.end * plan.step,
            horizon=horizon,
            level=float(window.levels[i]),
            quantiles=dict(zip(probabilities, bounds[i], strict=True)),
            quality=quality[i],
            experts=named[i],
        )
        for i, horizon in enumerate(window.horizons)
    ]


def _names(lanes: Lanes, plan: Plan) -> list[Mapping[float, str]]:
    """The expert of the largest share at each probability. Few answers differ: lanes that agree share one mapping."""
    cold = (lanes.seen < plan.settings.cold_scores)[:, None]
    chosen = np.where(cold, len(EXPERTS), lanes.shares.argmax(axis=1))
    names = (*EXPERTS, "prior")
    answers, which = np.unique(chosen, axis=0, return_inverse=True)
    named = [{q: names[e] for q, e in zip(plan.settings.quantiles, row, strict=True)} for row in answers.tolist()]
    return [named[i] for i in which.ravel().tolist()]


def _bounds(lanes: Lanes, plan: Plan, window: Window) -> Floats:
    """Quantiles in the unit of the signal, shape (lanes, quantiles)."""
    level = levels.root(window.levels)
    own = learning.combined(lanes, level, _guess(lanes, plan, window))
    prior = level[:, None] + _prior(lanes, plan, window)
    count = lanes.seen[:, None]
    weight = count / (count + plan.settings.cold_scores)
    blend = np.where(np.isnan(own), prior, weight * np.where(np.isnan(own), 0.0, own) + (1 - weight) * prior)
    bounds = np.maximum(levels.square(blend), lanes.levels.last[:, None])
    return np.asarray(np.maximum.accumulate(bounds, axis=1))


def _guess(lanes: Lanes, plan: Plan, window: Window) -> Floats:
    """What the regressions say now, seen from the level of now."""
    here = lanes.levels.now()
    here[:, 0] = levels.root(window.levels)
    recent = np.full(len(lanes.steps), np.nan)
    for steps in np.unique(lanes.steps):
        rows = np.flatnonzero(lanes.steps == steps)
        ahead = windows.largest_ahead(window.values[rows], int(steps))
        recent[rows] = levels.root(ahead[:, -1 - int(steps)]) if ahead.shape[1] > steps else np.nan
    # Between two origins the usual jump lies between theirs: the nearer one alone would come a minute early or late.
    before, part = divmod(window.end, plan.every)
    times = plan.spacing * np.array([before, before + 1.0])[: 1 + (part > 0)]
    usual = learning.ring(lanes, plan).usual(times, plan.phases)
    usual = usual[:, :1] + (usual[:, -1:] - usual[:, :1]) * (part / plan.every)
    view = learning.View.of(here[:, None], recent[:, None], usual)
    return learning.guesses(lanes, view.inputs[:, 0], view.changes[:, 0], view.sizes[:, 0]).values


def _prior(lanes: Lanes, plan: Plan, window: Window) -> Floats:
    """Prior jumps in units of root, shape (lanes, quantiles)."""
    changes = np.diff(levels.root(window.values), axis=1)
    squares = np.nansum(changes**2, axis=1) / 2  # a difference of two points has twice the variance of one
    sigma = priors.shrunk_sigma(squares, np.count_nonzero(~np.isnan(changes), axis=1) * 1.0)
    each = {steps: priors.prior_scores(steps, plan.settings.quantiles) for steps in set(lanes.steps.tolist())}
    return np.asarray(sigma[:, None] * np.array([each[steps] for steps in lanes.steps.tolist()]))


def _qualities(lanes: Lanes, plan: Plan, window: Window) -> list[Quality]:
    unknown = np.isnan(window.values)
    begun = lanes.levels.begun >= window.values.shape[1]
    before = np.logical_and.accumulate(unknown, axis=1) & ~begun[:, None]
    points = np.maximum((~before).sum(axis=1), 1)
    gaps = (unknown & ~before).sum(axis=1) / points
    known = np.count_nonzero(~np.isnan(lanes.scores[:, 0]), axis=1)
    day = min(DAY / plan.spacing, plan.scores) * (1 - GAPS)
    grade = np.select([(gaps > GAPS) | (lanes.levels.gap > 0), known < OWN, known < day], [0, 1, 2], 3)
    named = (Quality.DEGRADED, Quality.COLD, Quality.YOUNG, Quality.SEASONED)
    return [named[i] for i in grade.tolist()]
