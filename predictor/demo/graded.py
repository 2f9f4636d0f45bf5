"""How good the service says its forecasts were, beside a back-test of what it remembers of the same day."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from models.forecasting import scoring
from models.series import Floats
from models.signals import Signal
from predictor.demo import scenario
from predictor.demo.stage import Stage
from predictor.grading import Grade
from predictor.outlooks import FORECAST_SIGNALS
from predictor.replay import backtest

KEY, STEP = scenario.TARGET.key, scenario.PACE.slow


@dataclasses.dataclass(frozen=True, slots=True)
class Graded:
    """Of one signal.

    Attributes:
        scored: forecasts that the service has scored.
        coverage: probability -> share of them that came true, as the service tells it in its metrics.
        backtested: the same share by the back-test.
    """

    scored: int
    coverage: Mapping[float, float]
    backtested: Mapping[float, float]


def of(stage: Stage) -> dict[Signal, Graded]:
    """By signal, of those that have a score; takes some seconds for a day."""
    plans = stage.entry.plans
    grades = {signal: plans.grades[signal] for signal in FORECAST_SIGNALS if plans and signal in plans.grades}
    if not grades:
        return {}
    # The service looked as far ahead as its pods' warm-ups said at the time: so does the back-test.
    ahead = {scenario.MIDNIGHT + frame.t: _steps(frame.ahead) for frame in stage.frames if frame.band}
    replays = backtest.run({(KEY, signal): stage.remembered(signal) for signal in grades}, _questions(ahead.values()))
    found = {}
    for signal, grade in grades.items():
        came, bounds = _as_served([one for one in replays if one.key[1] is signal], ahead)
        found[signal] = Graded(grade.scored, grade.coverage, _covered(came, bounds, grade))
    return found


def _questions(ahead: Iterable[int]) -> backtest.Questions:
    beyond = scenario.PACE.slow + scenario.PACE.signal_age  # what of a horizon is no warm-up
    return backtest.Questions(
        {KEY: tuple(steps * STEP - beyond for steps in sorted(set(ahead)))},
        interval=scenario.PACE.slow,
        signal_age=scenario.PACE.signal_age,
        since=scenario.MIDNIGHT,
    )


def _as_served(replays: Sequence[backtest.Replayed], ahead: Mapping[float, int]) -> tuple[Floats, Floats]:
    """What came at each origin, shape (n,), and the bounds, shape (n, quantiles), at the horizon it had in the service.

    Args:
        replays: of one signal, one for each horizon.
        ahead: Unix time of an origin -> steps of its horizon.
    """
    there = np.array([ahead.get(time, 0) for time in replays[0].times.tolist()])
    came, bounds = np.full(len(there), np.nan), np.full_like(replays[0].bounds, np.nan)
    for one in replays:
        mine = there == one.steps
        came[mine], bounds[mine] = one.came[mine], one.bounds[mine]
    return came, bounds


def _covered(came: Floats, bounds: Floats, grade: Grade) -> dict[float, float]:
    """Share covered of the newest forecasts whose horizon has passed: as many as the service counts."""
    last = np.flatnonzero(~np.isnan(came))[-grade.scored :]
    shares = scoring.coverage(came[last], bounds[last])
    return dict(zip(grade.coverage, shares.tolist(), strict=True))


def _steps(seconds: float) -> int:
    return max(round(seconds / STEP), 1)
