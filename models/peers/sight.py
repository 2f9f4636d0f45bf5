"""What the rivals read from an observation, and how they see what is missing."""

from collections.abc import Iterable, Sequence

from models.policy.protocol import Observation, Pod
from models.signals import Cause, Known, Signal

CONCURRENCY = (Signal.IN_FLIGHT, Signal.WAITING)  # what a proxy in front of an engine counts as in flight


def value(seen: Observation, signal: Signal) -> float | None:
    """A signal as a query sums it over the replicas; None where there is no value.

    A query over the pods' pages knows nothing of pods that were not scraped, so a partial reading is the sum (for KV
    usage the mean) of the others where they are known one by one.
    """
    reading = seen.readings.get(signal)
    if isinstance(reading, Known):
        return reading.value
    if reading is None or reading.cause is not Cause.PARTIAL or seen.pods is None:
        return None
    known = [found for pod in seen.pods if (found := of_pod(pod, signal)) is not None]
    if not known:
        return None
    return sum(known) / len(known) if signal is Signal.KV_USAGE else sum(known)


def total(seen: Observation, signals: Iterable[Signal]) -> float | None:
    """The sum of signals; None where one of them is not known. A mean over the ready replicas counts as its sum."""
    found = 0.0
    for signal in signals:
        one = value(seen, signal)
        if one is None:
            return None
        found += one * seen.supply.ready if signal is Signal.KV_USAGE else one
    return found


def of_pod(pod: Pod, signal: Signal) -> float | None:
    """A signal of one pod; None where it is not known, or is not one of a pod."""
    match signal:
        case Signal.IN_FLIGHT:
            return pod.running
        case Signal.WAITING:
            return pod.waiting
        case Signal.KV_USAGE:
            return pod.kv_usage
        case _:
            return None


def pods(seen: Observation) -> Sequence[Pod]:
    """The pods one by one; where only sums are known the ready ones are all alike, under one name."""
    if seen.pods is not None:
        return seen.pods
    supply = seen.supply
    if not supply.ready:
        return (Pod("warming", ready=False),) * (supply.warming + supply.stuck)
    running, waiting = value(seen, Signal.IN_FLIGHT), value(seen, Signal.WAITING)
    alike = Pod(
        "alike",
        running=None if running is None else running / supply.ready,
        waiting=None if waiting is None else waiting / supply.ready,
        kv_usage=value(seen, Signal.KV_USAGE),
    )
    return (alike,) * supply.ready + (Pod("warming", ready=False),) * (supply.warming + supply.stuck)


def existing(seen: Observation) -> int:
    """Pods there are, serving or not: status.replicas."""
    return seen.supply.ready + seen.supply.warming + seen.supply.stuck
