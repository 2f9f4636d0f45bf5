"""Observations as tests of autoscalers want them, and a walk that follows the answers."""

import dataclasses
from collections.abc import Mapping, Sequence

from models.policy.context import Supply
from models.policy.protocol import Autoscaler, Observation, Pod
from models.signals import Cause, Known, Reading, Signal, Unknown

Value = float | Cause | None


def reading(value: Value, now: float = 0.0) -> Reading:
    """A number is known; a cause says why it is not; None is a source that did not answer."""
    if value is None:
        return Unknown(Cause.SOURCE_DOWN)
    return Unknown(value) if isinstance(value, Cause) else Known(value, now)


def observe(values: Mapping[Signal, Value], *, replicas: int = 4, ready: int | None = None) -> Observation:
    """`replicas` asked for, of which all, or `ready`, serve and the others warm; bounds 1 to 100; time 0."""
    serving = replicas if ready is None else ready
    found = {signal: reading(value) for signal, value in values.items()}
    return Observation(0.0, replicas, 1, 100, Supply(serving, max(replicas - serving, 0)), found)


def at(seen: Observation, now: float, **changes: object) -> Observation:
    """The same at another time, with other things changed."""
    return dataclasses.replace(seen, now=now, **changes)


def walk(
    rule: Autoscaler,
    seen: Sequence[Observation],
    *,
    every: float = 15.0,
    start: float = 0.0,
    replicas: int | None = None,
) -> list[int]:
    """One decision each `every` seconds; each answer is ready by the next. The first starts at its own number."""
    count = seen[0].replicas if replicas is None else replicas
    course = []
    for k, one in enumerate(seen):
        now = start + every * k
        count = rule.decide(at(one, now, replicas=count, supply=Supply(count))).replicas
        course.append(count)
    return course


def pods(*values: tuple[float, float] | None) -> tuple[Pod, ...]:
    """Ready pods by KV usage and queue; None for one that was not scraped."""
    return tuple(
        Pod(f"pod-{k}") if one is None else Pod(f"pod-{k}", running=10.0, kv_usage=one[0], waiting=one[1])
        for k, one in enumerate(values)
    )
