"""From what is remembered to forecasts: the level of now, prior scores while young, bounds, quality."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from models.forecasting import learning, levels, priors, windows
from models.forecasting.forecast import Forecast, Quality
from models.forecasting.lanes import EXPERTS, LEVEL_INPUTS, NOISE_INPUTS, Ints, Lanes, Plan
from models.forecasting.settings import DAY
from models.series import Floats

OWN = 30  # own scores up to which a forecast is cold
GAPS = 0.1  # share of unknown points in the level window from which on a forecast is degraded


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """What the last points say, one row a series; `of_lanes` makes it one row a lane.

    Attributes:
        end: grid index of the last column.
        recent: last points, shape (rows, n); NaN where unknown and before a series begins.
        levels: level now, shape (rows,).
        sigma: deviation of one step on the scale of roots, shape (rows,).
        unknown: points of the level window that are unknown, also those before a series begins, shape (rows,).
        count: points in the level window.
    """

    end: int
    recent: Floats
    levels: Floats
    sigma: Floats
    unknown: Floats
    count: int

    @classmethod
    def of(cls, end: int, recent: Floats, present: Floats, *, count: int) -> "Window":
        """Window of the last `count` of the `recent` points, with the levels at `present`."""
        values = recent[:, -count:]
        changes = np.diff(levels.root(values), axis=1)
        known = ~np.isnan(changes)
        squares = np.where(known, changes, 0.0)
        # A difference of two points has twice the variance of one.
        sigma = priors.shrunk_sigma(np.einsum("rn,rn->r", squares, squares) / 2, known.sum(axis=1) * 1.0)
        return cls(end, recent, present, sigma, np.isnan(values).sum(axis=1) * 1.0, count)

    def of_lanes(self, rows: Ints, *, longest: int) -> "Window":
        """The same by lane; `rows` has the row of each, `longest` is the longest horizon in grid steps."""
        return dataclasses.replace(
            self,
            recent=self.recent[rows, -1 - longest :],
            levels=self.levels[rows],
            sigma=self.sigma[rows],
            unknown=self.unknown[rows],
        )


def forecasts(lanes: Lanes, plan: Plan, window: Window, horizons: Sequence[float]) -> list[Forecast]:
    """One forecast a lane, for horizons as asked (seconds); `window` has one row a lane."""
    view = _view(lanes, plan, window)
    bounds = _bounds(lanes, plan, window, view)
    probabilities = plan.settings.quantiles
    issued_at = window.end * plan.step
    return [
        Forecast(issued_at, horizon, level, dict(zip(probabilities, values, strict=True)), quality, experts, steady)
        for horizon, level, values, quality, experts, steady in zip(
            horizons,
            window.levels.tolist(),
            bounds.tolist(),
            _qualities(lanes, plan, window),
            _names(lanes, plan),
            _steady(lanes, plan, bounds, view),
            strict=True,
        )
    ]


def _steady(lanes: Lanes, plan: Plan, bounds: Floats, view: learning.View) -> Iterator[Mapping[float, float]]:
    """What to plan for, by probability, a lane each; nothing where that is the forecast."""
    rows = lanes.steady.planned(bounds, view.present(0), plan.settings.quantiles)
    for row, is_planned in zip(rows, (lanes.steady.share > 0).tolist(), strict=True):
        yield dict(zip(plan.settings.quantiles, row.tolist(), strict=True)) if is_planned else {}


def _names(lanes: Lanes, plan: Plan) -> list[Mapping[float, str]]:
    """The expert of the largest share at each probability. Few answers differ: lanes that agree share one mapping."""
    cold = (lanes.seen < plan.settings.cold_scores)[:, None]
    chosen = np.where(cold, len(EXPERTS), lanes.shares.argmax(axis=1))
    names = (*EXPERTS, "prior")
    found: dict[bytes, Mapping[float, str]] = {}
    answers = []
    for row in chosen.astype(np.uint8):
        answer = found.get(row.tobytes())
        if answer is None:
            answer = {q: names[e] for q, e in zip(plan.settings.quantiles, row.tolist(), strict=True)}
            found[row.tobytes()] = answer
        answers.append(answer)
    return answers


def _bounds(lanes: Lanes, plan: Plan, window: Window, view: learning.View) -> Floats:
    """Quantiles in the unit of the signal, shape (lanes, quantiles)."""
    level = levels.root(window.levels)
    guess = learning.guesses(lanes, view.inputs[:, 0], view.changes[:, 0], view.sizes[:, 0])
    own = learning.combined(lanes, level, guess.values)
    prior = level[:, None] + window.sigma[:, None] * _prior(lanes, plan)
    count = lanes.seen[:, None]
    weight = count / (count + plan.settings.cold_scores)
    blend = np.where(np.isnan(own), prior, weight * np.where(np.isnan(own), 0.0, own) + (1 - weight) * prior)
    bounds = np.maximum(levels.square(blend), lanes.levels.last[:, None])
    return np.asarray(np.maximum.accumulate(bounds, axis=1))


def _view(lanes: Lanes, plan: Plan, window: Window) -> learning.View:
    """What is seen now, from the level of now."""
    here = lanes.levels.now()
    here[:, 0] = levels.root(window.levels)
    recent = np.full(len(lanes.steps), np.nan)
    for steps in np.unique(lanes.steps):
        rows = np.flatnonzero(lanes.steps == steps)
        recent[rows] = levels.root(windows.largest_ahead(window.recent[rows, -1 - int(steps) :], int(steps))[:, 0])
    return learning.View.of(here[:, None], recent[:, None], _usual(lanes, plan, window.end)[:, None])


def _usual(lanes: Lanes, plan: Plan, end: int) -> Floats:
    """Usual jumps and sizes at grid point `end`, shape (lanes, 2 * widths).

    Between two origins they lie between theirs: the nearer one alone would come a minute early or late.
    """
    before, part = divmod(end, plan.every)
    slot = before % lanes.delay
    usual = np.concatenate([lanes.inputs[:, slot, LEVEL_INPUTS:], lanes.noise_inputs[:, slot, NOISE_INPUTS:]], axis=1)
    if part:
        after = learning.ring(lanes, plan).usual(np.array([plan.spacing * (before + 1)]), plan.phases)[:, 0]
        usual += (after - usual) * (part / plan.every)
    return usual


def _prior(lanes: Lanes, plan: Plan) -> Floats:
    """Prior jumps in units of sigma, shape (lanes, quantiles)."""
    each = {steps: priors.prior_scores(steps, plan.settings.quantiles) for steps in set(lanes.steps.tolist())}
    return np.array([each[steps] for steps in lanes.steps.tolist()])


def _qualities(lanes: Lanes, plan: Plan, window: Window) -> list[Quality]:
    begun = np.minimum(lanes.levels.begun, window.count)
    gaps = (window.unknown - (window.count - begun)) / np.maximum(begun, 1)
    known = np.count_nonzero(~np.isnan(lanes.scores[:, 0]), axis=1)
    day = min(DAY / plan.spacing, plan.scores) * (1 - GAPS)
    grade = np.select([(gaps > GAPS) | (lanes.levels.gap > 0), known < OWN, known < day], [0, 1, 2], 3)
    named = (Quality.DEGRADED, Quality.COLD, Quality.YOUNG, Quality.SEASONED)
    return [named[i] for i in grade.tolist()]
