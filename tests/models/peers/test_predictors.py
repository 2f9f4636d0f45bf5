import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.peers import predictors
from models.peers.predictors import Arima, Constant, Kalman


def fed(predictor: predictors.Predictor, values: list[float]) -> float:
    for value in values:
        predictor.add(value)
    return predictor.ahead()


def test_constant_is_the_last_value() -> None:
    assert fed(Constant(), [3.0, 9.0]) == 9.0


@pytest.mark.parametrize("name", predictors.PREDICTORS)
def test_before_the_fifth_point_every_predictor_says_the_last_value(name: str) -> None:
    predictor = predictors.PREDICTORS[name]()
    assert predictor.ahead() == 0.0
    assert fed(predictor, [3.0, 9.0, 2.0, 7.0]) == 7.0


def test_on_a_step_of_five_times_the_default_arima_reaches_a_quarter_after_one_interval() -> None:
    """On a level the order is (0, 0, 0): the mean of 12 ones and a five is 17 / 13 = 1.31, .26 of the actual 5."""
    ahead = fed(Arima(), [1.0] * 12 + [5.0])
    assert ahead == pytest.approx(17 / 13)
    assert ahead / 5 == pytest.approx(0.26, abs=0.005)


def test_arima_on_a_noisy_level_is_its_mean_too() -> None:
    noisy = [100.0, 103.0, 99.0, 101.0, 98.0]
    assert fed(Arima(), noisy) == pytest.approx(np.mean(noisy), rel=0.02)


def test_arima_differences_a_trend_once() -> None:
    assert predictors.kpss([-2.0, -1.0, 0.0, 1.0, 2.0]) == pytest.approx(0.52)  # 26 / (25 x 2), above .463
    assert fed(Arima(), [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]) == pytest.approx(22.0)


def test_the_order_is_chosen_once_on_the_first_five_points() -> None:
    """A ramp after a level does not make it a trend: still the mean of all, (5 x 10 + 20 + 30 + 40) / 8."""
    assert fed(Arima(), [10.0] * 5 + [20.0, 30.0, 40.0]) == pytest.approx(17.5)


def test_arima_takes_an_autoregressive_term_where_it_pays() -> None:
    """Alternating points of a stable cycle: the regression on the one before is what tells the next."""
    predictor = Arima()
    assert fed(predictor, [10.0, 20.0, 10.0, 20.0, 10.0]) == pytest.approx(20.0, abs=0.5)


def test_kalman_follows_a_ramp_and_a_level() -> None:
    assert fed(Kalman(), [float(10 * k) for k in range(40)]) == pytest.approx(400.0, rel=0.01)
    assert fed(Kalman(), [50.0] * 40) == pytest.approx(50.0, rel=0.001)


def test_kalman_agrees_with_the_filter_written_as_matrices() -> None:
    values = [5.0, 9.0, 4.0, 14.0, 20.0, 18.0, 30.0]
    f, h = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    q, r, x, p = np.diag([1.0, 0.1]), 10.0, np.zeros((2, 1)), 1000 * np.eye(2)
    for value in values:
        x, p = f @ x, f @ p @ f.T + q
        gain = p @ h.T / (h @ p @ h.T + r)
        x, p = x + gain * (value - h @ x), (np.eye(2) - gain @ h) @ p
    assert fed(Kalman(), values) == pytest.approx(float((f @ x)[0, 0]))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.sampled_from(sorted(predictors.PREDICTORS)))
def test_no_predictor_ever_expects_less_than_nothing(values: list[float], name: str) -> None:
    assert 0 <= fed(predictors.PREDICTORS[name](), values) < 1e8
