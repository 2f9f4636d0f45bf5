"""AIBrix's own autoscalers, APA and KPA, on a mean per pod.

After vllm-project/aibrix pkg/controller/podautoscaler; defaults as documented.
"""

import dataclasses

from models.peers import answer, sight
from models.peers.windows import Peak, Window
from models.policy.decision import Decision
from models.policy.protocol import Observation
from models.signals import Signal


@dataclasses.dataclass(frozen=True, slots=True)
class ApaSettings:
    """APA.

    Attributes:
        signals: the metric; a mean over the replicas counts as its sum.
        target: the value a pod is meant to have.
        tolerance: up- and down-fluctuation-tolerance.
        rate_up: most times as many replicas in one step.
        rate_down: fewest, as a divisor.
        cooldown: seconds for which the largest number is kept.
    """

    signals: tuple[Signal, ...] = sight.CONCURRENCY
    target: float = 40.0
    tolerance: float = 0.1
    rate_up: float = 2.0
    rate_down: float = 2.0
    cooldown: float = 300.0

    def __post_init__(self) -> None:
        if not self.target > 0:
            raise ValueError(f"target is {self.target!r}: must be positive")


class Apa:
    """u = use / target decides the step."""

    def __init__(self, settings: ApaSettings | None = None) -> None:
        self.settings = settings or ApaSettings()
        self._recent = Peak(self.settings.cooldown)

    def decide(self, observation: Observation) -> Decision:
        """One step."""
        found = sight.total(observation, self.settings.signals)
        if found is None or not observation.supply.ready:
            return answer.held(observation, "no metric")
        wanted = self._step(found / observation.supply.ready / self.settings.target, max(observation.replicas, 1))
        kept = int(self._recent.add(observation.now, wanted))
        return answer.stating(observation, answer.bounded(kept, observation), wanted, f"metric {found:g}: {wanted}")

    def _step(self, use: float, n: int) -> int:
        settings = self.settings
        if use > 1 + settings.tolerance:
            return min(answer.ceil(n * use), answer.ceil(n * settings.rate_up))
        if use < 1 - settings.tolerance:
            return max(answer.ceil(n * use), int(n // settings.rate_down))
        return n


@dataclasses.dataclass(frozen=True, slots=True)
class AibrixKpaSettings:
    """KPA as AIBrix has it: other windows and another panic than Knative's."""

    signals: tuple[Signal, ...] = sight.CONCURRENCY
    target: float = 40.0
    stable_window: float = 180.0
    panic_window: float = 60.0
    panic_threshold: float = 2.0
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        if not self.target > 0:
            raise ValueError(f"target is {self.target!r}: must be positive")


class AibrixKpa:
    """ceil(window / target), of the panic window while it is more than twice the stable one."""

    def __init__(self, settings: AibrixKpaSettings | None = None) -> None:
        self.settings = settings or AibrixKpaSettings()
        self._stable = Window(self.settings.stable_window)
        self._panic = Window(self.settings.panic_window)

    def decide(self, observation: Observation) -> Decision:
        """One step."""
        found = sight.total(observation, self.settings.signals)
        if found is not None:
            self._stable.add(observation.now, found)
            self._panic.add(observation.now, found)
        stable, panic = self._stable.mean(observation.now), self._panic.mean(observation.now)
        if stable is None or panic is None:
            return answer.held(observation, "no metric in the window")
        panicking = stable <= 0 or panic / stable > self.settings.panic_threshold
        load = panic if panicking else stable
        there = self.settings.target * max(observation.replicas, 1)
        near = abs(load / there - 1) <= self.settings.tolerance + 1e-12
        wanted = observation.replicas if near else answer.ceil(load / self.settings.target)
        return answer.decision(observation, wanted, f"{'panic' if panicking else 'stable'} window at {load:.1f}")
