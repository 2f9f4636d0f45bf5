import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.peers import oracle
from models.peers.oracle import Oracle, Terms
from models.series import Series
from tests.fakes.observations import at, observe

STEP = 60.0


def rates(*values: float) -> Series:
    return Series(0.0, STEP, np.array(values, dtype=float))


def priced(ready: tuple[int, ...], given_rates: Series, terms: Terms) -> tuple[float, float]:
    """Replica-hours and covered requests of a schedule, straight from the definition."""
    starts = sum(max(b - a, 0) for a, b in itertools.pairwise(ready))
    covered = np.minimum(given_rates.values * STEP, np.array(ready) * terms.per_replica * STEP).sum()
    return (sum(ready) * STEP + starts * terms.warm_up) / 3600, float(covered)


def cheapest(given_rates: Series, terms: Terms, attainment: float, most: int) -> float:
    """By trying every schedule."""
    need = attainment * float(given_rates.values.sum()) * STEP
    every = itertools.product(range(terms.minimum, most + 1), repeat=len(given_rates))
    found = (priced(ready, given_rates, terms) for ready in every)
    return min(cost for cost, covered in found if covered >= need - 1e-9)


def test_covers_everything_and_keeps_a_replica_through_a_pause_shorter_than_its_warm_up() -> None:
    terms = Terms(per_replica=1.0, warm_up=120.0)
    short = oracle.fewest(rates(3, 1, 3), terms, attainment=1.0)
    assert short.ready.tolist() == [3, 3, 3]
    long = oracle.fewest(rates(3, 1, 1, 1, 3), terms, attainment=1.0)
    assert long.ready.tolist() == [3, 1, 1, 1, 3]
    assert long.cost == pytest.approx((9 * 60 + 2 * 120) / 3600)
    assert (long.attainment, long.bound) == (1.0, long.cost)


def test_a_share_may_be_missed_where_it_saves_most() -> None:
    """A single step of 9 among ones: it costs 8 starts for 8 of 68 requests a second."""
    terms = Terms(per_replica=1.0, warm_up=600.0)
    demand = rates(*[1.0] * 30, 9.0, *[1.0] * 29)
    strict = oracle.fewest(demand, terms, attainment=1.0)
    lenient = oracle.fewest(demand, terms, attainment=0.88)
    assert lenient.ready.max() == 1
    assert lenient.attainment == pytest.approx(60 / 68)
    assert lenient.cost < strict.cost / 2
    assert lenient.bound <= lenient.cost


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.sampled_from([0.0, 45.0, 90.0, 150.0]),
    st.sampled_from([0.8, 0.9, 1.0]),
    st.integers(0, 1),
)
def test_no_schedule_is_cheaper_than_the_bound_and_at_1_the_cost_is_the_least(
    values: list[int], warm_up: float, attainment: float, minimum: int
) -> None:
    terms = Terms(per_replica=1.0, warm_up=warm_up, minimum=minimum, maximum=3)
    demand = rates(*values)
    found = oracle.fewest(demand, terms, attainment=attainment)
    cost, covered = priced(tuple(found.ready.tolist()), demand, terms)
    least = cheapest(demand, terms, attainment, 3)
    assert found.cost == pytest.approx(cost)
    assert covered >= attainment * sum(values) * STEP - 1e-6
    assert found.bound <= least + 1e-9 <= found.cost + 2e-9
    if attainment == 1:
        assert found.cost == pytest.approx(least)


@given(st.lists(st.floats(0, 5), min_size=2, max_size=40), st.integers(0, 5))
def test_asking_a_warm_up_ahead_costs_just_what_the_schedule_says(values: list[float], steps: int) -> None:
    """Replica-seconds asked for, less those asked for before the start, which the first step had for nothing."""
    terms = Terms(per_replica=1.0, warm_up=steps * STEP)
    found = oracle.fewest(rates(*values), terms, attainment=1.0)
    asked = found.asked(terms.warm_up)
    assert (asked >= found.ready).all()
    # Starts in the first warm-up were asked for, in part, before the race.
    early = sum(
        max(int(b - a), 0) * (terms.warm_up - min((k + 1) * STEP, terms.warm_up))
        for k, (a, b) in enumerate(itertools.pairwise(found.ready))
    )
    assert asked.sum() * STEP / 3600 <= found.cost + 1e-9
    assert asked.sum() * STEP / 3600 >= found.cost - early / 3600 - 1e-9


def test_a_long_trace_comes_out_with_a_narrow_gap() -> None:
    minutes = np.arange(1440)
    demand = rates(*(20 + 15 * np.sin(2 * np.pi * minutes / 1440) + 5 * np.sin(minutes / 3.0)))
    found = oracle.fewest(demand, Terms(per_replica=2.0, warm_up=300.0), attainment=0.99)
    assert found.attainment >= 0.99
    assert found.bound <= found.cost <= 1.01 * found.bound


def test_the_maximum_may_leave_requests_uncovered() -> None:
    found = oracle.fewest(rates(9, 9), Terms(per_replica=1.0, warm_up=0.0, maximum=3), attainment=1.0)
    assert found.ready.tolist() == [3, 3]
    assert found.attainment == pytest.approx(1 / 3)


def test_the_policy_asks_a_warm_up_and_a_step_ahead() -> None:
    terms = Terms(per_replica=1.0, warm_up=120.0)
    rule = Oracle(oracle.fewest(rates(*[1] * 10, *[4] * 10), terms, attainment=1.0), lead=120.0)
    course = [rule.decide(at(observe({}, replicas=1), 30.0 * k)).replicas for k in range(45)]
    assert course[:14] == [1] * 14
    assert course[14:40] == [4] * 26  # from 420 s, 180 s ahead of the rise
    assert course[40:] == [4] * 5  # after the end: the last step


def test_no_requests_need_nothing() -> None:
    found = oracle.fewest(rates(0, 0), Terms(per_replica=1.0, warm_up=60.0, minimum=0), attainment=0.99)
    assert (found.ready.tolist(), found.attainment, found.cost) == ([0, 0], 1.0, 0.0)


def test_gaps_and_nonsense_are_refused() -> None:
    terms = Terms(per_replica=1.0, warm_up=0.0)
    with pytest.raises(ValueError, match="1 of 2 steps known"):
        oracle.fewest(rates(1, np.nan), terms, attainment=0.9)
    with pytest.raises(ValueError, match="attainment 0"):
        oracle.fewest(rates(1), terms, attainment=0.0)
    with pytest.raises(ValueError, match="per_replica must be positive"):
        Terms(per_replica=0.0, warm_up=0.0)
