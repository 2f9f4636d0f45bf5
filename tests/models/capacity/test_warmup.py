"""Warm-ups, pods on their way reckoned with; they give the horizons."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity import warmup
from models.capacity.warmup import Phase, Spread, Start, Wait

NOW = 10_000.0
waits = st.builds(Wait, st.floats(0, 1000), st.booleans())
shares = st.floats(0.05, 0.95)


def lasting(seconds: float) -> Wait:
    return Wait(seconds, over=False)


def ready(seconds: float, gpu: str = "") -> Start:
    return Start(NOW - 5000, ready=NOW - 5000 + seconds, gpu=gpu)


def warming(age: float, gpu: str = "") -> Start:
    return Start(NOW - age, gpu=gpu)


def seconds(*starts: Start, default: float = 300.0) -> float | None:
    return warmup.usual(starts, now=NOW, default=default).seconds


def test_without_pods_on_their_way_it_is_the_plain_quantile() -> None:
    assert warmup.quantile(map(Wait, range(1, 12)), 0.9) == 10  # 1..11: ten of eleven are over
    assert warmup.quantile([], 0.9) is None


def test_the_worked_example_of_kaplan_and_meier() -> None:
    """Deaths at .8, 3.1, 5.4, 9.2, losses at 1.0, 2.7, 7.0, 12.1: .875, .7, .525, .2625 survive (their table 2a)."""
    times = [Wait(0.8), lasting(1.0), lasting(2.7), Wait(3.1), Wait(5.4), lasting(7.0), Wait(9.2), lasting(12.1)]
    assert warmup.quantile(times, 0.12) == 0.8
    assert warmup.quantile(times, 0.3) == 3.1
    assert warmup.quantile(times, 0.475) == 5.4
    assert warmup.quantile(times, 0.73) == 9.2
    assert warmup.quantile(times, 0.75) == 12.1  # not reached: a lower bound


def test_a_slow_tail_that_has_not_arrived_does_not_look_fast() -> None:
    arrived = [Wait(60.0)] * 8
    assert warmup.quantile(arrived, 0.9) == 60
    assert warmup.quantile([*arrived, lasting(400.0), lasting(500.0)], 0.9) == 500


def test_a_pod_that_has_only_just_begun_says_nothing() -> None:
    assert warmup.quantile([*map(Wait, (50.0, 60.0, 70.0)), lasting(1.0)], 0.9) == 70


@given(st.lists(waits, max_size=30), st.floats(0, 2000), shares)
def test_a_pod_still_warming_never_lowers_a_quantile(others: list[Wait], age: float, share: float) -> None:
    before, after = warmup.quantile(others, share), warmup.quantile([*others, lasting(age)], share)
    assert (after or 0) >= (before or 0)


@given(st.lists(st.floats(0, 1000), min_size=3, max_size=30), st.lists(st.floats(0, 5000), max_size=10), shares)
def test_a_pod_still_warming_never_lowers_the_warm_up(arrived: list[float], ages: list[float], share: float) -> None:
    starts = [*map(ready, arrived), *map(warming, ages)]
    before, after = seconds(*starts), seconds(*starts, warming(5000 * share))
    assert before is not None
    assert after is not None
    assert after >= before


@given(st.lists(waits, min_size=1, max_size=30), shares, shares)
def test_quantiles_do_not_fall_as_the_share_grows(times: list[Wait], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert (warmup.quantile(times, low) or 0) <= (warmup.quantile(times, high) or 0)


def test_the_default_holds_until_three_starts_are_measured() -> None:
    assert seconds(ready(20), ready(20), warming(500)) is None
    assert warmup.warm_up(warmup.of_seconds(20, 20), default=300) == 300
    assert warmup.warm_up(warmup.of_seconds(20, 20, 20), default=300) == 20
    assert warmup.warm_up(None, default=300) == 300


def test_a_pod_that_waits_for_a_gpu_for_hours_makes_nobody_look_hours_ahead() -> None:
    assert seconds(ready(100), ready(100), ready(100), warming(9000)) == 300  # said to be stuck after three times 100


def test_the_slowest_gpu_type_in_use_decides() -> None:
    fast, slow = [ready(60, "H100")] * 30, [ready(200, "A100")] * 3
    assert seconds(*fast, *slow) == 200
    assert seconds(*slow, *fast, *fast) == 60  # none among the last 50


def test_types_of_which_too_few_are_known_are_taken_together() -> None:
    assert seconds(ready(60, "H100"), ready(80, "A100"), ready(70, "L40S")) == 80


def test_what_a_start_still_takes_is_what_those_took_that_lasted_as_long() -> None:
    times = [*map(Wait, (60.0, 60.0, 60.0, 60.0, 60.0, 60.0, 200.0, 220.0))]
    assert warmup.remaining(times, 0.0, longest=660) == 60
    assert warmup.remaining(times, 50.0, longest=660) == 10
    assert warmup.remaining(times, 70.0, longest=660) == 130  # the quick ones would be there
    assert warmup.remaining(times, 230.0, longest=660) == 430  # nobody knows: until it is called stuck
    assert warmup.remaining(times, 700.0, longest=660) == 0
    assert warmup.remaining([], 30.0, longest=660) == 630


def test_before_anything_is_measured_a_start_is_expected_to_take_what_was_configured() -> None:
    usual = warmup.usual([warming(100)], now=NOW, default=300)
    assert warmup.remaining(usual.waits, 100, longest=usual.longest) == 200
    assert usual.longest == 900


def test_phases_are_measured_apart() -> None:
    whole = Start(0, scheduled=10, started=40, ready=100, gpu="H100")
    found = warmup.usual([whole, whole, Start(9900, scheduled=9910, gpu="H100")], now=NOW, default=300).spreads
    assert found == (
        Spread("H100", Phase.SCHEDULE, over=3, lasting=0, median=10, p90=10),
        Spread("H100", Phase.START, over=2, lasting=1, median=30, p90=90),
        Spread("H100", Phase.READY, over=2, lasting=0, median=60, p90=60),
        Spread("H100", Phase.WHOLE, over=2, lasting=1, median=100, p90=100),
    )


def test_a_phase_that_nobody_told_of_is_left_out() -> None:
    found = warmup.usual([ready(100)] * 3, now=NOW, default=300).spreads
    assert [one.phase for one in found] == [Phase.WHOLE]


def test_one_that_left_while_it_warmed_lasted_until_then() -> None:
    left = dataclasses.replace(warming(500), left=NOW - 100)
    assert warmup.usual([left], now=NOW, default=300).waits == (Wait(300), Wait(400, over=False))


def test_horizons_add_the_loop_and_the_age_of_the_signals_and_lowering_looks_a_warm_up_further() -> None:
    ahead = warmup.horizons(240, interval=30, signal_age=15)
    assert (ahead.raising, ahead.lowering) == (285, 525)


@pytest.mark.parametrize("count", [3, 30])
def test_the_horizon_follows_the_measured_p90(count: int) -> None:
    usual = warmup.of_seconds(*[200.0] * count)
    assert warmup.horizons(warmup.warm_up(usual, default=300), interval=30, signal_age=15).raising == 245
