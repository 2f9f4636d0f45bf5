import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import regularise
from models.regularise import Grid, Rules, Samples

NAN = float("nan")


def samples(*pairs: tuple[float, float]) -> Samples:
    both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return Samples(both[:, 0], both[:, 1])


def listed(found: Samples) -> list[tuple[float, float]]:
    return list(zip(found.times.tolist(), found.values.tolist(), strict=True))


def on_grid(given: Samples, points: int, rules: Rules | None = None) -> list[float]:
    series, _ = regularise.regular(given, Grid(start=0.0, step=30.0, points=points), rules or Rules())
    assert (series.start, series.step) == (0.0, 30.0)
    return series.values.tolist()


def test_what_is_not_finite_is_left_out() -> None:
    given = samples((0, 1), (1, NAN), (2, float("inf")), (NAN, 3), (4, 5))
    assert listed(regularise.finite(given)) == [(0, 1), (4, 5)]


def test_late_samples_are_put_in_their_place() -> None:
    assert listed(regularise.ordered(samples((2, 1), (1, 5), (2, 3)))) == [(1, 5), (2, 1), (2, 3)]


def test_of_samples_of_one_time_the_last_counts() -> None:
    assert listed(regularise.merged(samples((1, 5), (2, 1), (2, 3)))) == [(1, 5), (2, 3)]
    assert listed(regularise.merged(samples())) == []


def test_growth_is_divided_by_the_time_that_passed() -> None:
    # 30 requests in 30 s, then 30 in 60 s
    assert listed(regularise.growth(samples((0, 100), (30, 130), (90, 160)))) == [(30, 1.0), (90, 0.5)]


def test_a_total_that_fell_was_reset() -> None:
    # after the restart 15 requests were counted in 30 s
    assert listed(regularise.growth(samples((0, 100), (30, 15)))) == [(30, 0.5)]


def test_negative_values_are_zero() -> None:
    assert listed(regularise.clipped(samples((0, -1), (1, 2)))) == [(0, 0), (1, 2)]


def test_a_lone_spike_is_cut_down() -> None:
    given = samples((0, 1), (1, 2), (2, 5000), (3, 1), (4, 1))
    assert listed(regularise.winsorised(given, 20.0))[2] == (2, 40.0)


@pytest.mark.parametrize("values", [(1, 1, 90, 95, 1), (1, 1, 1, 1, 90), (0, 0, 90, 0, 0)])
def test_a_surge_is_no_spike(values: tuple[float, ...]) -> None:
    given = samples(*enumerate(values))
    assert listed(regularise.winsorised(given, 20.0)) == listed(given)


def test_a_value_is_carried_over_a_short_gap_only() -> None:
    assert on_grid(samples((0, 5), (200, 7)), 8) == pytest.approx([5, 5, 5, 5, NAN, NAN, 7, 7], nan_ok=True)


def test_an_exact_count_is_never_carried() -> None:
    exact = Rules(short_gap=0.0, spike=None)
    assert on_grid(samples((0, 5), (60, 7)), 3, exact) == pytest.approx([5, NAN, 7], nan_ok=True)


def test_what_a_point_holds_does_not_depend_on_what_comes_after_it() -> None:
    short, long = on_grid(samples((0, 5), (90, 1)), 3), on_grid(samples((0, 5), (900, 1)), 3)
    assert short == long == [5, 5, 5]


def test_a_point_is_the_mean_of_the_samples_from_it_to_the_next() -> None:
    assert on_grid(samples((0, 1), (15, 3), (30, 5), (59, 9)), 2) == [2, 7]


def test_every_repair_is_counted() -> None:
    counted = samples((0, 1), (30, NAN), (120, 2), (90, 1), (90, 3), (91, 1), (150, -1), (180, 900), (210, 1), (240, 1))
    _, repairs = regularise.regular(counted, Grid(start=0.0, step=30.0, points=9), Rules())
    assert dataclasses.asdict(repairs) == {
        "samples": 10, "unknown": 1, "late": 1, "duplicate": 1, "resets": 0, "negative": 1, "spikes": 1,
        "averaged": 1, "carried": 2,
    }  # fmt: skip


def test_resets_are_counted() -> None:
    _, repairs = regularise.regular(
        samples((0, 100), (30, 15), (60, 20), (90, 1)), Grid(start=0.0, step=30.0, points=4), Rules(counter=True)
    )
    assert repairs.resets == 2


def test_before_the_first_sample_nothing_is_known() -> None:
    assert on_grid(samples((35, 5)), 3) == pytest.approx([NAN, 5, 5], nan_ok=True)
    assert on_grid(samples(), 2) == pytest.approx([NAN, NAN], nan_ok=True)


def test_a_counter_becomes_a_rate() -> None:
    given = samples((60, 90), (0, 0), (30, 30), (30, 30))
    assert on_grid(given, 3, Rules(counter=True, spike=None)) == pytest.approx([NAN, 1.0, 2.0], nan_ok=True)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Grid(start=0, step=0, points=1), "step"),
        (lambda: Grid(start=0, step=1, points=-1), "points"),
        (lambda: Rules(short_gap=-1), "short_gap"),
        (lambda: Rules(spike=1), "spike"),
        (lambda: Samples(np.zeros(2), np.zeros(3)), "one length"),
    ],
)
def test_nonsense_is_refused_by_name(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(st.tuples(st.floats(0, 1000), numbers), max_size=30), st.randoms(use_true_random=False))
def test_whatever_comes_the_result_is_known_and_not_negative_or_nan(
    pairs: list[tuple[float, float]], rng: object
) -> None:
    first = on_grid(samples(*pairs), 40)
    assert all(np.isnan(v) or v >= 0 for v in first)
    unique = {time: value for time, value in pairs if np.isfinite(value)}
    shuffled = list(unique.items())
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert on_grid(samples(*shuffled, *shuffled), 40) == pytest.approx(first, nan_ok=True)
