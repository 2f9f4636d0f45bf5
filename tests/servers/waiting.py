"""Waiting for a condition of the outside world without a fixed sleep."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


def until(probe: Callable[[], Seen | None], *, within_s: float, what: str, every_s: float = 0.1) -> Seen:
    """Ask `probe` every `every_s` seconds until it answers something true, and return that answer.

    Raises:
        TimeoutError: nothing true came within `within_s` seconds; names `what` was awaited and the last answer.
    """
    pause = threading.Event()
    deadline = time.monotonic() + within_s
    while True:
        seen = probe()
        if seen:
            return seen
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not within {within_s:g} s, last seen {seen!r}")
        pause.wait(every_s)
