"""What a replica sustains for requests of another size."""

import dataclasses
import math
import re

import hypothesis
import hypothesis.strategies as st
import pytest

from models.capacity import sizes
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes


def load_tests(prompt: float, output: float, *, concurrency: tuple[float, float] = (0.0, 0.0)) -> list[LoadTest]:
    """Load tests of a replica that follows given powers exactly."""
    found = []
    for p, o in ((1000, 200), (700, 200), (1200, 200), (1000, 140), (1000, 240)):
        x, y = p / 1000, o / 200
        found.append(LoadTest(Sizes(p, o), 4 * x**prompt * y**output, 20 * x ** concurrency[0] * y ** concurrency[1]))
    return found


def test_the_powers_of_a_replica_that_follows_them_are_found() -> None:
    found = sizes.fitted(load_tests(-1.3, -0.8, concurrency=(-1.0, 0.2)))
    assert found.throughput == pytest.approx((-1.3, -0.8))
    assert found.concurrency == pytest.approx((-1.0, 0.2))
    assert found.relative(Sizes(1000, 200)) == pytest.approx((1, 1))
    assert found.relative(Sizes(1200, 140)) == pytest.approx((1.2**-1.3 * 0.7**-0.8, 1.2**-1.0 * 0.7**0.2))


def test_twice_the_output_at_the_first_power_halves_the_throughput_of_a_profile() -> None:
    given = Profile(20, throughput=4, duration=5, by_size=sizes.fitted(load_tests(0, -1)))
    sized = given.sized(Sizes(1000, 400))
    assert (sized.concurrency, sized.throughput, sized.duration) == pytest.approx((20, 2, 10))


def test_without_load_tests_at_several_sizes_a_profile_stays_as_it_is() -> None:
    given = Profile(20, throughput=4)
    assert given.sized(Sizes(1, 1)) is given


@hypothesis.given(
    p=st.floats(-2, 0), o=st.floats(-2, 0), prompt=st.floats(1, 1e6), output=st.floats(1, 1e6), more=st.floats(1, 10)
)
def test_longer_requests_never_make_a_replica_serve_more(
    p: float, o: float, prompt: float, output: float, more: float
) -> None:
    found = sizes.fitted(load_tests(p, o))
    short, long = found.relative(Sizes(prompt, output)), found.relative(Sizes(prompt * more, output * more))
    assert long[0] <= short[0] * (1 + 1e-9)


@hypothesis.given(p=st.floats(-2, 0), c=st.floats(-2, 2), prompt=st.floats(1e-3, 1e9), output=st.floats(1e-3, 1e9))
def test_throughput_is_concurrency_over_duration_at_any_size(p: float, c: float, prompt: float, output: float) -> None:
    given = Profile(20, throughput=4, duration=5, by_size=sizes.fitted(load_tests(p, p, concurrency=(c, -c))))
    sized = given.sized(Sizes(prompt, output))
    assert sized.throughput is not None
    assert sized.duration is not None
    assert sized.concurrency / sized.duration == pytest.approx(sized.throughput)


def test_far_beyond_what_was_tested_the_powers_are_not_believed() -> None:
    found = sizes.fitted(load_tests(-1, -1))
    assert found.relative(Sizes(1e9, 200)) == found.relative(Sizes(2 * 1200, 200))
    assert found.relative(Sizes(1000, 1e-6)) == found.relative(Sizes(1000, 140 / 2))


def test_a_test_that_met_the_cliff_of_the_objective_is_no_power_of_minus_nine() -> None:
    cliff = [dataclasses.replace(test, throughput=0.02) if test.sizes.prompt == 1200 else test
             for test in load_tests(-1, -1)]  # fmt: skip
    assert sizes.fitted(cliff).throughput[0] == sizes.STEEPEST


def test_a_replica_that_seems_to_serve_more_of_longer_requests_is_not_believed() -> None:
    assert sizes.fitted(load_tests(0.3, -1)).throughput == pytest.approx((0, -1))


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ([(1000, 200), (2000, 200)], "2 load tests: it takes 3"),
        ([(1000, 200), (2000, 200), (3000, 200)], "outputs of 200, 200, 200 tokens"),
        ([(1000, 200), (2000, 400), (3000, 600)], "the other way round"),
        ([(1000, 200), (1400, 200), (1000, 280)], "each at least 1.5 times as long"),
    ],
)
def test_tests_that_do_not_tell_prompts_and_outputs_apart_are_refused(at: list[tuple[float, float]], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        sizes.fitted([LoadTest(Sizes(*one), 4, 20) for one in at])


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_figures_that_cannot_be_are_refused(value: float) -> None:
    for made in (
        lambda: Sizes(value, 1),
        lambda: Sizes(1, value),
        lambda: LoadTest(Sizes(1, 1), value, 1),
        lambda: LoadTest(Sizes(1, 1), 1, value),
    ):
        with pytest.raises(ValueError, match="must be a positive number"):
            made()
