import numpy as np
import pytest

from models.series import Series
from models.signals import Cause, Signal, Unknown
from predictor.demo import scenario
from predictor.demo.past import WarmStart
from tests.fakes.world import FakeSource

DAYS = 7


def past(signal: Signal, *, until: float = scenario.MIDNIGHT, seed: int = 1) -> Series:
    warm = WarmStart(FakeSource(), scenario.days(seed), seed=seed, days=DAYS)
    since = scenario.MIDNIGHT - DAYS * 86400
    answer = warm.history([scenario.TARGET], signal, since=since, until=until, step=60)[scenario.TARGET.key]
    assert isinstance(answer, Series)
    return answer


def test_the_history_ends_at_midnight_even_when_more_is_asked_for() -> None:
    assert past(Signal.ARRIVALS, until=scenario.MIDNIGHT + 9000).end == scenario.MIDNIGHT


def test_arrivals_of_the_days_before_follow_the_rate() -> None:
    series = past(Signal.ARRIVALS)
    rates = scenario.days(1).rate(series.times - scenario.MIDNIGHT - 30)
    assert series.values.mean() == pytest.approx(rates.mean(), rel=0.01)
    assert np.corrcoef(series.values, rates)[0, 1] > 0.98


def test_in_flight_is_rate_times_duration() -> None:
    ratio = past(Signal.IN_FLIGHT).values.mean() / past(Signal.ARRIVALS).values.mean()
    assert ratio == pytest.approx(scenario.DURATION, rel=0.02)


def test_the_same_seed_has_the_same_past() -> None:
    assert np.array_equal(past(Signal.ARRIVALS).values, past(Signal.ARRIVALS).values)
    assert not np.array_equal(past(Signal.ARRIVALS).values, past(Signal.ARRIVALS, seed=2).values)


def test_what_was_not_generated_is_unknown() -> None:
    warm = WarmStart(FakeSource(), scenario.days(1), seed=1, days=DAYS)
    answer = warm.history([scenario.TARGET], Signal.KV_USAGE, since=0, until=scenario.MIDNIGHT, step=60)
    assert answer == {scenario.TARGET.key: Unknown(Cause.EMPTY)}


def test_a_cold_start_has_no_past() -> None:
    warm = WarmStart(FakeSource(), scenario.days(1), seed=1, days=0)
    answer = warm.history([scenario.TARGET], Signal.ARRIVALS, since=0, until=scenario.MIDNIGHT, step=60)
    assert answer == {scenario.TARGET.key: Unknown(Cause.EMPTY)}


def test_no_more_days_are_known_than_asked_for() -> None:
    warm = WarmStart(FakeSource(), scenario.days(1), seed=1, days=2)
    series = warm.history([scenario.TARGET], Signal.ARRIVALS, since=0, until=scenario.MIDNIGHT, step=60)
    known = series[scenario.TARGET.key]
    assert isinstance(known, Series)
    assert known.start == scenario.MIDNIGHT - 2 * 86400


def test_readings_are_those_of_the_source_behind() -> None:
    source = FakeSource(waiting=lambda _: 3.0)
    warm = WarmStart(source, scenario.days(1), seed=1, days=DAYS)
    assert warm.read([scenario.TARGET], now=5.0) == source.read([scenario.TARGET], now=5.0)
