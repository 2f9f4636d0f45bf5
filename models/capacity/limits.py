"""Upper bounds in replicas beside the maximum: GPUs that may be used, GPUs that are there."""

import dataclasses
from collections.abc import Iterable

MAXIMUM = "maximum"


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """A bound, and what it is called. The name is also the metric label."""

    name: str
    replicas: int


def of_gpus(gpus: float, *, per_replica: int, name: str) -> Limit | None:
    """Whole replicas that so many GPUs carry; None where a replica is not known to take any."""
    return Limit(name, max(int(gpus // per_replica), 0)) if per_replica > 0 else None


def schedulable(*, alive: int, unschedulable: int) -> Limit | None:
    """No more than there are pods while some have waited far too long for a node: another one would wait as well."""
    return Limit("schedulable GPUs", alive) if unschedulable else None


def tightest(limits: Iterable[Limit]) -> Limit:
    """The smallest; the first of equals. Raises ValueError of none."""
    return min(limits, key=lambda limit: limit.replicas)
