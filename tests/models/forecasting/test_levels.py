import numpy as np
import pytest

from models.forecasting import levels


def followed(values: list[float], window: float = 40.0) -> levels.Levels:
    state = levels.Levels.empty(1)
    for value in values:
        state.push(np.array([value]), window=window)
    return state


def level(state: levels.Levels) -> float:
    return float(levels.square(state.now()[:, 0])[0])


def test_the_level_begins_with_the_first_known_value() -> None:
    assert level(followed([np.nan, np.nan, 4.0])) == pytest.approx(4.0)


def test_a_gap_leaves_the_level_and_is_counted() -> None:
    before, after = followed([4.0, 6.0, 5.0]), followed([4.0, 6.0, 5.0, np.nan, np.nan])
    assert level(after) == pytest.approx(level(before))
    assert after.gap == 2
    assert after.last == 5.0


def test_a_negative_value_counts_as_zero() -> None:
    assert followed([3.0, -2.0]).last == 0.0


def test_a_steady_series_has_a_slow_level_and_one_that_jumps_a_fast_one() -> None:
    noise = [*np.random.default_rng(5).poisson(50, 300).astype(float), 65.0]
    assert level(followed(noise)) < 55
    steps = [*np.repeat([10.0, 90.0, 40.0, 60.0, 20.0], 20), 120.0]
    assert level(followed(steps)) == pytest.approx(120.0, rel=0.05)


def test_past_levels_come_close_to_those_of_statsforecast() -> None:
    rng = np.random.default_rng(7)
    values = rng.poisson(40 + 20 * np.sin(np.arange(600) / 60)).astype(float)
    (now,) = levels.present_levels([values[-240:]])
    assert level(followed(list(values), window=80.0)) == pytest.approx(now, rel=0.1)


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0], [7.0], [1e9, 1e9], [0.0, 1e9, 0.0]])
def test_present_levels_are_finite_for_odd_rows(row: list[float]) -> None:
    (now,) = levels.present_levels([np.array(row)])
    assert np.isfinite(now)
    assert 0 <= now <= max(row)


def test_the_square_of_a_root_is_the_value() -> None:
    values = np.array([0.0, 1.0, 1e9])
    assert levels.square(levels.root(values)) == pytest.approx(values)
    assert levels.square(np.array([-3.0]))[0] == 0.0
