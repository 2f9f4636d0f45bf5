import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.race import frontier
from models.race.frontier import How, Point

POINTS = st.lists(
    st.builds(Point, st.just("x"), st.floats(1, 100), st.floats(0, 1), st.integers(0, 50).map(float)), max_size=12
)


def point(hours: float, missed: float, starts: float = 0) -> Point:
    return Point("x", hours, missed, starts)


def test_attainment_between_two_runs_is_read_off_the_line_over_the_logarithm_of_misses() -> None:
    # .01 lies half-way between .1 and .001 on a logarithmic scale
    found = frontier.at_attainment([point(10, 0.1, 4), point(20, 0.001, 8)], 0.99)
    assert (found.how, found.hours, found.starts) == (How.BETWEEN, pytest.approx(15), pytest.approx(6))


def test_nothing_is_read_beyond_the_runs() -> None:
    worse, better = [point(10, 0.5), point(20, 0.02)], [point(10, 0.005), point(20, 0.001)]
    assert frontier.at_attainment(worse, 0.99).how is How.NEVER
    assert frontier.at_attainment(worse, 0.99).hours is None
    assert frontier.at_attainment(better, 0.99) == frontier.Found(How.CHEAPEST, 10, 0)
    assert frontier.at_attainment([], 0.99).how is How.NEVER


def test_misses_at_equal_hours() -> None:
    points = [point(10, 0.1), point(20, 0.001)]
    assert frontier.misses_at(points, 9.0) is None
    assert frontier.misses_at(points, 15.0) == pytest.approx(0.01)
    assert frontier.misses_at(points, 99.0) == 0.001


@given(POINTS)
def test_no_point_of_a_frontier_is_both_dearer_and_worse_than_another(points: list[Point]) -> None:
    edge = frontier.frontier(points)
    assert all(a.hours <= b.hours and a.missed > b.missed for a, b in itertools.pairwise(edge))
    for one in points:
        assert any(best.hours <= one.hours and best.missed <= one.missed for best in edge)


@given(POINTS)
def test_more_attainment_never_costs_less(points: list[Point]) -> None:
    costs = [frontier.at_attainment(points, a).hours for a in (0.5, 0.9, 0.99, 0.999)]
    known = [cost for cost in costs if cost is not None]
    assert known == costs[: len(known)]
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(known))


@given(POINTS, st.floats(0.3, 0.9999))
@example([Point("x", 1.0, 1.0, 0.0), Point("x", math.nextafter(1.0, 2.0), 0.0, 0.0)], 0.5)
@example([Point("x", 1.0, 1.0, 0.0), Point("x", 1.0 + 1e-10, 0.0, 0.0)], 0.9)
def test_misses_at_the_hours_of_an_attainment_are_that_attainment_or_better(points: list[Point], wanted: float) -> None:
    found = frontier.at_attainment(points, wanted)
    if found.hours is not None:
        missed = frontier.misses_at(points, found.hours)
        assert missed is not None
        assert missed <= (1 - wanted) * (1 + 1e-6) + frontier.FEWEST


def test_a_geometric_mean_of_nothing_is_none_and_of_zero_an_error() -> None:
    assert frontier.geometric([]) is None
    assert frontier.geometric([1, 4]) == pytest.approx(2)
    with pytest.raises(ValueError, match="must be positive"):
        frontier.geometric([1, 0])


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="hours nan"):
        point(math.nan, 0)
    with pytest.raises(ValueError, match=r"missed 1\.5"):
        point(1, 1.5)
