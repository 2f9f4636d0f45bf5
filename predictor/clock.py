"""The only way to the time of day."""

import time


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Unix time, seconds."""
        return time.time()  # noqa: TID251  (the one place: everything else is given a Clock or the time itself)
