import datetime as dt

from predictor.clock import SystemClock


def test_the_system_clock_is_a_clock_of_unix_seconds() -> None:
    clock = SystemClock()
    first, second = clock.now(), clock.now()
    assert first <= second
    assert dt.datetime.fromtimestamp(first, tz=dt.UTC).year >= 2024
