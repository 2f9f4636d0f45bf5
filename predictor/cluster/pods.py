"""From pods to supply, and to how long a new replica takes."""

import dataclasses
from collections.abc import Iterable

from models.policy.context import Supply
from predictor.cluster import fields
from predictor.cluster.fields import Json

FAR_TOO_LONG = 3.0  # times the usual warm-up: by then a pod has not merely been slow, something is wrong with it
OVER = ("Failed", "Succeeded")


@dataclasses.dataclass(frozen=True, slots=True)
class WarmUp:
    """One pod's way to its first Ready; Unix times.

    Attributes:
        created: the pod object was made: a replica was asked for.
        scheduled: it was given a node; None where not reported.
        started: its last container ran; None where not reported.
        ready: it was Ready for the first time.
    """

    created: float
    scheduled: float | None
    started: float | None
    ready: float

    @property
    def seconds(self) -> float:
        """From asked for to Ready."""
        return max(self.ready - self.created, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Serving:
    """A pod that gets traffic, and its address."""

    name: str
    host: str


def serving(pods: Iterable[Json]) -> tuple[Serving, ...]:
    """The pods that are Ready and have an address; an IPv6 one in brackets, as a URL wants it."""
    found: list[Serving] = []
    for pod in counted(pods):
        address = fields.text(pod, "status", "podIP")
        if address and is_ready(pod):
            found.append(Serving(fields.name(pod), f"[{address}]" if ":" in address else address))
    return tuple(found)


def counted(pods: Iterable[Json]) -> tuple[Json, ...]:
    """The pods that are or will be replicas: not on their way out and not over.

    During a rollout that includes both the old and the surge pods: each of them that is Ready serves. Nothing is
    lowered during a rollout, so the surplus misleads nobody.
    """
    return tuple(
        pod
        for pod in pods
        if not fields.text(pod, "metadata", "deletionTimestamp") and fields.text(pod, "status", "phase") not in OVER
    )


def supply(pods: Iterable[Json], *, now: float, warm_up: float) -> Supply:
    """Replicas by what they can do.

    Args:
        pods: pods of one workload.
        now: Unix time, seconds.
        warm_up: what a new replica usually takes, seconds; one that takes FAR_TOO_LONG times that is stuck.
    """
    ready = warming = stuck = 0
    for pod in counted(pods):
        if is_ready(pod):
            ready += 1
        elif now - waiting_since(pod, now=now) > FAR_TOO_LONG * warm_up:
            stuck += 1
        else:
            warming += 1
    return Supply(ready, warming, stuck)


def is_ready(pod: Json) -> bool:
    """Whether it gets traffic."""
    return fields.text(fields.condition(pod, "Ready"), "status") == "True"


def waiting_since(pod: Json, *, now: float) -> float:
    """Since when a pod that is not Ready has not been: since it fell, if it was Ready before, else since creation."""
    if fell(pod):
        return fields.instant(fields.condition(pod, "Ready"), "lastTransitionTime") or now
    created = fields.instant(pod, "metadata", "creationTimestamp")
    return now if created is None else created


def fell(pod: Json) -> bool:
    """Whether a pod that is not Ready was so before: Ready turned False only after the containers ran."""
    turned = fields.instant(fields.condition(pod, "Ready"), "lastTransitionTime")
    started = started_at(pod)
    if is_ready(pod) or turned is None or started is None:
        return False
    return turned > started + 1.0  # times have whole seconds


def started_at(pod: Json) -> float | None:
    """When the last of its containers began to run; None unless all of them do."""
    containers = fields.mappings(pod, "status", "containerStatuses")
    starts = [fields.instant(container, "state", "running", "startedAt") for container in containers]
    known = [start for start in starts if start is not None]
    return max(known) if known and len(known) == len(starts) else None


def restarts(pod: Json) -> int:
    """Restarts of its containers."""
    return sum(fields.count(one, "restartCount") for one in fields.mappings(pod, "status", "containerStatuses"))


def measure(pod: Json) -> WarmUp | None:
    """The warm-up of a Ready pod that went straight there; None where the times do not tell."""
    created = fields.instant(pod, "metadata", "creationTimestamp")
    ready = fields.instant(fields.condition(pod, "Ready"), "lastTransitionTime")
    if not is_ready(pod) or created is None or ready is None or restarts(pod) > 0:
        return None
    scheduled = fields.instant(fields.condition(pod, "PodScheduled"), "lastTransitionTime")
    return WarmUp(created, scheduled, started_at(pod), ready)
