"""Profiles refuse nonsense; warm-ups give the horizons."""

import math

import numpy as np
import pytest

from models.capacity import duration, warmup
from models.capacity.profile import Profile
from models.series import Series


@pytest.mark.parametrize("name", ["concurrency", "throughput", "duration", "kv_tokens"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_profile_names_the_figure_it_refuses(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=name):
        Profile(**{"concurrency": 1.0, name: bad})


@pytest.mark.parametrize("bad", [0.0, 1.5])
def test_a_kv_target_is_a_share(bad: float) -> None:
    with pytest.raises(ValueError, match="kv_target"):
        Profile(concurrency=1, kv_target=bad)


def test_the_default_holds_until_three_warm_ups_are_measured() -> None:
    assert warmup.warm_up([20, 20], default=300) == 300
    assert warmup.warm_up([20, 20, 20], default=300) == 20


def test_the_warm_up_is_the_p90_of_the_measured_ones() -> None:
    assert warmup.warm_up(range(1, 12), default=300) == 10  # 1..11: nine tenths of the way is 10


def test_horizons_add_the_loop_and_the_age_of_the_signals_and_lowering_looks_a_warm_up_further() -> None:
    ahead = warmup.horizons(240, interval=30, signal_age=15)
    assert (ahead.raising, ahead.lowering) == (285, 525)


def durations(*values: float) -> Series:
    return Series(0, 30, np.array(values))


def test_the_unloaded_duration_is_the_lower_quartile() -> None:
    assert duration.unloaded(durations(*[12.0] * 5, *[30.0] * 5)) == 12


def test_a_few_durations_are_no_duration() -> None:
    assert duration.unloaded(durations(*[12.0] * 9, *[math.nan] * 90)) is None


def test_idle_minutes_do_not_pull_the_duration_down() -> None:
    assert duration.unloaded(durations(*[0.0] * 50, *[12.0] * 10)) == 12
