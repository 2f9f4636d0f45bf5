import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.series import Series

NAN = float("nan")
NOW = 1.8e9


def test_times_are_those_of_the_grid_and_gaps_are_not_counted() -> None:
    series = Series(100.0, 30.0, np.array([1.0, NAN, 3.0]))
    assert series.times.tolist() == [100.0, 130.0, 160.0]
    assert (len(series), series.end, series.known) == (3, 160.0, 2)
    assert Series(100.0, 30.0, np.array([])).end == 70.0


def test_since_and_until_take_in_the_point_at_that_very_time() -> None:
    series = Series(100.0, 30.0, np.arange(4.0))
    assert (series.since(130.0).start, series.since(130.0).values.tolist()) == (130.0, [1, 2, 3])
    assert (series.since(131.0).start, series.since(131.0).values.tolist()) == (160.0, [2, 3])
    assert series.until(130.0).values.tolist() == [0, 1]
    assert series.until(129.0).values.tolist() == [0]


def test_what_lies_outside_is_empty_or_whole() -> None:
    series = Series(100.0, 30.0, np.arange(4.0))
    assert series.since(-1e9).values.tolist() == series.until(1e9).values.tolist() == [0, 1, 2, 3]
    assert len(series.since(1e9)) == len(series.until(-1e9)) == 0
    assert series.since(1e9).start == 220.0


@given(st.floats(1.0, 300.0), st.integers(1, 60), st.integers(0, 10_000))
def test_no_point_is_lost_to_rounding_whatever_the_step(step: float, points: int, later: int) -> None:
    series = Series((math.floor(NOW / step) + later) * step, step, np.arange(float(points)))
    for place, time in enumerate(series.times):
        assert series.since(float(time)).values.tolist() == list(range(place, points))
        assert series.until(float(time)).values.tolist() == list(range(place + 1))
    assert len(series.until(series.end - step)) == points - 1


def test_values_are_not_to_be_changed_neither_here_nor_where_they_came_from() -> None:
    given_values = np.array([1.0, 2.0])
    series = Series(0.0, 1.0, given_values)
    given_values[0] = 9.0
    assert series.values.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        series.values[0] = 3.0


@pytest.mark.parametrize(
    ("start", "step", "values", "told"),
    [
        (0.0, 0.0, [1.0], "step is 0.0 s: must be a positive number"),
        (0.0, NAN, [1.0], "step is nan s"),
        (NAN, 1.0, [1.0], "start is nan: must be a Unix time"),
        (0.0, 1.0, [math.inf], "infinity: what is not known is NaN"),
        (0.0, 1.0, [[1.0]], r"shape \(1, 1\): must be one-dimensional"),
    ],
)
def test_nonsense_is_refused(start: float, step: float, values: list[object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Series(start, step, np.array(values, dtype=np.float64))
