"""Knative's pod autoscaler: a stable and a panic window over the concurrency.

After knative/serving pkg/autoscaler/scaling/autoscaler.go and pkg/reconciler/autoscaling/kpa/scaler.go; defaults of
config/core/configmaps/autoscaler.yaml. It ticks every 2 s. The burst capacity only decides who proxies, so it is not
here.
"""

import dataclasses
import math

from models.peers import answer, sight
from models.peers.windows import Peak, Window
from models.policy.decision import Decision
from models.policy.protocol import Observation


@dataclasses.dataclass(frozen=True, slots=True)
class KpaSettings:
    """The autoscaler's ConfigMap.

    Attributes:
        target: container-concurrency-target-default, requests in flight a pod.
        utilisation: container-concurrency-target-percentage, as a share.
        stable_window: seconds.
        panic_share: panic-window-percentage, as a share of the stable window.
        panic_threshold: panic-threshold-percentage, as a ratio.
        up: max-scale-up-rate.
        down: max-scale-down-rate.
        activation_scale: the fewest replicas when there are any; 0 for none.
        scale_down_delay: seconds for which the largest number is kept.
        grace: scale-to-zero-grace-period, seconds.
        retention: scale-to-zero-pod-retention-period, seconds.
    """

    target: float = 100.0
    utilisation: float = 0.7
    stable_window: float = 60.0
    panic_share: float = 0.1
    panic_threshold: float = 2.0
    up: float = 1000.0
    down: float = 2.0
    activation_scale: int = 0
    scale_down_delay: float = 0.0
    grace: float = 30.0
    retention: float = 0.0

    def __post_init__(self) -> None:
        if not (self.target > 0 and 0 < self.utilisation <= 1):
            raise ValueError(f"target {self.target!r} x utilisation {self.utilisation!r}: must be positive")
        if not (self.up > 1 and self.down > 1):
            raise ValueError(f"rates up {self.up!r} and down {self.down!r}: must be above 1")

    @property
    def aimed(self) -> float:
        """Requests in flight a pod is meant to have."""
        return self.target * self.utilisation


class Kpa:
    """The rule with its windows."""

    def __init__(self, settings: KpaSettings | None = None) -> None:
        self.settings = settings or KpaSettings()
        self._stable = Window(self.settings.stable_window)
        self._panic = Window(self.settings.stable_window * self.settings.panic_share)
        self._delay = Peak(self.settings.scale_down_delay) if self.settings.scale_down_delay else None
        self._panicking_since: float | None = None
        self._most = 0  # the most replicas wanted in this panic
        self._started = False
        self._idle_since: float | None = None

    def decide(self, observation: Observation) -> Decision:
        """One tick."""
        self._start(observation)
        concurrency = sight.total(observation, sight.CONCURRENCY)
        if concurrency is not None:
            self._stable.add(observation.now, concurrency)
            self._panic.add(observation.now, concurrency)
        stable, panic = self._stable.mean(observation.now), self._panic.mean(observation.now)
        if stable is None or panic is None:
            return answer.held(observation, "no data in the window: no decision")
        wanted = self._wanted(stable, panic, ready=observation.supply.ready, now=observation.now)
        if self._delay is not None:
            wanted = int(self._delay.add(observation.now, wanted))
        mode = "stable" if self._panicking_since is None else "panic"
        note = f"{mode}: {stable:.1f} in flight over the stable window, {panic:.1f} over the panic window"
        return answer.stating(observation, self._down_to_zero(answer.bounded(wanted, observation), observation), wanted,
                              note)  # fmt: skip

    def _start(self, seen: Observation) -> None:
        """History is lost on a restart, so one with more than one ready pod begins in panic: nothing is lowered."""
        if not self._started and seen.supply.ready > 1:
            self._panicking_since, self._most = seen.now, seen.supply.ready
        self._started = True

    def _wanted(self, stable: float, panic: float, *, ready: int, now: float) -> int:
        settings, base = self.settings, max(1, ready)
        most, fewest = math.ceil(settings.up * base), math.floor(base / settings.down)
        by_stable, by_panic = answer.ceil(stable / settings.aimed), answer.ceil(panic / settings.aimed)
        over = by_panic / base >= settings.panic_threshold
        desired, urgent = min(max(by_stable, fewest), most), min(max(by_panic, fewest), most)
        if settings.activation_scale and by_stable > 0:
            desired = max(desired, settings.activation_scale)
        self._track_panic(over=over, now=now)
        if self._panicking_since is None:
            return desired
        self._most = max(self._most, desired, urgent)
        return self._most

    def _track_panic(self, *, over: bool, now: float) -> None:
        if over:
            self._panicking_since = now
        elif self._panicking_since is not None and self._panicking_since + self.settings.stable_window < now:
            self._panicking_since, self._most = None, 0

    def _down_to_zero(self, replicas: int, seen: Observation) -> int:
        """The last pod goes only after the grace, or the retention, has passed."""
        if replicas > 0 or seen.replicas == 0:
            self._idle_since = None
            return replicas
        if self._idle_since is None:
            self._idle_since = seen.now
        wait = max(self.settings.grace, self.settings.retention)
        return 0 if seen.now - self._idle_since >= wait else 1
