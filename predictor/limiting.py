"""All upper bounds of a target: its owner's maximum, its GPU budget, a pool of GPUs it shares, GPUs that are there."""

from collections.abc import Iterable

from models.capacity import limits
from models.capacity.limits import Limit
from predictor.board import Entry
from predictor.ports import Workload

UNSCHEDULABLE = "Unschedulable"  # the scheduler's reason


def of(entry: Entry, workload: Workload, others: Iterable[Entry]) -> tuple[Limit, ...]:
    """The limits that apply now, the owner's first; `others` are the rows of all targets, this one or not."""
    given = entry.target.gpus
    each = given.per_replica or workload.gpus
    found = [Limit(limits.MAXIMUM, workload.maximum)]
    if given.budget is not None:
        found += _some(limits.of_gpus(given.budget, per_replica=each, name="GPU budget"))
    if given.pooled is not None:
        left = given.pooled - sum(_held(other) for other in others if _shares(other, entry))
        found += _some(limits.of_gpus(left, per_replica=each, name=f"GPU pool {given.pool}"))
    supply = workload.supply
    waiting = sum(one.reason == UNSCHEDULABLE for one in workload.stuck)
    alive = supply.ready + supply.warming + supply.stuck
    return (*found, *_some(limits.schedulable(alive=alive, unschedulable=waiting)))


def applied(found: tuple[Limit, ...], workload: Workload, *, standing: int) -> Limit:
    """The limit that binds, as the rules take it.

    Nothing is lowered for a limit of GPUs that are not there: it keeps from asking for more. The user's own minimum
    stands above every limit.
    """
    binding = limits.tightest(
        Limit(one.name, max(one.replicas, standing)) if one.name == "schedulable GPUs" else one for one in found
    )
    return Limit(binding.name, max(binding.replicas, min(workload.base, workload.maximum)))


def _some(limit: Limit | None) -> tuple[Limit, ...]:
    return () if limit is None else (limit,)


def _shares(other: Entry, entry: Entry) -> bool:
    return other is not entry and other.target.gpus.pool == entry.target.gpus.pool


def _held(entry: Entry) -> float:
    """GPUs that another target has, or has asked for; of one that cannot be seen now, what was last decided for it."""
    workload = entry.workload
    if not isinstance(workload, Workload):
        return (entry.decision.replicas if entry.decision else 0) * (entry.target.gpus.per_replica or 0)
    return max(workload.replicas, workload.standing) * (entry.target.gpus.per_replica or workload.gpus)
