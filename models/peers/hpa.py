"""The HorizontalPodAutoscaler (autoscaling/v2) on one metric or several.

After kubernetes/pkg/controller/podautoscaler (1.36): bounds first, then the metrics, then stabilisation and rate. The
controller syncs every 15 s by default.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

from models.peers import answer, behavior, metrics, windows
from models.policy.decision import Decision, Reason
from models.policy.protocol import Observation
from models.signals import Signal

Propose = Callable[[Observation, metrics.Tolerance], Sequence[int | None]]


@dataclasses.dataclass(frozen=True, slots=True)
class HpaSettings:
    """What is followed, and how.

    Attributes:
        signal: the metric where there is just one, External with an averageValue.
        target: the value per replica that is aimed at.
        tolerance: share by which the ratio may differ from 1 without any change; `rules` may have its own by direction.
        stabilisation: seconds for which a higher recommendation is still followed, where `behavior` is absent.
        rules: the section `behavior`; None where it is absent, which is not the same as its defaults.
        several: the section `metrics`, instead of `signal` and `target`.
    """

    signal: Signal = Signal.WAITING
    target: float = 2.0
    tolerance: float = 0.1
    stabilisation: float = 300.0
    rules: behavior.Behavior | None = None
    several: tuple[metrics.Metric, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.target) and self.target > 0):
            raise ValueError(f"target is {self.target!r}: must be a positive number")

    @property
    def followed(self) -> tuple[metrics.Metric, ...]:
        """The metrics."""
        return self.several or (metrics.External((self.signal,), self.target),)

    @property
    def tolerances(self) -> metrics.Tolerance:
        """Those of both directions."""
        if self.rules is None:
            return metrics.Tolerance(self.tolerance, self.tolerance)
        up, down = self.rules.up.tolerance, self.rules.down.tolerance
        return metrics.Tolerance(self.tolerance if up is None else up, self.tolerance if down is None else down)


class Hpa:
    """The rule with its memory."""

    def __init__(self, settings: HpaSettings) -> None:
        self.settings = settings
        self._followed = settings.followed
        self._tolerances = settings.tolerances
        # What the metrics alone asked for: the highest of the window, or where there are rules, all with their times.
        self._highest = windows.Peak(settings.stabilisation)
        self._recommendations: list[tuple[float, int]] = []
        self._changes: list[behavior.Change] = []

    def decide(self, observation: Observation) -> Decision:
        """One sync."""
        return self.follow(observation, self._proposals)

    def follow(self, observation: Observation, propose: Propose) -> Decision:
        """One sync on proposals made by somebody else, who is only asked where metrics are looked at."""
        replicas, wanted, reason, note = self._sync(observation, propose)
        rules = self.settings.rules
        if rules is not None and replicas != observation.replicas:
            # Floor raises count as well: they eat the policies' budget of their period.
            kept = [change for change in self._changes if change.at > observation.now - rules.longest]
            self._changes = [*kept, behavior.Change(observation.now, replicas - observation.replicas)]
        return Decision(observation.now, observation.replicas, replicas, wanted, reason, note)

    def _proposals(self, seen: Observation, tolerances: metrics.Tolerance) -> list[int | None]:
        return [metric.proposal(seen, tolerances) for metric in self._followed]

    def _sync(self, seen: Observation, propose: Propose) -> tuple[int, int | None, Reason, str]:
        current = seen.replicas
        if current == 0 and seen.minimum != 0:
            return 0, None, Reason.AT_PLAN, "scaled to zero: scaling is disabled, and a floor does not wake it"
        if current > seen.maximum:
            return seen.maximum, None, Reason.CAPPED_AT_MAXIMUM, f"above max {seen.maximum}: metrics not looked at"
        if current < seen.minimum:
            return seen.minimum, None, Reason.RAISED_TO_BASE, f"below min {seen.minimum}: metrics not looked at"
        proposals = propose(seen, self._tolerances)
        wanted = metrics.combine(proposals, current)
        if wanted is None:
            missing = sum(one is None for one in proposals)
            return current, None, Reason.HELD_UNKNOWN, f"{missing} of {len(proposals)} metrics missing: no scaling"
        replicas = self._normalised(wanted, seen)
        return replicas, wanted, answer.reason(replicas, wanted, seen), self._note(seen, wanted, propose)

    def _note(self, seen: Observation, wanted: int, propose: Propose) -> str:
        only = self._followed[0]
        if propose == self._proposals and len(self._followed) == 1 and isinstance(only, metrics.External):
            return f"{only.describe(seen)} asks for {wanted}"
        return f"the metrics ask for {wanted}"

    def _normalised(self, wanted: int, seen: Observation) -> int:
        """After stabilisation and the limits on the rate; within the bounds."""
        rules = self.settings.rules
        if rules is None:
            stable = int(self._highest.add(seen.now, wanted))
            return answer.bounded(min(stable, max(2 * seen.replicas, 4)), seen)
        up = min([wanted, *self._recent(rules.up.window, seen.now)])
        down = max([wanted, *self._recent(rules.down.window, seen.now)])
        self._recommend(wanted, seen.now)
        stable = min(max(seen.replicas, up), down)
        return answer.bounded(self._limited(stable, seen), seen)

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
        rules = self.settings.rules or behavior.Behavior()
        window = max(rules.up.window, rules.down.window)
        kept = [(at, replicas) for at, replicas in self._recommendations if at > now - window]
        self._recommendations = [*kept, (now, wanted)]
