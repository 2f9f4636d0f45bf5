"""All a decision may depend on: plain values, the clock included."""

import dataclasses

from models.capacity import sizing
from models.signals import Cause, Signal


@dataclasses.dataclass(frozen=True, slots=True)
class Supply:
    """Replicas of a target by what they can do.

    Attributes:
        ready: serve now.
        warming: asked for and expected to be ready in time.
        stuck: Pending or warming for far longer than measured; not counted as supply.
        ready_in: expected seconds until Ready of each warming replica, soonest first; none for those that are stuck.
            Empty where nothing is known of them one by one.
    """

    ready: int
    warming: int = 0
    stuck: int = 0
    ready_in: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class FloorSettings:
    """The rules' own numbers.

    Attributes:
        hold: seconds for which the number must not have been needed before it is lowered.
        step_down: replicas a step down at most.
        step_down_percent: share of the present number a step down may take instead, whichever is larger; 0..100.
        step_period: seconds between two steps down.
        step_up: replicas a write may add at most; None for no limit.
        unknown_ttl: seconds for which unknown signals hold the number before it decays towards the base.
    """

    hold: float = 180.0
    step_down: int = 1
    step_down_percent: float = 20.0
    step_period: float = 60.0
    step_up: int | None = None
    unknown_ttl: float = 3600.0

    def __post_init__(self) -> None:
        for name in ("hold", "step_period", "unknown_ttl"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)!r} s: must not be negative")
        if self.step_down < 1:
            raise ValueError(f"step_down is {self.step_down!r}: must be at least 1, else nothing ever comes down")
        if self.step_up is not None and self.step_up < 1:
            raise ValueError(f"step_up is {self.step_up!r}: must be at least 1, else nothing is ever raised")
        if not 0 <= self.step_down_percent <= 100:  # noqa: PLR2004  (a percentage)
            raise ValueError(f"step_down_percent is {self.step_down_percent!r}: must lie in 0..100")


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """What the rules remember of a target from one decision to the next; all times are Unix seconds.

    Attributes:
        needed_at: last time at which the number that stood was needed (raised, or planned, or first seen).
        lowered_at: last step down.
        unknown_since: since when signals or plans are unknown; None while all are known.
        unsized_since: since when the size of requests is unknown; None while it is known, or of no matter.
        missed_since: since when an objective is missed, or was after the last replica was added for it; None while met.
    """

    needed_at: float
    lowered_at: float = float("-inf")
    unknown_since: float | None = None
    unsized_since: float | None = None
    missed_since: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What is known of a target at the moment of a decision.

    Attributes:
        now: Unix time, seconds.
        standing: the number that stands now (the live floor, or the replica count where there is no autoscaler).
        base: the user's own minimum; never gone below.
        maximum: the owner's upper bound; never gone above.
        raising: plan at the raising quantile over the warm-up horizon.
        lowering: plan over the longer horizon, which must agree before anything is lowered.
        reacting: plan from the load of this moment, backlog included.
        supply: replicas by what they can do.
        unknown: signals that are not known, with the cause.
        loading: the history is not loaded yet.
        rollout: the workload is being rolled out.
        owner_problem: what the owner of the number reports to be wrong with its own scaling; empty when nothing.
        breach: the latency objective that is missed now, with its figures; empty when none is, or none is known.
        unsized: how much is known of the size of requests, too little to lower for; empty where that is known or of no
            matter.
    """

    now: float
    standing: int
    base: int
    maximum: int
    raising: sizing.Planned
    lowering: sizing.Planned
    reacting: sizing.Planned
    supply: Supply
    unknown: tuple[tuple[Signal, Cause], ...] = ()
    loading: bool = False
    rollout: bool = False
    owner_problem: str = ""
    breach: str = ""
    unsized: str = ""
