"""Alive means that both loops finished lately, not that the process answers."""

import threading
import time
from collections.abc import Callable, Mapping

INTERVALS = 5  # missed in a row before the service is called dead: one may fail, one be late, two wait for a time-out
FIRST = 300.0  # seconds for the first tick of a loop, which loads the history


class Pulse:
    """When each loop last finished. Measured on a clock that is never set back, so that no change of time kills us."""

    def __init__(self, intervals: Mapping[str, float], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._intervals = dict(intervals)
        self._monotonic = monotonic
        self._begun = monotonic()
        self._finished: dict[str, float] = {}
        self._lock = threading.Lock()

    def begin(self, intervals: Mapping[str, float]) -> None:
        """The loops begin anew, at these intervals."""
        with self._lock:
            self._intervals = dict(intervals)
            self._begun = self._monotonic()
            self._finished.clear()

    def beat(self, loop: str) -> None:
        """The loop finished a tick."""
        with self._lock:
            self._finished[loop] = self._monotonic()

    def problems(self) -> tuple[str, ...]:
        """What is wrong, one sentence a loop; empty while all finish in time."""
        with self._lock:
            now = self._monotonic()
            return tuple(text for loop in self._intervals if (text := self._problem(loop, now)))

    def _problem(self, loop: str, now: float) -> str:
        patience = INTERVALS * self._intervals[loop]
        if loop not in self._finished:
            waited, patience = now - self._begun, max(patience, FIRST)
            return f"the {loop} loop has not finished once in {waited:.0f} s" if waited > patience else ""
        since = now - self._finished[loop]
        return f"the {loop} loop last finished {since:.0f} s ago, at most {patience:g} s" if since > patience else ""
