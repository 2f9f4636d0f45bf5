"""The only way to the time of day, and to time that has passed."""

import time

_COUNTING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # Linux has it: CLOCK_MONOTONIC stands in a suspend


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Unix time, seconds."""
        return time.time()  # noqa: TID251  (the one place: everything else is given a Clock or the time itself)


def passed() -> float:
    """Seconds since some moment, on a clock that nobody sets and that goes on while the machine sleeps."""
    return time.clock_gettime(_COUNTING)
