"""A rival's number as a decision: cut to the bounds, with its reason."""

import math

from models.policy.decision import Decision, Reason
from models.policy.protocol import Observation


def bounded(replicas: int, seen: Observation) -> int:
    """Within the bounds; the upper one wins."""
    return min(max(replicas, seen.minimum), seen.maximum)


def decision(seen: Observation, wanted: int, note: str) -> Decision:
    """Ask for `wanted`, as far as the bounds allow."""
    return stating(seen, bounded(wanted, seen), wanted, note)


def stating(seen: Observation, replicas: int, wanted: int, note: str) -> Decision:
    """Ask for `replicas`, where the rule alone wanted `wanted`."""
    return Decision(seen.now, seen.replicas, replicas, wanted, reason(replicas, wanted, seen), note)


def held(seen: Observation, note: str) -> Decision:
    """No valid decision, so nothing but the bounds."""
    return Decision(seen.now, seen.replicas, bounded(seen.replicas, seen), None, Reason.HELD_UNKNOWN, note)


def reason(replicas: int, wanted: int, seen: Observation) -> Reason:
    """Why it is this number, told from the numbers alone."""
    if wanted > replicas == seen.maximum:
        return Reason.CAPPED_AT_MAXIMUM
    if replicas > seen.replicas:
        return Reason.RAISED_FOR_BACKLOG
    if replicas < seen.replicas:
        return Reason.LOWERED_ONE_STEP
    return Reason.HELD_RECENT_NEED if max(wanted, seen.minimum) < replicas else Reason.AT_PLAN


def ceil(number: float) -> int:
    """The next integer, forgiving 1e-9 of rounding so that 1.1 / .1 is 11 as in the rivals' fixed-point numbers."""
    return math.ceil(number - 1e-9)
