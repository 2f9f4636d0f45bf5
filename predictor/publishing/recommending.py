"""What may be told to others as the number a target should have now, or why there is none."""

import dataclasses
from typing import TypeAlias

from models.policy.decision import Reason
from predictor.board import Entry
from predictor.ports import Refused

# The number then is the one from before, kept for want of anything better: whoever asks is better served by an error.
OLD_NUMBERS = frozenset({Reason.HELD_LOADING, Reason.HELD_UNKNOWN, Reason.HELD_NO_FORECAST})
PASSING = frozenset({"Unreachable", "Stale", "TooManyRequests", "ServerError", "Unreadable", "Conflict", "Expired"})


@dataclasses.dataclass(frozen=True, slots=True)
class Recommended:
    """The replicas a target should have at least."""

    replicas: int


@dataclasses.dataclass(frozen=True, slots=True)
class Withheld:
    """Why there is no number; `passing` where time alone may mend it."""

    why: str
    passing: bool = True


Recommendation: TypeAlias = Recommended | Withheld


def recommend(entry: Entry, *, at: float, old_after: float) -> Recommendation:
    """The number of the last decision, as long as that is a decision and not old.

    Args:
        entry: the target's row.
        at: monotonic seconds, as in the row.
        old_after: seconds from which a decision is old.
    """
    workload, decision = entry.workload, entry.decision
    if isinstance(workload, Refused):
        return Withheld(f"{workload.reason}: {workload.detail}", passing=workload.reason in PASSING)
    if workload is None or decision is None:
        return Withheld("nothing has been decided yet")
    age = at - entry.acted_at
    if age > old_after:
        return Withheld(f"the last decision is {age:.0f} s old, at most {old_after:.0f} s is told")
    if decision.reason in OLD_NUMBERS and not _held_for_sizes(entry, decision.reason):
        return Withheld(f"{decision.reason}: {decision.note}")
    return Recommended(decision.replicas)


def _held_for_sizes(entry: Entry, reason: Reason) -> bool:
    """Whether the number only waits for the sizes of requests: it is planned for, and the plan asks for less."""
    context = entry.basis.context if entry.basis else None
    return reason is Reason.HELD_UNKNOWN and context is not None and bool(context.unsized) and not context.unknown
