"""Rolling origins: the service's forecaster, nothing from the future, and scores by the service's own rule."""

import dataclasses

import numpy as np
import pytest

from models.forecasting import scoring
from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast
from models.signals import Signal
from predictor.replay import backtest, rivals
from tests.predictor.replay import histories
from tests.predictor.replay.histories import DAY, KEY, MINUTE

QUESTIONS = backtest.Questions({"chat": (300.0,)}, learning=6 * 3600.0)
SPIKE = 1300  # of 1440 minutes


@pytest.fixture(scope="module")
def replayed() -> backtest.Replayed:
    (found,) = backtest.run({KEY: histories.series(histories.daily(1.0))}, QUESTIONS)
    return found


@pytest.fixture(scope="module")
def spiked() -> backtest.Replayed:
    values = histories.daily(1.0)
    values[SPIKE:] = 5000.0
    (found,) = backtest.run({KEY: histories.series(values)}, QUESTIONS)
    return found


def test_a_spike_to_come_moves_no_earlier_forecast_by_a_bit(
    replayed: backtest.Replayed, spiked: backtest.Replayed
) -> None:
    before = replayed.origins < SPIKE
    for name in ("bounds", "longer", "level"):
        np.testing.assert_array_equal(getattr(replayed, name)[before], getattr(spiked, name)[before])
    assert (spiked.bounds[~before][-1] > replayed.bounds[~before][-1] * 10).all()


@pytest.mark.parametrize("rival", [one for one in rivals.ALL if one.name not in rivals.missing()], ids=lambda r: r.name)
def test_a_spike_to_come_moves_no_earlier_forecast_of_a_rival(
    replayed: backtest.Replayed, spiked: backtest.Replayed, rival: rivals.Rival
) -> None:
    last = int(np.searchsorted(replayed.origins, SPIKE)) - 1
    places = range(last - 8, last + 1) if not rival.sampled else (last - 3, last)
    np.testing.assert_array_equal(rival.bounds(replayed, places), rival.bounds(spiked, places))
    assert np.isfinite(rival.bounds(replayed, places)).all()


def test_forecasts_are_those_of_a_forecaster_that_follows_tick_by_tick(replayed: backtest.Replayed) -> None:
    series, forecaster = replayed.series, Forecaster(QUESTIONS.forecast)
    ahead = (replayed.horizons.raising, replayed.horizons.lowering)
    for row, origin in enumerate(replayed.origins[:200].tolist()):
        (outlook, longer) = forecaster.update({KEY: series.until(origin * MINUTE)}, horizons={KEY: ahead})[KEY]
        if isinstance(outlook, Forecast) and isinstance(longer, Forecast):
            assert list(outlook.quantiles.values()) == replayed.bounds[row].tolist()
            assert [outlook.room(q) for q in outlook.quantiles] == replayed.room[row].tolist()
            assert [longer.room(q) for q in longer.quantiles] == replayed.longer[row].tolist()


def test_origins_from_a_moment_on_are_forecast_as_if_all_had_been(replayed: backtest.Replayed) -> None:
    questions = dataclasses.replace(QUESTIONS, since=20 * 3600.0)
    (late,) = backtest.run({KEY: replayed.series}, questions)
    assert late.times[0] == 20 * 3600
    skipped = len(replayed.times) - len(late.times)
    assert late.bounds.tolist() == replayed.bounds[skipped:].tolist()
    assert np.array_equal(late.came, replayed.came[skipped:], equal_nan=True)


def test_the_horizon_is_the_services_and_what_came_is_by_its_rule(replayed: backtest.Replayed) -> None:
    assert replayed.horizons.raising == 300 + 30 + 15
    row = 400
    at = float(replayed.times[row])
    assert replayed.came[row] == scoring.largest_within(replayed.series, after=at, horizon=345.0)
    assert replayed.came[row] == replayed.series.values[row * 2 + 1 : row * 2 + 7].max()


def test_what_has_not_passed_is_not_scored_and_the_beginning_is_for_learning(replayed: backtest.Replayed) -> None:
    assert np.isnan(replayed.came[-3:]).all()
    assert np.isnan(replayed.scored[: replayed.scored_from]).all()
    assert replayed.times[replayed.scored_from] == 6 * 3600


def test_a_horizon_of_which_half_is_unknown_is_not_scored() -> None:
    values = histories.daily(0.2)
    values[100:140] = np.nan
    (found,) = backtest.run({KEY: histories.series(values)}, QUESTIONS)
    inside = (found.origins >= 100) & (found.origins < 133)
    assert np.isnan(found.came[inside]).all()


def test_targets_that_begin_at_different_times_do_not_disturb_each_other() -> None:
    other = ("late", Signal.IN_FLIGHT)
    late = histories.series(histories.daily(0.3, seed=9), start=0.1 * DAY)
    questions = backtest.Questions({"chat": (300.0,), "late": (120.0, 300.0)})
    own = histories.series(histories.daily(0.4))
    together = backtest.run({KEY: own, other: late}, questions)
    (alone,) = backtest.run({KEY: own}, questions)
    assert [(one.key[0], one.warm_up) for one in together] == [("chat", 300), ("late", 120), ("late", 300)]
    np.testing.assert_allclose(together[0].bounds, alone.bounds, rtol=1e-9)
    assert together[1].times[0] == 0.1 * DAY


def test_signals_that_the_service_does_not_forecast_are_left_alone() -> None:
    series = histories.series(histories.daily(0.1))
    found = backtest.run({KEY: series, ("chat", Signal.TOKENS_IN): series}, QUESTIONS)
    assert [one.key for one in found] == [KEY]


def test_progress_ends_at_one() -> None:
    told: list[float] = []
    backtest.run({KEY: histories.series(histories.daily(0.1))}, QUESTIONS, tell=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
