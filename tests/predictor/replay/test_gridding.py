"""From rows to a grid: each repair by itself, and that none is silent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.series import Series
from predictor.replay import gridding

NAN = float("nan")


def grid(times: list[float], values: list[float], step: float = 60.0) -> tuple[list[float], gridding.Repairs]:
    series, repairs = gridding.on_grid(np.array(times, dtype=float), np.array(values, dtype=float), step=step)
    return series.values.tolist(), repairs


def test_rows_in_order_need_no_repair() -> None:
    values, repairs = grid([0, 60, 120], [1, 2, 3])
    assert values == [1, 2, 3]
    assert list(repairs.sentences()) == []


def test_rows_that_share_a_point_are_averaged_and_counted() -> None:
    values, repairs = grid([0, 60, 90], [1, 2, 4])
    assert values == [1, 3]
    assert repairs.merged == 1
    assert "averaged" in next(repairs.sentences())


def test_a_row_that_is_missing_leaves_a_gap_that_is_not_zero() -> None:
    values, repairs = grid([0, 60, 240, 300], [1, 1, 1, 1])
    np.testing.assert_equal(values, [1, 1, NAN, NAN, 1, 1])
    assert (repairs.gaps, repairs.missing, repairs.longest_gap) == (1, 2, 120)


def test_an_empty_cell_is_unknown() -> None:
    values, repairs = grid([0, 60, 120], [1, NAN, 1])
    np.testing.assert_equal(values, [1, NAN, 1])
    assert repairs.unknown == 1


def test_a_negative_value_is_unknown() -> None:
    values, repairs = grid([0, 60, 120], [1, -5, 1])
    np.testing.assert_equal(values, [1, NAN, 1])
    assert repairs.negative == 1


def test_rows_out_of_order_are_sorted_and_counted() -> None:
    values, repairs = grid([120, 0, 60], [3, 1, 2])
    assert values == [1, 2, 3]
    assert repairs.out_of_order == 1


def test_no_value_at_all_is_refused() -> None:
    with pytest.raises(gridding.GridError, match="no row has a value"):
        grid([0, 60], [NAN, NAN])


def test_a_span_that_nobody_records_is_refused_with_the_likely_reason() -> None:
    with pytest.raises(gridding.GridError, match="unit of the times"):
        grid([0, 1.7e12], [1, 1], step=1.0)


def test_a_running_total_becomes_a_rate_and_a_reset_counts_from_zero() -> None:
    rates, resets = gridding.increments(np.array([0.0, 60, 120, 180]), np.array([100.0, 160, 30, 90]))
    np.testing.assert_equal(rates, [NAN, 1.0, 0.5, 1.0])  # 60 in 60 s; 30 after the reset; 60
    assert resets == 1


def test_a_running_total_with_a_hole_is_measured_over_the_hole() -> None:
    rates, _ = gridding.increments(np.array([0.0, 60, 120]), np.array([0.0, NAN, 120]))
    np.testing.assert_equal(rates, [NAN, NAN, 1.0])


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


@given(st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 1e6)), min_size=1, max_size=60), st.randoms())
def test_every_row_is_in_the_grid_or_counted_and_their_order_does_not_matter(
    rows: list[tuple[int, float]], order: object
) -> None:
    values, repairs = grid([float(time) for time, _ in rows], [value for _, value in rows])
    assert np.count_nonzero(~np.isnan(values)) + repairs.merged == len(rows)
    shuffled = list(rows)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    again, _ = grid([float(time) for time, _ in shuffled], [value for _, value in shuffled])
    np.testing.assert_allclose(again, values)
