"""From pods to supply, and to how long a new replica takes."""

import dataclasses
from collections.abc import Iterable

from models.capacity import warmup
from models.capacity.warmup import Start, Usual
from models.policy.context import Supply
from predictor.cluster import fields, gpus, troubles
from predictor.cluster.fields import Json
from predictor.ports import Stuck

OVER = ("Failed", "Succeeded")


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


def supply(pods: Iterable[Json], *, now: float, usual: Usual) -> Supply:
    """Replicas by what they can do, at a time (Unix seconds), where a start usually takes so long."""
    ready = stuck = 0
    waited: list[float] = []
    for pod in counted(pods):
        if is_ready(pod):
            ready += 1
        elif is_stuck(pod, now=now, usual=usual):
            stuck += 1
        else:
            waited.append(max(now - waiting_since(pod, now=now), 0.0))
    ready_in = sorted(warmup.remaining(usual.waits, age, longest=usual.longest) for age in waited)
    return Supply(ready, len(waited), stuck, tuple(ready_in))


def stuck(pods: Iterable[Json], *, now: float, usual: Usual) -> tuple[Stuck, ...]:
    """The pods that have not been Ready for far too long, and what the cluster says of it."""
    return tuple(
        Stuck(fields.name(pod), now - waiting_since(pod, now=now), *troubles.of(pod))
        for pod in counted(pods)
        if is_stuck(pod, now=now, usual=usual)
    )


def is_stuck(pod: Json, *, now: float, usual: Usual) -> bool:
    """Whether it has not been Ready for far longer than starts take."""
    return not is_ready(pod) and now - waiting_since(pod, now=now) > usual.longest


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


def start(pod: Json) -> Start | None:
    """A pod's way to Ready as far as it got; None where not even its creation is told."""
    created = fields.instant(pod, "metadata", "creationTimestamp")
    if created is None:
        return None
    scheduled = fields.condition(pod, "PodScheduled")
    has_node = fields.text(scheduled, "status") == "True"
    return Start(
        created=created,
        scheduled=fields.instant(scheduled, "lastTransitionTime") if has_node else None,
        started=started_at(pod),
        ready=fields.instant(fields.condition(pod, "Ready"), "lastTransitionTime") if is_ready(pod) else None,
        gpu=gpus.kind(pod),
    )
