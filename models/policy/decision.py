"""What was decided for a target, and why."""

import dataclasses
import enum


class Reason(enum.StrEnum):
    """The one reason a decision carries. The value is also the metric label and the Event reason."""

    RAISED_FOR_FORECAST = "RaisedForForecast"
    RAISED_FOR_BACKLOG = "RaisedForBacklog"
    RAISED_FOR_OBJECTIVE = "RaisedForObjective"
    RAISED_TO_BASE = "RaisedToBase"
    AT_PLAN = "AtPlan"
    LOWERED_ONE_STEP = "LoweredOneStep"
    DECAYED_ONE_STEP = "DecayedOneStep"
    HELD_LOADING = "HeldWhileLoading"
    HELD_UNKNOWN = "HeldUnknownSignals"
    HELD_NO_FORECAST = "HeldNoForecast"
    HELD_OWNER_UNHEALTHY = "HeldOwnerUnhealthy"
    HELD_ROLLOUT = "HeldRollout"
    HELD_OBJECTIVE_MISSED = "HeldObjectiveMissed"
    HELD_RECENT_NEED = "HeldRecentNeed"
    HELD_STEP_PERIOD = "HeldStepPeriod"
    CAPPED_AT_MAXIMUM = "CappedAtMaximum"
    CAPPED_BY_STEP = "CappedByStep"


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule said: the replicas after it and the reason, in the order in which the rules spoke."""

    rule: str
    replicas: int
    reason: Reason
    note: str


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """The replicas after the rules.

    Attributes:
        at: Unix time of the decision, seconds.
        before: the number that stood when it was made.
        replicas: the number that should stand now.
        wanted: what the plan asked for before any rule or limit; None where there was no plan.
        reason: why it is this number.
        note: the same for a person, with the figures.
        trail: every rule that changed the number or the reason, in order.
    """

    at: float
    before: int
    replicas: int
    wanted: int | None
    reason: Reason
    note: str
    trail: tuple[Verdict, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether the number that stands has to be written."""
        return self.replicas != self.before
