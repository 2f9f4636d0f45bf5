"""Ray Serve and SkyServe: a number that has to be wanted for a while before it is followed."""

import dataclasses

from models.peers import answer, sight
from models.peers.windows import Window
from models.policy.decision import Decision
from models.policy.protocol import Observation
from models.signals import Signal


class Delayed:
    """Follows a wish once it has pointed the same way for as long as that direction's delay."""

    def __init__(self, *, up: float, down: float) -> None:
        """`up` and `down` in seconds."""
        self._delays = {1: up, -1: down}
        self._direction = 0
        self._since = 0.0

    def follow(self, wanted: int, current: int, *, now: float) -> int:
        """`wanted` when its time has come, which starts its delay anew, else `current`."""
        direction = (wanted > current) - (wanted < current)
        if direction != self._direction:
            self._direction, self._since = direction, now
        if direction == 0 or now - self._since < self._delays[direction]:
            return current
        self._direction = 0
        return wanted


@dataclasses.dataclass(frozen=True, slots=True)
class RaySettings:
    """Ray Serve's AutoscalingConfig: target_ongoing_requests, smoothing factors, delays and look-back in seconds."""

    target: float = 2.0
    upscaling_factor: float = 1.0
    downscaling_factor: float = 1.0
    upscale_delay: float = 30.0
    downscale_delay: float = 600.0
    look_back: float = 30.0

    def __post_init__(self) -> None:
        if not self.target > 0:
            raise ValueError(f"target is {self.target!r}: must be positive")


class RayServe:
    """Ray Serve (python/ray/serve/autoscaling_policy.py); it ticks every .1 s."""

    def __init__(self, settings: RaySettings | None = None) -> None:
        self.settings = settings or RaySettings()
        self._window = Window(self.settings.look_back)
        self._delayed = Delayed(up=self.settings.upscale_delay, down=self.settings.downscale_delay)

    def decide(self, observation: Observation) -> Decision:
        """One tick."""
        found = sight.total(observation, sight.CONCURRENCY)
        if found is not None:
            self._window.add(observation.now, found)
        requests = self._window.mean(observation.now)
        if requests is None:
            return answer.held(observation, "no ongoing requests known")
        n = observation.replicas
        if n == 0:
            return answer.decision(observation, int(requests > 0), "from zero at once")
        wanted = answer.bounded(self._wanted(requests, n), observation)
        replicas = self._delayed.follow(wanted, n, now=observation.now)
        return answer.stating(observation, answer.bounded(replicas, observation), wanted, f"{requests:.1f} ongoing")

    def _wanted(self, requests: float, n: int) -> int:
        error = requests / (self.settings.target * n) - 1
        factor = self.settings.upscaling_factor if error > 0 else self.settings.downscaling_factor
        return answer.ceil(n + factor * n * error)


@dataclasses.dataclass(frozen=True, slots=True)
class SkySettings:
    """SkyServe's replica_policy: target_qps_per_replica, window and delays in seconds."""

    target: float = 1.0
    window: float = 60.0
    upscale_delay: float = 300.0
    downscale_delay: float = 1200.0

    def __post_init__(self) -> None:
        if not self.target > 0:
            raise ValueError(f"target is {self.target!r}: must be positive")


class SkyServe:
    """SkyServe's request-rate autoscaler (sky/serve/autoscalers.py)."""

    def __init__(self, settings: SkySettings | None = None) -> None:
        self.settings = settings or SkySettings()
        self._window = Window(self.settings.window)
        self._delayed = Delayed(up=self.settings.upscale_delay, down=self.settings.downscale_delay)

    def decide(self, observation: Observation) -> Decision:
        """One tick."""
        rate = sight.value(observation, Signal.ARRIVALS)
        if rate is not None:
            self._window.add(observation.now, rate)
        mean = self._window.mean(observation.now)
        if mean is None:
            return answer.held(observation, "no request rate known")
        wanted = answer.bounded(answer.ceil(mean / self.settings.target), observation)
        replicas = self._delayed.follow(wanted, observation.replicas, now=observation.now)
        return answer.stating(observation, answer.bounded(replicas, observation), wanted, f"{mean:.2f} requests/s")
