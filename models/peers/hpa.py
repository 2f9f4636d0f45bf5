"""The HorizontalPodAutoscaler (autoscaling/v2) on one External metric of type AverageValue.

After kubernetes/pkg/controller/podautoscaler (1.36): bounds first, then the metric, then stabilisation and rate.
"""

import dataclasses
import math

from models.peers import behavior
from models.policy.decision import Decision, Reason
from models.policy.protocol import Observation
from models.signals import Known, Signal


@dataclasses.dataclass(frozen=True, slots=True)
class HpaSettings:
    """One metric and how it is followed.

    Attributes:
        signal: the metric; a mean over the replicas (KV usage) counts as its sum.
        target: the value per replica that is aimed at (averageValue).
        tolerance: share by which the ratio may differ from 1 without any change.
        stabilisation: seconds for which a higher recommendation is still followed, where `behavior` is absent.
        rules: the section `behavior`; None where it is absent, which is not the same as its defaults.
    """

    signal: Signal = Signal.WAITING
    target: float = 2.0
    tolerance: float = 0.1
    stabilisation: float = 300.0
    rules: behavior.Behavior | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.target) and self.target > 0):
            raise ValueError(f"target is {self.target!r}: must be a positive number")


class Hpa:
    """The rule with its memory; a sync every 15 s by default."""

    def __init__(self, settings: HpaSettings) -> None:
        self.settings = settings
        self._recommendations: list[tuple[float, int]] = []  # (time, what the metric alone asked for)
        self._changes: list[behavior.Change] = []

    def decide(self, observation: Observation) -> Decision:
        """One sync."""
        replicas, wanted, reason, note = self._sync(observation)
        rules = self.settings.rules
        if rules is not None and replicas != observation.replicas:
            # Floor raises count as well: they eat the policies' budget of their period.
            kept = [change for change in self._changes if change.at > observation.now - rules.longest]
            self._changes = [*kept, behavior.Change(observation.now, replicas - observation.replicas)]
        return Decision(
            at=observation.now, before=observation.replicas, replicas=replicas, wanted=wanted, reason=reason, note=note
        )

    def _sync(self, seen: Observation) -> tuple[int, int | None, Reason, str]:
        current = seen.replicas
        if current == 0 and seen.minimum != 0:
            return 0, None, Reason.AT_PLAN, "scaled to zero: scaling is disabled, and a floor does not wake it"
        if current > seen.maximum:
            return seen.maximum, None, Reason.CAPPED_AT_MAXIMUM, f"above max {seen.maximum}: metrics not looked at"
        if current < seen.minimum:
            return seen.minimum, None, Reason.RAISED_TO_BASE, f"below min {seen.minimum}: metrics not looked at"
        reading = seen.readings.get(self.settings.signal)
        if not isinstance(reading, Known):
            return current, None, Reason.HELD_UNKNOWN, f"no {self.settings.signal}: no scaling"
        wanted = self.proposal(seen, reading.value)
        replicas = self._normalised(wanted, seen)
        return replicas, wanted, _reason(replicas, wanted, seen), self._note(reading.value, wanted)

    def proposal(self, seen: Observation, value: float) -> int:
        """What the metric alone asks for: ceil(sum / target), or what there is while that is within tolerance."""
        pods = seen.supply.ready + seen.supply.warming + seen.supply.stuck  # status.replicas
        total = value * seen.supply.ready if self.settings.signal is Signal.KV_USAGE else value
        if pods and abs(total / (self.settings.target * pods) - 1) <= self.settings.tolerance + 1e-12:
            return pods
        return math.ceil(total / self.settings.target - 1e-9)

    def _normalised(self, wanted: int, seen: Observation) -> int:
        """After stabilisation and the limits on the rate; within the bounds."""
        rules = self.settings.rules
        if rules is None:
            stable = max(self._recent(self.settings.stabilisation, seen.now), default=wanted)
            self._recommend(wanted, seen.now)
            return _clamp(min(max(stable, wanted), max(2 * seen.replicas, 4)), seen)
        up = min([wanted, *self._recent(rules.up.window, seen.now)])
        down = max([wanted, *self._recent(rules.down.window, seen.now)])
        self._recommend(wanted, seen.now)
        stable = min(max(seen.replicas, up), down)
        return _clamp(self._limited(stable, seen), seen)

    def _limited(self, replicas: int, seen: Observation) -> int:
        rules = self.settings.rules or behavior.Behavior()
        if replicas > seen.replicas:
            limit = behavior.highest(rules.up, self._changes, current=seen.replicas, now=seen.now)
            return min(replicas, limit)
        if replicas < seen.replicas:
            limit = behavior.lowest(rules.down, self._changes, current=seen.replicas, now=seen.now)
            return max(replicas, limit)
        return replicas

    def _recent(self, window: float, now: float) -> list[int]:
        return [replicas for at, replicas in self._recommendations if at > now - window]

    def _recommend(self, wanted: int, now: float) -> None:
        rules = self.settings.rules
        window = self.settings.stabilisation if rules is None else max(rules.up.window, rules.down.window)
        kept = [(at, replicas) for at, replicas in self._recommendations if at > now - window]
        self._recommendations = [*kept, (now, wanted)]

    def _note(self, value: float, wanted: int) -> str:
        return f"{self.settings.signal} {value:g} at {self.settings.target:g} a replica asks for {wanted}"


def _clamp(replicas: int, seen: Observation) -> int:
    return min(max(replicas, seen.minimum), seen.maximum)


def _reason(replicas: int, wanted: int, seen: Observation) -> Reason:
    if wanted > replicas == seen.maximum:
        return Reason.CAPPED_AT_MAXIMUM
    if replicas > seen.replicas:
        return Reason.RAISED_FOR_BACKLOG
    if replicas < seen.replicas:
        return Reason.LOWERED_ONE_STEP
    return Reason.HELD_RECENT_NEED if max(wanted, seen.minimum) < replicas else Reason.AT_PLAN
