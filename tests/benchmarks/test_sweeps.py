"""Which values of a knob are run, so that a frontier is read off where it matters."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from benchmarks.scoreboard import work


def sweep_of(missed: Mapping[float, float]) -> tuple[Callable[[float], dict[str, Any]], list[float]]:
    """A policy whose knob costs what it says and misses what is given; and the values it was run at."""
    asked: list[float] = []

    def run(value: float) -> dict[str, Any]:
        asked.append(value)
        return {"missed": missed[value], "requests": 1, "replica_hours": value}

    return run, asked


def test_a_sweep_runs_the_default_both_ends_and_what_lies_around_a_target() -> None:
    values = [x / 4 for x in range(13)]
    run, asked = sweep_of({value: 10 ** -(value + 1) for value in values})  # .01 at 1, .001 at 2
    found = work.sought(values, 3.0, run, close=True)
    assert {0.0, 3.0, 1.0, 0.75, 1.75, 2.0} <= set(asked)
    assert len(asked) == len(set(asked)) < len(values)
    assert len(found) == len(asked)
    asked.clear()
    work.sought(values, 1.0, run, close=False)
    assert sorted(asked) == [0.0, 1.0, 3.0]


NINE = tuple(map(float, range(9)))


@pytest.mark.parametrize("best", range(9))
@pytest.mark.parametrize("default", [0.0, 3.0, 8.0])
def test_a_policy_that_is_good_at_one_value_only_is_found_wherever_that_is(best: int, default: float) -> None:
    run, asked = sweep_of({value: 0.005 if value == best else 0.02 + 0.05 * abs(value - best) for value in NINE})
    found = work.sought(NINE, default, run, close=True)
    assert min(point["missed"] for point in found) == 0.005
    assert len(asked) == len(set(asked))


def test_a_policy_that_gets_worse_from_its_best_end_on_is_given_up_after_one_more_run() -> None:
    run, asked = sweep_of({value: 0.5 - 0.05 * value for value in NINE})
    work.sought(NINE, 3.0, run, close=True)
    assert sorted(asked) == [0.0, 3.0, 7.0, 8.0]


def test_where_a_policy_gets_better_and_then_worse_again_the_cheaper_side_is_looked_at_first() -> None:
    cost = {0.0: 0.5, 1.0: 0.3, 2.0: 0.2, 3.0: 0.005, 4.0: 0.004, 5.0: 0.006, 6.0: 0.2, 7.0: 0.3, 8.0: 0.5}
    run, asked = sweep_of(cost)
    work.sought(NINE, 4.0, run, close=True)
    assert asked.index(2.0) < asked.index(6.0)
    assert {2.0, 3.0} <= set(asked)


def test_both_targets_are_closed_in_on_as_far_as_the_values_go() -> None:
    run, asked = sweep_of({value: 10 ** -(value / 2 + 0.5) for value in NINE})  # .01 at 3, .001 at 5
    work.sought(NINE, 0.0, run, close=True)
    assert {2.0, 3.0, 4.0, 5.0} <= set(asked)
