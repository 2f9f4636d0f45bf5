import numpy as np
import pytest

from models.forecasting import scoring
from models.forecasting.forecast import Forecast, NotEnoughHistory, Quality
from models.forecasting.scoring import Scoring
from models.series import Series

NAN = float("nan")


def forecast(at: float, horizon: float = 60.0, bound: float = 10.0) -> Forecast:
    return Forecast(at, horizon, 5.0, {0.5: bound, 0.9: bound + 5}, Quality.YOUNG)


def test_coverage_leaves_out_what_is_unknown() -> None:
    came = np.array([1.0, 2.0, NAN, 4.0])
    bounds = np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0], [NAN, 5.0]])
    assert scoring.coverage(came, bounds) == pytest.approx([0.5, 1.0])
    assert np.isnan(scoring.coverage(came[:0], bounds[:0])).all()


def test_pinball_weighs_a_miss_by_q_and_a_surplus_by_the_rest() -> None:
    # one request above p90: .9; one below: .1
    assert scoring.pinball(np.array([11.0]), np.array([[10.0]]), (0.9,)) == pytest.approx([0.9])
    assert scoring.pinball(np.array([9.0, NAN]), np.array([[10.0], [1.0]]), (0.9,)) == pytest.approx([0.1])


def test_the_worst_block_is_found_among_whole_blocks() -> None:
    came = np.array([1.0, 1.0, 9.0, 1.0, 9.0, 9.0, 9.0])
    assert scoring.worst_block(came, np.full(7, 5.0), 2) == 0.0
    assert scoring.worst_block(came, np.full(7, 5.0), 6) == 0.5
    assert np.isnan(scoring.worst_block(came, np.full(7, 5.0), 8))


def test_a_forecast_is_scored_once_when_its_horizon_has_passed() -> None:
    kept = Scoring()
    kept.issue({"a": (forecast(60.0),)})
    assert kept.settle({"a": Series(0.0, 30.0, np.array([1.0, 2, 3, 12]))}) == []
    (scored,) = kept.settle({"a": Series(0.0, 30.0, np.array([1.0, 2, 99, 12, 11]))})
    assert scored.came == 12.0
    assert scored.covered == {0.5: False, 0.9: True}
    assert scored.pinball == pytest.approx({0.5: 1.0, 0.9: 0.3})
    assert kept.settle({"a": Series(0.0, 30.0, np.ones(9))}) == []


def test_forecasts_close_together_are_not_both_scored() -> None:
    kept = Scoring(apart=60.0)
    for at in (0.0, 30.0, 60.0):
        kept.issue({"a": (forecast(at),)})
    assert [s.forecast.issued_at for s in kept.settle({"a": Series(0.0, 30.0, np.ones(9))})] == [0.0, 60.0]


def test_what_is_unknown_is_neither_hit_nor_miss() -> None:
    kept = Scoring()
    kept.issue({"a": (forecast(0.0), NotEnoughHistory(1, 2)), "b": (forecast(0.0),)})
    assert kept.settle({"a": Series(0.0, 15.0, np.array([1.0, NAN, NAN, NAN, 2.0]))}) == []
    kept.issue({"a": (forecast(300.0),)})
    assert kept.settle({"b": Series(0.0, 30.0, np.ones(9))}) == []


def test_a_history_that_begins_too_late_says_nothing() -> None:
    late = Series(90.0, 30.0, np.ones(3))
    assert scoring.largest_within(late, after=0.0, horizon=60.0) is None
    assert scoring.largest_within(late, after=60.0, horizon=60.0) == 1.0


def test_what_was_issued_by_a_clock_that_ran_ahead_keeps_nothing_from_being_scored() -> None:
    kept = Scoring(apart=60.0)
    kept.issue({"a": (forecast(1e6), NotEnoughHistory(1, 2))})
    for at in (0.0, 60.0):
        kept.issue({"a": (forecast(at), NotEnoughHistory(1, 2))})
    assert [s.forecast.issued_at for s in kept.settle({"a": Series(0.0, 30.0, np.ones(9))})] == [0.0, 60.0]
    assert kept.settle({"a": Series(1e6 - 600, 30.0, np.ones(90))}) == []
