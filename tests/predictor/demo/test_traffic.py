import dataclasses
import itertools

import numpy as np
import pytest

from predictor.demo import traffic

HOUR = 3600.0
PLAIN = traffic.Traffic()
SURGING = dataclasses.replace(PLAIN, surge=traffic.Surge(day=0))


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    first, again, other = (traffic.Days(PLAIN, seed=seed).between(36000, 37000) for seed in (3, 3, 4))
    assert np.array_equal(first.times, again.times)
    assert np.array_equal(first.prompts, again.prompts)
    assert not np.array_equal(first.times[:50], other.times[:50])


def test_how_time_is_cut_into_calls_changes_nothing() -> None:
    days = traffic.Days(PLAIN, seed=3)
    whole = days.between(36000, 36500)
    cuts = [36000, 36007.3, 36060, 36061, 36300.5, 36500]
    pieces = [days.between(a, b) for a, b in itertools.pairwise(cuts)]
    assert np.array_equal(np.concatenate([p.times for p in pieces]), whole.times)
    assert np.array_equal(np.concatenate([p.outputs for p in pieces]), whole.outputs)
    assert len(days.between(100, 100)) == 0


def test_requests_come_at_the_rate() -> None:
    days = traffic.Days(PLAIN, seed=5)
    expected = days.rate(np.arange(9 * HOUR, 12 * HOUR) + 0.5).sum()
    assert len(days.between(9 * HOUR, 12 * HOUR)) == pytest.approx(expected, abs=5 * np.sqrt(expected))


def test_a_day_rises_in_the_morning_and_dips_at_lunch() -> None:
    def mean_rate(hour: float) -> float:
        every = [traffic.Days(PLAIN, seed=seed) for seed in range(20)]
        return float(np.mean([days.rate(np.arange(hour * HOUR, hour * HOUR + 900, 60.0)).mean() for days in every]))

    night, morning, late_morning, lunch, afternoon = map(mean_rate, (3.5, 8, 10.6, 12.7, 15))
    assert night < 0.5 * morning < morning < late_morning
    assert lunch < 0.8 * late_morning
    assert lunch < 0.8 * afternoon


def test_weekends_are_quieter() -> None:
    days = traffic.Days(PLAIN, seed=1)  # day 0 is a Tuesday, day 4 a Saturday
    rates = [days.rate(np.arange(day * traffic.DAY, (day + 1) * traffic.DAY, 60)).mean() for day in range(7)]
    assert max(rates[4], rates[5]) < 0.8 * min(rates[:4])


def test_only_the_surge_tells_the_day_from_what_it_would_have_been() -> None:
    plain, surging = traffic.Days(PLAIN, seed=9), traffic.Days(SURGING, seed=9)
    begins = surging.surge_at()
    assert begins is not None
    assert plain.surge_at() is None
    times = np.arange(-traffic.DAY, 2 * traffic.DAY, 60.0)
    ratio = surging.rate(times) / plain.rate(times)
    lasts = (times > begins) & (times < begins + 2400 + 2 * 240)
    assert np.allclose(ratio[~lasts], 1)
    assert 1.5 < ratio.max() < 2


def test_lengths_keep_their_bounds() -> None:
    drawn = traffic.Lengths(median=300, spread=1.5, longest=1000).draw(np.random.default_rng(1), 5000)
    assert drawn.min() >= 1
    assert drawn.max() == 1000
    assert np.median(drawn) == pytest.approx(300, rel=0.1)
