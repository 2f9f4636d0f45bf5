"""How large requests are, from counters."""

import dataclasses

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from models.capacity import mix
from models.capacity.mix import Flow, Mix
from models.capacity.sizes import Sizes

TESTED = Sizes(1000, 200)


def steady(rate: float, sizes: Sizes, *, minutes: int, mixed: Mix | None = None, start: float = 0.0) -> Mix:
    """The mix after some minutes of the same, looked at every ten seconds."""
    for k in range(minutes * 6 + 1):
        flow = Flow(rate * sizes.prompt, rate * sizes.output, rate, rate * 10)
        mixed = mix.after(mixed, flow, at=start + 10 * k)
    assert mixed is not None
    return mixed


def test_before_anything_was_seen_requests_are_as_large_as_those_tested() -> None:
    assert mix.sizes(None, TESTED) == TESTED
    assert mix.sizes(mix.after(None, Flow(5, 5, 1, 10), at=0), TESTED) == TESTED


def test_after_a_while_of_much_traffic_the_sizes_are_those_of_the_traffic() -> None:
    found = mix.sizes(steady(20, Sizes(3000, 50), minutes=60), TESTED)
    assert (found.prompt, found.output) == pytest.approx((3000, 50), rel=0.02)


def test_a_few_requests_say_little() -> None:
    found = mix.sizes(steady(0.01, Sizes(100000, 200), minutes=5), TESTED)
    assert found.prompt < 11 * TESTED.prompt


def surge(
    times: float, *, lasts: float, window: int = 60, every: int = 10, lag: float = mix.LAG
) -> tuple[list[float], list[float]]:
    """Sizes told while a load of requests of 2000 and 400 tokens, 60 s each, grows from 2 a second by so many times.

    Rates are taken over `window` seconds, of counters that are looked at `every` so many.
    """
    real, seconds = Sizes(2000, 400), 7200
    rate = np.where(np.arange(seconds) < 3600, 2.0, 2.0 * times)
    taken = np.cumsum(rate)
    ended = np.concatenate([np.zeros(60), taken[:-60]])
    running = taken - ended
    prompts, outputs = taken * real.prompt, np.cumsum(running) * real.output / 60
    mixed, prompt, output = None, [], []
    for t in range(300, int(3600 + lasts), every):
        told = [float(counter[t] - counter[t - window]) / window for counter in (prompts, outputs, ended)]
        mixed = mix.after(mixed, Flow(told[0], told[1], told[2], float(running[t])), at=float(t), lag=lag)
        if t >= 3600:
            found = mix.sizes(mixed, TESTED)
            prompt.append(found.prompt)
            output.append(found.output)
    return prompt, output


@pytest.mark.parametrize(("times", "within"), [(1, 0.1), (10, 0.25), (0.2, 0.25)])
def test_a_load_that_jumps_does_not_look_like_other_requests(times: float, within: float) -> None:
    prompt, output = surge(times, lasts=1200)
    assert min(prompt) == pytest.approx(2000, rel=within)
    assert max(prompt) == pytest.approx(2000, rel=within)
    assert min(output) == pytest.approx(400, rel=within)
    assert max(output) == pytest.approx(400, rel=within)


# Windows of the scrapes that Prometheus is configured for: every 7.5, 15, 30 and 60 seconds.
@pytest.mark.parametrize(("window", "every"), [(60, 10), (120, 15), (240, 30), (300, 60)])
@pytest.mark.parametrize("times", [10, 0.2])
def test_a_jump_is_read_aright_whatever_the_window_of_the_rates(window: int, every: int, times: float) -> None:
    told = surge(times, lasts=1200, window=window, every=every, lag=window / 2)
    for found, real in zip(told, (2000, 400), strict=True):
        assert (min(found), max(found)) == pytest.approx((real, real), rel=0.12)


def test_rates_that_lag_more_than_is_thought_make_a_surge_look_like_smaller_requests() -> None:
    """Why the window is asked for: what runs is seen long before the tokens of it."""
    taken_for_a_minute, _ = surge(10, lasts=1200, window=240, every=30)
    as_it_is, _ = surge(10, lasts=1200, window=240, every=30, lag=120)
    assert min(taken_for_a_minute) < 0.8 * 2000
    assert min(as_it_is) > 0.9 * 2000


def test_more_that_runs_after_a_gap_is_not_set_against_the_tokens_of_one_look() -> None:
    before = steady(5, Sizes(2000, 400), minutes=60)
    for running in (0.0, 5000.0):
        later = mix.after(before, Flow(10_000, 2_000, 5, running), at=before.at + 1200)
        found = mix.sizes(later, TESTED)
        assert found.prompt == pytest.approx(2000, rel=0.1)
        assert found.output == pytest.approx(400, rel=0.1)


@pytest.mark.parametrize("older", [0.5, 7.0, 600.0])
def test_an_older_sample_adds_nothing_and_takes_nothing_away(older: float) -> None:
    mixed = steady(2, Sizes(3000, 200), minutes=20)
    assert mix.after(mixed, Flow(1, 1, 1, 5), at=mixed.at - older) is mixed


def test_what_passed_in_a_long_gap_is_not_made_up() -> None:
    mixed = steady(2, Sizes(1000, 200), minutes=1)
    later = mix.after(mixed, Flow(0, 0, 0, 20), at=mixed.at + 7 * 24 * 3600)
    assert later.taken == pytest.approx(0, abs=1e-3)
    assert mix.sizes(later, Sizes(7, 7)).prompt == pytest.approx(7, rel=0.01)


def quiet(mixed: Mix, *, hours: float) -> Mix:
    """The mix after hours in which nothing came, looked at every minute."""
    for _ in range(round(hours * 60)):
        mixed = mix.after(mixed, Flow(0, 0, 0, 0), at=mixed.at + 60)
    return mixed


def test_after_a_quiet_night_the_last_sizes_stand_and_after_two_days_those_tested_do() -> None:
    evening = steady(2, Sizes(3000, 50), minutes=60)
    morning = quiet(evening, hours=8)
    found = mix.sizes(morning, TESTED)
    assert found.prompt == pytest.approx(3000 * 0.8 + TESTED.prompt * 0.2, rel=0.05)
    assert mix.known(morning)
    assert not mix.known(quiet(morning, hours=40))


def test_a_gap_and_a_night_without_requests_fade_the_same() -> None:
    evening = steady(2, Sizes(3000, 50), minutes=60)
    gone = mix.after(evening, Flow(0, 0, 0, 0), at=evening.at + 8 * 3600)
    assert gone.taken == pytest.approx(quiet(evening, hours=8).taken, rel=0.1)
    assert mix.recalled(evening, now=gone.at).taken == pytest.approx(gone.taken)


def test_much_traffic_is_forgotten_within_a_quarter_of_an_hour_as_ever() -> None:
    before = steady(5, Sizes(3000, 50), minutes=60)
    after = steady(5, Sizes(1000, 200), minutes=45, mixed=before, start=before.at + 10)
    assert mix.sizes(after, TESTED).prompt == pytest.approx(1000, rel=0.15)


def test_where_few_come_the_last_few_hundred_count_however_long_they_take() -> None:
    mixed = steady(0.02, Sizes(3000, 50), minutes=8 * 60)
    assert 250 < mixed.taken < 350
    assert mix.sizes(mixed, TESTED).prompt == pytest.approx(3000, rel=0.1)


def test_sizes_are_known_once_as_many_were_seen_as_are_supposed() -> None:
    assert not mix.known(None)
    few = steady(0.1, Sizes(3000, 50), minutes=3)
    assert (mix.known(few), round(few.taken)) == (False, 18)
    assert mix.known(steady(0.1, Sizes(3000, 50), minutes=6))


def test_a_look_speaks_for_the_window_of_its_rates_and_no_longer() -> None:
    mixed = Mix(0.0, 10.0)
    flow = Flow(2000, 400, 1, 10)
    assert mix.after(mixed, flow, at=250.0, lag=150).prompt == 250 * 2000
    assert mix.after(mixed, flow, at=500.0, lag=150).prompt == 300 * 2000
    assert mix.after(mixed, flow, at=500.0).prompt == 60 * 2000


def test_many_looks_at_once_are_as_one_after_the_other() -> None:
    looks = [(10.0 * k, Flow(2000, 400, 1, 10)) for k in range(30)]
    one_by_one = None
    for at, flow in looks:
        one_by_one = mix.after(one_by_one, flow, at=at)
    assert mix.through(looks) == one_by_one
    assert mix.through([]) is None


def test_a_second_look_at_the_same_sample_adds_nothing() -> None:
    mixed = steady(2, Sizes(1000, 200), minutes=1)
    assert mix.after(mixed, Flow(1e9, 1e9, 1, 0), at=mixed.at + 0.5) is mixed


def test_what_another_process_saw_is_gone_on_from_as_after_a_gap() -> None:
    before = steady(5, Sizes(2000, 400), minutes=60)
    now = before.at + 600
    for running in (0.0, 5000.0):
        flow = Flow(10_000, 2_000, 5, running)
        found = mix.recalled(before, now=now)
        assert mix.after(found, flow, at=now - 20) is found  # a sample from before the start
        found = mix.after(found, flow, at=now + 10)
        gone_on = mix.after(before, flow, at=now + 10)
        assert found.taken == pytest.approx(gone_on.taken, rel=0.1)  # which speaks for a minute
        assert found.running == running
        assert mix.sizes(found, TESTED).prompt == pytest.approx(2000, rel=0.05)


def test_what_was_seen_by_a_clock_that_was_ahead_is_recalled_whole() -> None:
    before = steady(5, Sizes(2000, 400), minutes=60)
    found = mix.recalled(before, now=before.at - 86400)
    assert found.taken == before.taken
    assert found.at == before.at - 86400


def test_of_two_the_one_that_knows_of_more_requests_now_counts() -> None:
    long_ago = steady(5, Sizes(2000, 400), minutes=60)
    lately = steady(1, Sizes(2000, 400), minutes=60, start=long_ago.at + 4 * 3600)
    assert lately.taken < long_ago.taken
    assert mix.fuller(long_ago, lately, now=lately.at) is lately
    assert mix.fuller(long_ago, lately, now=long_ago.at) is long_ago
    assert mix.fuller(None, lately, now=lately.at) is lately
    assert mix.fuller(lately, None, now=lately.at) is lately
    assert mix.fuller(lately, lately, now=lately.at) is lately
    assert mix.fuller(None, None, now=0) is None


def test_what_is_known_stands_where_the_clock_is_set_back() -> None:
    mixed = steady(2, Sizes(3000, 200), minutes=20)
    back = mix.after(mixed, Flow(1, 1, 1, 5), at=mixed.at - 3600)
    assert back == dataclasses.replace(mixed, at=mixed.at - 3600, running=5)
    assert mix.after(back, Flow(6000, 400, 2, 5), at=back.at + 10).prompt > back.prompt


@hypothesis.given(
    st.lists(
        st.tuples(st.floats(0, 1e7), st.floats(0, 1e6), st.floats(0, 1e4), st.floats(0, 1e5), st.floats(-100, 1e5)),
        max_size=20,
    )
)
def test_whatever_is_seen_sizes_are_positive_and_finite(looks: list[tuple[float, float, float, float, float]]) -> None:
    mixed, at = None, 0.0
    for tokens_in, tokens_out, ends, running, later in looks:
        at += later
        mixed = mix.after(mixed, Flow(tokens_in, tokens_out, ends, running), at=at)
        found = mix.sizes(mixed, TESTED)  # raises where they are not
        assert found.prompt > 0
        assert found.output > 0
