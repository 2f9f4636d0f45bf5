"""The forecasting stage: what of the past goes into the plans."""

import dataclasses

import numpy as np
import pytest

from models.capacity import duration
from models.capacity.sizing import NeedKind
from models.forecasting.engine import Forecaster
from models.forecasting.events import Event
from models.forecasting.forecast import Forecast, Quality
from models.series import Series
from models.signals import Known, Signal
from predictor.board import Board
from predictor.history import History
from predictor.outlooks import Outlooks, Pace
from predictor.targets import KnownEvent
from tests.predictor.telemetry import examples

DAY = 86400.0
STEP = 300.0
NOW = 10 * DAY


def test_how_long_a_request_takes_is_what_it_took_in_the_last_day() -> None:
    """A slower model came a day ago: the lower quartile of all days would still be that of the old one."""
    history = History(step=STEP, span=8 * DAY)
    times = np.arange(NOW - 8 * DAY, NOW + STEP, STEP)
    seconds = np.where(times < NOW - DAY, 4.0, 20.0)
    target = examples.target()
    history.load(target.key, Signal.DURATION_MEAN, Series(times[0], STEP, seconds))
    board = Board([target])
    Outlooks(Forecaster(), history, Pace()).refresh(board, now=NOW)
    plans = board.entries[target.key].plans
    assert plans is not None
    assert plans.duration == pytest.approx(20.0)
    assert duration.unloaded(history.series(target.key, Signal.DURATION_MEAN, now=NOW)) == pytest.approx(4.0)


def test_a_known_event_raises_the_plan_from_one_horizon_before_it_until_it_is_over() -> None:
    """Ten requests a second; a launch at NOW + 1 h brings five times as many for half an hour."""
    launch = KnownEvent("launch", Event(start=NOW + 3600, duration=1800, ratio=5.0), (Signal.ARRIVALS,))
    target = dataclasses.replace(examples.target(), events=(launch,))
    times = np.arange(NOW - DAY, NOW + 3 * 3600, STEP)
    values = np.full(len(times), 10.0)
    board, outlooks = Board([target]), {}
    for now in np.arange(NOW, NOW + 7200, STEP):
        history = History(step=STEP, span=8 * DAY)
        seen = times <= now
        history.load(target.key, Signal.ARRIVALS, Series(times[0], STEP, values[seen]))
        history.load(target.key, Signal.IN_FLIGHT, Series(times[0], STEP, values[seen]))
        Outlooks(Forecaster(), history, Pace()).refresh(board, now=float(now))
        plans = board.entries[target.key].plans
        assert plans is not None
        outlooks[now - NOW] = {signal: pair[0] for signal, pair in plans.outlooks.items()}
    raised = [at for at, each in outlooks.items() if _p95(each[Signal.ARRIVALS]) >= 50.0]
    assert min(raised) == 3300.0  # the horizon of 345 s reaches into it
    assert max(raised) == 5100.0  # over at 5400
    assert all(_p95(each[Signal.IN_FLIGHT]) < 20 for each in outlooks.values())


def test_a_past_that_could_be_loaded_only_after_some_ticks_counts_from_then_on() -> None:
    """The source answered what is now and not what was: two days come in before half an hour of our own readings."""
    target, history = examples.target(), History(step=STEP, span=8 * DAY)
    board, stage = Board([target]), Outlooks(Forecaster(), history, Pace())
    times = np.arange(NOW - 2 * DAY, NOW + STEP, STEP)
    values = np.random.default_rng(1).poisson(20.0, len(times)).astype(float)
    for place in range(len(times) - 6, len(times)):
        history.record(target.key, Signal.ARRIVALS, Known(values[place], times[place]), now=times[place])
        stage.refresh(board, now=times[place])
    assert _arrivals(board).quality is Quality.COLD
    history.load(target.key, Signal.ARRIVALS, Series(times[0], STEP, values))
    stage.refresh(board, now=times[-1])
    assert _arrivals(board).quality is Quality.SEASONED


def _arrivals(board: Board) -> Forecast:
    (entry,) = board.entries.values()
    assert entry.plans is not None
    outlook, _ = entry.plans.outlooks[Signal.ARRIVALS]
    assert isinstance(outlook, Forecast)
    return outlook


def _p95(outlook: object) -> float:
    assert isinstance(outlook, Forecast)
    return outlook.at(0.95)


def test_token_rates_are_forecast_only_of_targets_that_plan_for_them() -> None:
    plain, planned = examples.target("plain"), examples.target("planned")
    profile = dataclasses.replace(planned.objectives.profile, tokens_in=12_000.0)
    planned = dataclasses.replace(planned, objectives=dataclasses.replace(planned.objectives, profile=profile))
    history = History(step=STEP, span=8 * DAY)
    times = np.arange(NOW - DAY, NOW + STEP, STEP)
    for target in (plain, planned):
        for signal, value in ((Signal.ARRIVALS, 2.0), (Signal.IN_FLIGHT, 8.0), (Signal.TOKENS_IN, 90_000.0)):
            history.load(target.key, signal, Series(times[0], STEP, np.full(len(times), value)))
    board = Board([plain, planned])
    Outlooks(Forecaster(), history, Pace()).refresh(board, now=NOW)
    made = {key: entry.plans for key, entry in board.entries.items()}
    assert set(made[plain.key].outlooks) == {Signal.ARRIVALS, Signal.IN_FLIGHT}
    assert set(made[planned.key].outlooks) == {Signal.ARRIVALS, Signal.IN_FLIGHT, Signal.TOKENS_IN}
    binding = made[planned.key].raising.binding
    assert (binding.kind, binding.per_replica) == (NeedKind.PREFILL_TOKENS, 12_000.0)
    assert binding.demand == pytest.approx(90_000.0, rel=1e-3)
    assert made[plain.key].raising.replicas < made[planned.key].raising.replicas == 8
