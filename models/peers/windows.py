"""Values of the last seconds, for the rivals' averages and maxima."""

from collections import deque

BUCKET = 2.0  # seconds, Knative's granularity


class Window:
    """Values inside a sliding window; those of one bucket are averaged, buckets without any do not count."""

    def __init__(self, seconds: float, *, bucket: float = BUCKET) -> None:
        if seconds < bucket:
            raise ValueError(f"a window of {seconds!r} s: must hold a bucket of {bucket!r} s")
        self._seconds, self._bucket = seconds, bucket
        self._buckets: deque[tuple[int, float, int]] = deque()  # number, sum, count
        self._sum = 0.0

    def add(self, now: float, value: float) -> None:
        """One more value; time never goes back."""
        number = int(now // self._bucket)
        if self._buckets and self._buckets[-1][0] == number:
            _, total, count = self._buckets.pop()
            self._sum += (total + value) / (count + 1) - total / count
            self._buckets.append((number, total + value, count + 1))
        else:
            self._buckets.append((number, value, 1))
            self._sum += value

    def mean(self, now: float) -> float | None:
        """The mean over the window up to `now`; None where nothing is in it."""
        self._drop(now)
        return max(self._sum, 0.0) / len(self._buckets) if self._buckets else None

    def _drop(self, now: float) -> None:
        oldest = int((now - self._seconds) // self._bucket)
        while self._buckets and self._buckets[0][0] <= oldest:
            _, total, count = self._buckets.popleft()
            self._sum -= total / count
        if not self._buckets:
            self._sum = 0.0  # what rounding left behind


class Peak:
    """The largest value of the last seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._falling: deque[tuple[float, float]] = deque()  # each larger than all after it

    def add(self, now: float, value: float) -> float:
        """One more value; returns the largest since `now - seconds`, itself among them."""
        while self._falling and self._falling[-1][1] <= value:
            self._falling.pop()
        self._falling.append((now, value))
        while len(self._falling) > 1 and self._falling[0][0] <= now - self._seconds:
            self._falling.popleft()
        return self._falling[0][1]
