"""KEDA's ScaledObject: the HPA it keeps from 1 to N, and the poll which alone goes between 0 and 1.

After keda/pkg/scaling/executor/scale_scaledobjects.go and pkg/fallback/fallback.go (2.20); defaults as documented.
scalingModifiers and the pausing annotations are left out.
"""

import dataclasses
import enum
import math

from models.peers import answer, behavior, metrics
from models.peers.hpa import Hpa, HpaSettings
from models.peers.triggers import Found, Health, Trigger
from models.policy.decision import Decision, Reason
from models.policy.protocol import Observation


class FallbackBehavior(enum.StrEnum):
    """The replicas a fallback asks for."""

    STATIC = "static"
    CURRENT = "currentReplicas"
    IF_HIGHER = "currentReplicasIfHigher"
    IF_LOWER = "currentReplicasIfLower"


@dataclasses.dataclass(frozen=True, slots=True)
class Fallback:
    """What replaces a metric that failed more than `failure_threshold` times in a row."""

    replicas: int
    failure_threshold: int = 3
    behavior: FallbackBehavior = FallbackBehavior.STATIC

    def wanted(self, current: int) -> int:
        """Replicas instead of what the metric would say."""
        match self.behavior:
            case FallbackBehavior.STATIC:
                return self.replicas
            case FallbackBehavior.CURRENT:
                return current
            case FallbackBehavior.IF_HIGHER:
                return max(self.replicas, current)
            case FallbackBehavior.IF_LOWER:
                return min(self.replicas, current)


@dataclasses.dataclass(frozen=True, slots=True)
class KedaSettings:
    """A ScaledObject; minReplicaCount and maxReplicaCount are the observation's bounds.

    Attributes:
        triggers: spec.triggers.
        polling: pollingInterval, seconds.
        cooldown: cooldownPeriod, seconds: only from N to 0.
        idle: idleReplicaCount; None where absent.
        fallback: spec.fallback; None is off.
        rules: advanced.horizontalPodAutoscalerConfig.behavior.
        tolerance: of the HPA.
        stabilisation: of the HPA where `rules` is absent, seconds.
    """

    triggers: tuple[Trigger, ...]
    polling: float = 30.0
    cooldown: float = 300.0
    idle: int | None = None
    fallback: Fallback | None = None
    rules: behavior.Behavior | None = None
    tolerance: float = 0.1
    stabilisation: float = 300.0

    def __post_init__(self) -> None:
        if not self.triggers:
            raise ValueError("triggers is empty: a ScaledObject needs one at least")
        if self.polling <= 0:
            raise ValueError(f"polling is {self.polling!r} s: must be positive")


class Keda:
    """A ScaledObject and its HPA; called at each sync of the HPA."""

    def __init__(self, settings: KedaSettings) -> None:
        self.settings = settings
        hpa = HpaSettings(tolerance=settings.tolerance, stabilisation=settings.stabilisation, rules=settings.rules)
        self._hpa = Hpa(hpa)
        self._failures = [0] * len(settings.triggers)  # in a row, by trigger
        self._polled_at = -math.inf
        self._active_at: float | None = None

    def decide(self, observation: Observation) -> Decision:
        """The poll if it is due, else the HPA."""
        if observation.now - self._polled_at >= self.settings.polling - 1e-9:
            self._polled_at = observation.now
            replicas, note = self._request_scale(observation)
            if replicas != observation.replicas:
                return answer.stating(observation, min(replicas, observation.maximum), replicas, note)
        if observation.replicas == 0:
            return Decision(observation.now, 0, 0, None, Reason.AT_PLAN, "at zero: the HPA is disabled")
        if observation.replicas == self.settings.idle and observation.replicas < observation.minimum:
            return Decision(observation.now, observation.replicas, observation.replicas, 0, Reason.AT_PLAN, "idle")
        lowest = max(1, observation.minimum)
        bounded = observation if lowest == observation.minimum else dataclasses.replace(observation, minimum=lowest)
        return self._hpa.follow(bounded, self._proposals)

    # ------------------------------------------------------------------------------------------------------- 1 to N
    def _proposals(self, seen: Observation, tolerance: metrics.Tolerance) -> list[int | None]:
        found = self._read(seen)
        return [self._proposal(k, found[k], seen, tolerance) for k in range(len(found))]

    def _proposal(self, k: int, found: Found, seen: Observation, tolerance: metrics.Tolerance) -> int | None:
        trigger = self.settings.triggers[k]
        value = self._replaced(k, seen) if isinstance(found, Health) else found
        if value is None:
            return None
        rule = metrics.average_value if trigger.kind is metrics.Kind.AVERAGE else metrics.plain_value
        return rule(value, trigger.threshold, seen, tolerance)

    def _replaced(self, k: int, seen: Observation) -> float | None:
        """The fallback's metric: target x replicas, for Value over the ready pods; None, an error, without."""
        fallback, trigger = self.settings.fallback, self.settings.triggers[k]
        if fallback is None or self._failures[k] <= fallback.failure_threshold:
            return None
        total = trigger.threshold * fallback.wanted(seen.replicas)
        if trigger.kind is metrics.Kind.AVERAGE:
            return total
        return total / seen.supply.ready if seen.supply.ready else None

    def _read(self, seen: Observation) -> list[Found]:
        found = [trigger.read(seen) for trigger in self.settings.triggers]
        for k, one in enumerate(found):
            self._failures[k] = self._failures[k] + 1 if isinstance(one, Health) else 0
        return found

    # ------------------------------------------------------------------------------------------------------- 0 and 1
    def _request_scale(self, seen: Observation) -> tuple[int, str]:
        """RequestScale of the scale executor."""
        found = self._read(seen)
        failed = any(isinstance(one, Health) for one in found)
        active = any(
            not isinstance(one, Health) and one > trigger.activation
            for one, trigger in zip(found, self.settings.triggers, strict=True)
        )
        if active:
            return self._woken(seen, failed=failed)
        return self._calmed(seen, failed=failed)

    def _woken(self, seen: Observation, *, failed: bool) -> tuple[int, str]:
        idling = seen.replicas == self.settings.idle and seen.replicas < seen.minimum
        if seen.replicas == 0 or idling:
            return max(seen.minimum, 1), "a trigger is active: woken"
        if not failed:
            self._active_at = seen.now
        return seen.replicas, "active"

    def _calmed(self, seen: Observation, *, failed: bool) -> tuple[int, str]:
        current, idle = seen.replicas, self.settings.idle
        if failed:
            return current, "a trigger failed: nothing is done"
        if (idle is not None and current > idle) or (idle is None and current > 0 and seen.minimum == 0):
            if self._active_at is not None and self._active_at + self.settings.cooldown >= seen.now:
                return current, "inactive, cooling down"
            return idle or 0, "inactive for the cooldown period"
        if current < seen.minimum and idle is None:
            return seen.minimum, "below minReplicaCount"
        return current, "inactive"
