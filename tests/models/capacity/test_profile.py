"""Profiles refuse nonsense; the unloaded duration."""

import math

import numpy as np
import pytest

from models.capacity import duration
from models.capacity.profile import Profile
from models.series import Series


@pytest.mark.parametrize("name", ["concurrency", "throughput", "duration", "kv_tokens", "tokens_in", "tokens_out"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_profile_names_the_figure_it_refuses(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=name):
        Profile(**{"concurrency": 1.0, name: bad})


@pytest.mark.parametrize("bad", [0.0, 1.5])
def test_a_kv_target_is_a_share(bad: float) -> None:
    with pytest.raises(ValueError, match="kv_target"):
        Profile(concurrency=1, kv_target=bad)


def durations(*values: float) -> Series:
    return Series(0, 30, np.array(values))


def test_the_unloaded_duration_is_the_lower_quartile() -> None:
    assert duration.unloaded(durations(*[12.0] * 5, *[30.0] * 5)) == 12


def test_a_few_durations_are_no_duration() -> None:
    assert duration.unloaded(durations(*[12.0] * 9, *[math.nan] * 90)) is None


def test_idle_minutes_do_not_pull_the_duration_down() -> None:
    assert duration.unloaded(durations(*[0.0] * 50, *[12.0] * 10)) == 12
