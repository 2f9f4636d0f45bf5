"""A fleet of pods that follow the floor at once, as the API server tells of them, and the signals it gives."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from models.policy.decision import Decision
from models.series import Series
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.cluster import pods
from predictor.cluster.warmups import WarmUps
from predictor.ports import Owner, Readings, Workload, Written
from predictor.targets import Target
from tests.fakes.cluster_objects import NOW, Json, pod


@dataclasses.dataclass
class PodFleet:
    """What runs, whoever looks at it.

    Attributes:
        demand: requests in flight at a time.
        now: Unix time, seconds.
        takes: seconds from asking for a replica until it is Ready.
        knee: requests in flight a replica above which the time to the first token is missed.
        base: the user's own minimum.
        maximum: their own maximum.
    """

    demand: Callable[[float], float]
    now: float
    takes: float = 240.0
    knee: float = 60.0
    base: int = 2
    maximum: int = 4

    def __post_init__(self) -> None:
        self.floor = self.base
        self.written: list[tuple[float, int]] = []
        self._made = 0
        self._born: list[tuple[str, float]] = []
        self.scale(self.base, ready=True)

    def scale(self, replicas: int, *, ready: bool = False) -> None:
        """An HPA that wants nothing of its own follows the floor; the youngest go first."""
        while len(self._born) < replicas:
            self._made += 1
            self._born.append((f"p{self._made}", self.now - (self.takes if ready else 0.0)))
        del self._born[replicas:]

    def pods(self) -> list[Json]:
        """As the API server lists them; its times have whole seconds."""
        return [self._pod(name, born) for name, born in self._born]

    def _pod(self, name: str, born: float) -> Json:
        ready = born + self.takes - NOW if self.now >= born + self.takes else None
        return pod(name, created=born - NOW, ready=ready)

    def ttft(self) -> float:
        """Seconds to the first token, p95."""
        ready = sum(self.now >= born + self.takes for _, born in self._born)
        return 0.5 if self.demand(self.now) <= self.knee * max(ready, 1) else 5.0


class Observer:
    """One process' view of a fleet: both ports, and what it remembers of starts."""

    def __init__(self, fleet: PodFleet) -> None:
        self.fleet, self.warm_ups = fleet, WarmUps()

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Readings]:
        """What its pages say."""
        readings: dict[Signal, Reading] = dict.fromkeys(Signal, Unknown(Cause.NOT_ASKED))
        readings[Signal.IN_FLIGHT] = Known(self.fleet.demand(now), now)
        readings[Signal.WAITING] = Known(0.0, now)
        readings[Signal.TTFT_P95] = Known(self.fleet.ttft(), now)
        return {target.key: readings for target in targets}

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        """The past of what is in flight."""
        if signal is not Signal.IN_FLIGHT:
            return {target.key: Unknown(Cause.EMPTY) for target in targets}
        start = since // step * step
        times = [start + step * number for number in range(int((until - start) // step) + 1)]
        series = Series(start, step, [self.fleet.demand(time) for time in times])  # type: ignore[arg-type]
        return {target.key: series for target in targets}

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload]:
        """Its replicas, as the adapter to the API server makes them out."""
        running = self.fleet.pods()
        states: dict[str, Workload] = {}
        for target in targets:
            usual = self.warm_ups.usual(target.key, running, now=now, default=target.warm_up)
            states[target.key] = Workload(
                owner=Owner.HPA,
                standing=self.fleet.floor,
                base=self.fleet.base,
                maximum=self.fleet.maximum,
                replicas=len(running),
                supply=pods.supply(running, now=now, usual=usual),
                warm_up=usual,
                gpu="H100",
            )
        return states

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written:  # noqa: ARG002
        """Sets the floor."""
        self.fleet.floor = replicas
        self.fleet.written.append((now, replicas))
        self.fleet.scale(replicas)
        return Written(replicas)

    def announce(self, target: Target, decision: Decision) -> None:
        """Nobody to tell."""

    def release(self, target: Target) -> Written:  # noqa: ARG002
        """Its base."""
        return Written(self.fleet.base)
