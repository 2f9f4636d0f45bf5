"""How large requests are, from counters."""

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


def surge(times: float, *, lasts: float) -> tuple[list[float], list[float]]:
    """Sizes told while a load of requests of 2000 and 400 tokens, 60 s each, grows from 2 a second by so many times."""
    real, seconds = Sizes(2000, 400), 7200
    rate = np.where(np.arange(seconds) < 3600, 2.0, 2.0 * times)
    taken = np.cumsum(rate)
    ended = np.concatenate([np.zeros(60), taken[:-60]])
    running = taken - ended
    prompts, outputs = taken * real.prompt, np.cumsum(running) * real.output / 60
    mixed, prompt, output = None, [], []
    for t in range(60, int(3600 + lasts), 10):
        told = [float(counter[t] - counter[t - 60]) / 60 for counter in (prompts, outputs, ended)]
        mixed = mix.after(mixed, Flow(told[0], told[1], told[2], float(running[t])), at=float(t))
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
    assert later.taken == pytest.approx(0, abs=1e-9)
    assert mix.sizes(later, Sizes(7, 7)) == Sizes(7, 7)


def test_a_second_look_at_the_same_sample_adds_nothing() -> None:
    mixed = steady(2, Sizes(1000, 200), minutes=1)
    assert mix.after(mixed, Flow(1e9, 1e9, 1, 0), at=mixed.at + 0.5) is mixed


def test_a_clock_that_is_set_back_begins_anew() -> None:
    mixed = steady(2, Sizes(3000, 200), minutes=1)
    assert mix.after(mixed, Flow(1, 1, 1, 5), at=mixed.at - 3600) == Mix(mixed.at - 3600, 5)


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
