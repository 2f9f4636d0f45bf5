"""From rows to a grid: each repair by itself, and that none is silent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.regularise import Rules
from models.series import Series
from predictor.replay import gridding

NAN = float("nan")


def grid(
    times: list[float], values: list[float], step: float = 60.0, rules: Rules = gridding.EXACT
) -> tuple[list[float], list[str]]:
    series, repairs = gridding.on_grid(
        np.array(times, dtype=float), np.array(values, dtype=float), step=step, rules=rules
    )
    return series.values.tolist(), list(gridding.told(series, repairs, rules))


MEASURED = gridding.measured(60.0)


def test_rows_in_order_need_no_repair() -> None:
    assert grid([0, 60, 120], [1, 2, 3]) == ([1, 2, 3], [])
    assert grid([0, 60, 120], [1, 2, 3], rules=MEASURED) == ([1, 2, 3], [])


@pytest.mark.parametrize(
    ("times", "values", "rules", "expected", "words"),
    [
        ([0, 60, 90], [1, 2, 4], gridding.EXACT, [1, 3], "1 of 3 rows share a point of the grid"),
        ([0, 60, 60], [1, 2, 4], gridding.EXACT, [1, 4], "1 of 3 rows have the time of another: the last counts"),
        ([0, 60, 120], [1, NAN, 1], gridding.EXACT, [1, NAN, 1], "1 of 3 rows have no value: unknown, not zero"),
        ([120, 0, 60], [3, 1, 2], gridding.EXACT, [1, 2, 3], "1 of 3 rows are older"),
        ([0, 60, 120], [1, -5, 1], MEASURED, [1, 0, 1], "1 of 3 rows are negative: taken as zero"),
        ([0, 60, 120], [1, 500, 2], MEASURED, [1, 40, 2], "1 of 3 rows stand alone at more than 20 times"),
        ([0, 60, 180], [1, 2, 3], MEASURED, [1, 2, 2, 3], "1 of 4 points lack a row: the value before is carried"),
        ([0, 60, 180], [60, 120, 30], gridding.measured(60.0, counter=True), [NAN, 1, 1, 0.25], "fell 1 times"),
    ],
)
def test_each_repair_is_made_and_told(
    times: list[float], values: list[float], rules: Rules, expected: list[float], words: str
) -> None:
    found, told = grid(times, values, rules=rules)
    np.testing.assert_equal(found, expected)
    assert any(words in one for one in told)


def test_a_row_that_is_missing_among_exact_counts_leaves_a_gap_that_is_not_zero() -> None:
    values, told = grid([0, 60, 240, 300], [1, 1, 1, 1])
    np.testing.assert_equal(values, [1, 1, NAN, NAN, 1, 1])
    assert told == ["1 gaps, 2 of 6 points (33.3%), the longest 2 min: left unknown"]


def test_an_exact_count_is_no_spike_however_large() -> None:
    assert grid([0, 60, 120], [1, 500, 2]) == ([1, 500, 2], [])


def test_a_lone_sample_that_stands_for_minutes_is_no_spike() -> None:
    assert grid([0, 600, 1200], [1, 500, 2], 600.0, gridding.measured(600.0)) == ([1, 500, 2], [])


def test_no_value_at_all_is_refused() -> None:
    with pytest.raises(gridding.GridError, match="no row has a value"):
        grid([0, 60], [NAN, NAN])


def test_a_span_that_nobody_records_is_refused_with_the_likely_reason() -> None:
    with pytest.raises(gridding.GridError, match="unit of the times"):
        grid([0, 1.7e12], [1, 1], step=1.0)


def test_a_running_total_with_a_hole_is_measured_over_the_hole() -> None:
    values, _ = grid([0, 60, 120], [0, NAN, 120], rules=gridding.measured(60.0, counter=True))
    np.testing.assert_equal(values, [NAN, NAN, 1.0])


def test_a_coarser_grid_holds_means() -> None:
    coarse = gridding.coarser(Series(0, 60, np.array([1.0, 3, 5, NAN])), 120)
    assert coarse.values.tolist() == [2, 5]


@pytest.mark.parametrize("step", [30.0, 90.0])
def test_a_grid_that_does_not_fit_is_refused(step: float) -> None:
    with pytest.raises(gridding.GridError, match="use a multiple"):
        gridding.coarser(Series(0, 60, np.ones(4)), step)


def test_the_usual_step_is_that_of_most_rows() -> None:
    assert gridding.usual_step(np.array([0.0, 60, 120, 400, 460, 520])) == 60
    with pytest.raises(gridding.GridError, match="fewer than two"):
        gridding.usual_step(np.array([5.0, 5.0]))


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 1e6)), min_size=1, max_size=60, unique_by=lambda row: row[0]),
    st.randoms(),
)
def test_every_row_is_in_the_grid_or_counted_and_their_order_does_not_matter(
    rows: list[tuple[int, float]], order: object
) -> None:
    times, numbers = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    series, repairs = gridding.on_grid(times, numbers, step=60.0)
    assert series.known + repairs.averaged == len(rows)
    shuffled = list(rows)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    again, _ = grid([float(time) for time, _ in shuffled], [value for _, value in shuffled])
    np.testing.assert_allclose(again, series.values)
