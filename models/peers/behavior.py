"""The `behavior` section of a HorizontalPodAutoscaler (autoscaling/v2): windows and rate policies."""

import dataclasses
import enum
import math


class PolicyKind(enum.StrEnum):
    """What a policy's value counts."""

    PODS = "Pods"
    PERCENT = "Percent"


class Select(enum.StrEnum):
    """Which of several policies holds: the one that allows most, least, or no change at all."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """So many pods, or so many percent, within a period (seconds)."""

    kind: PolicyKind
    value: int
    period: float = 15.0


@dataclasses.dataclass(frozen=True, slots=True)
class Direction:
    """Rules of one direction.

    Attributes:
        window: stabilisation window, seconds.
        policies: limits on the rate.
        select: which of them holds.
        tolerance: share by which the ratio may lie on this side of 1 without any change (KEP-4951); None leaves the
            controller's own.
    """

    window: float
    policies: tuple[Policy, ...]
    select: Select = Select.MAX
    tolerance: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Behavior:
    """Both directions, with the defaults Kubernetes fills in where `behavior` is present."""

    up: Direction = Direction(0.0, (Policy(PolicyKind.PERCENT, 100), Policy(PolicyKind.PODS, 4)))
    down: Direction = Direction(300.0, (Policy(PolicyKind.PERCENT, 100),))

    @property
    def longest(self) -> float:
        """The longest period of any policy, seconds: how long changes are remembered."""
        return max(policy.period for policy in (*self.up.policies, *self.down.policies))


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """Replicas added (positive) or taken away (negative) at a time, by whichever cause."""

    at: float
    by: int


def highest(direction: Direction, changes: list[Change], *, current: int, now: float) -> int:
    """The most replicas the policies allow on the way up; never below the current number."""
    if direction.select is Select.DISABLED:
        return current
    allowed = []
    for policy in direction.policies:
        start = _at_start_of(policy, changes, current=current, now=now)
        pods = policy.kind is PolicyKind.PODS
        # Exact where a float product would round 10 x 1.1 up to 12.
        allowed.append(start + policy.value if pods else math.ceil(start * (100 + policy.value) / 100))
    return max(max(allowed) if direction.select is Select.MAX else min(allowed), current)


def lowest(direction: Direction, changes: list[Change], *, current: int, now: float) -> int:
    """The fewest replicas the policies allow on the way down; never above the current number."""
    if direction.select is Select.DISABLED:
        return current
    allowed = []
    for policy in direction.policies:
        start = _at_start_of(policy, changes, current=current, now=now)
        pods = policy.kind is PolicyKind.PODS
        allowed.append(start - policy.value if pods else start * (100 - policy.value) // 100)
    return min(min(allowed) if direction.select is Select.MAX else max(allowed), current)


def _at_start_of(policy: Policy, changes: list[Change], *, current: int, now: float) -> int:
    """Replicas when the policy's period began."""
    return current - sum(change.by for change in changes if change.at > now - policy.period)
