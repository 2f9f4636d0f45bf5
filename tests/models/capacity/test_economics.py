"""The worked numbers of the money."""

import math

import pytest

from models.capacity import economics


def test_the_quantile_weighs_a_missing_replica_against_an_idle_one() -> None:
    assert economics.quantile(miss=66.5, idle=3.5) == pytest.approx(0.95)
    assert economics.quantile(miss=3.5, idle=3.5) == 0.5


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_cost_that_is_none_is_refused_by_name(bad: float) -> None:
    with pytest.raises(ValueError, match="miss"):
        economics.quantile(miss=bad, idle=1)
    with pytest.raises(ValueError, match="idle"):
        economics.quantile(miss=1, idle=bad)


def test_money_and_time_of_the_worked_example() -> None:
    assert (3.5 * 24, 3.5 * 8) == (84, 28)  # a $3.50 replica, always on, and for eight hours of the day
    assert 2 * 180 == 360  # growth of 2 requests a second each second, over a warm-up of 180 s
    assert round(4096 * 0.050, 1) == 204.8  # max_tokens at 50 ms a token: the drain a grace period must cover
