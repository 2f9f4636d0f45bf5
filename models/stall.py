"""Engines that take requests and finish none: more replicas would not help, and their load is no demand."""

import dataclasses

PATIENCE = 180.0  # seconds without a token: the rate itself looks back a minute or two, a long prompt takes as long


@dataclasses.dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered from one look to the next; Unix seconds, None while tokens come."""

    silent_since: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Flow:
    """What engines do now; None is not known.

    Attributes:
        running: requests in running batches.
        tokens: generated tokens per second.
    """

    running: float | None
    tokens: float | None


def look(watch: Watch, flow: Flow, *, now: float) -> Watch:
    """The memory after one more look. What is not known changes nothing, neither for better nor for worse."""
    if flow.running is None or flow.tokens is None:
        return watch
    if flow.running <= 0 or flow.tokens > 0:
        return Watch()
    return watch if watch.silent_since is not None else Watch(now)


def stalled_for(watch: Watch, *, now: float) -> float:
    """Seconds for which requests run and nothing comes of them; 0 until that is too long to be a long prompt."""
    if watch.silent_since is None or now - watch.silent_since < PATIENCE:
        return 0.0
    return now - watch.silent_since
