"""llm-d's Workload Variant Autoscaler (v0.9.0): the shapes of its two analysers, and the saturation one (V1).

A variant is one Deployment of a model on one kind of GPU; a target that stands alone is one variant. It ticks every
15 s. KV usage and queue are the largest of the last minute by replica, and what is missing reads as 0.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from models.peers import answer, sight
from models.peers.windows import Peak
from models.policy.decision import Decision
from models.policy.protocol import Observation, Pod
from models.signals import Signal

MINUTE = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Replica:
    """One that reports: share of the KV cache in use, requests waiting."""

    kv: float
    queue: float


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """One Deployment.

    Attributes:
        name: breaks ties of the cost.
        current: status.replicas.
        pending: of those, not ready.
        replicas: those that report.
        cost: of one replica, in any unit.
        minimum: replicas at least.
        maximum: replicas at most.
    """

    name: str
    current: int
    pending: int
    replicas: tuple[Replica, ...]
    cost: float = 1.0
    minimum: int = 1
    maximum: int = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class SaturationSettings:
    """V1's thresholds.

    Attributes:
        kv: KV usage at which a replica is saturated.
        queue: waiting requests at which it is.
        spare_kv: mean distance to `kv` below which one replica is added.
        spare_queue: likewise for the queue.
    """

    kv: float = 0.80
    queue: float = 5.0
    spare_kv: float = 0.10
    spare_queue: float = 3.0

    def __post_init__(self) -> None:
        if not (self.kv > self.spare_kv > 0 and self.queue > self.spare_queue > 0):
            raise ValueError(f"{self}: thresholds must exceed the spare ones, and those 0")


def saturation(variants: Sequence[Variant], settings: SaturationSettings) -> dict[str, int]:
    """V1: one replica more or less for the model, by the spare capacity of its unsaturated replicas."""
    wanted = {variant.name: variant.current for variant in variants}
    reporting = [variant for variant in variants if variant.replicas]
    if not reporting or any(variant.pending > 0 for variant in reporting):
        return wanted  # held, and not even the bounds are looked at
    way = _way([one for variant in reporting for one in variant.replicas], settings)
    if way > 0:
        wanted[min(reporting, key=_price).name] += 1
    elif way < 0 and (above := [variant for variant in reporting if variant.current > 1]):
        wanted[max(above, key=_price).name] -= 1
    for variant in reporting:
        wanted[variant.name] = min(max(wanted[variant.name], variant.minimum), variant.maximum)
    return wanted


def _price(variant: Variant) -> tuple[float, str]:
    return variant.cost, variant.name


def _way(replicas: Sequence[Replica], settings: SaturationSettings) -> int:
    """1 for up, -1 for down, 0 for neither."""
    free = [one for one in replicas if one.kv < settings.kv and one.queue < settings.queue]
    n = len(free)
    kv = sum(settings.kv - one.kv for one in free) / n if n else 0.0
    queue = sum(settings.queue - one.queue for one in free) / n if n else 0.0
    if kv < settings.spare_kv or queue < settings.spare_queue:
        return 1
    if n < 2:  # noqa: PLR2004  (one cannot take over from itself)
        return 0
    spread = n / (n - 1)  # the load of one replica goes to the others
    kv_left = settings.kv - (settings.kv - kv) * spread
    queue_left = settings.queue - (settings.queue - queue) * spread
    return -1 if kv_left >= settings.spare_kv - 1e-12 and queue_left >= settings.spare_queue - 1e-12 else 0


class Reports:
    """The largest KV usage and queue of the last minute of each replica that reports."""

    def __init__(self) -> None:
        self._peaks: dict[str, tuple[Peak, Peak]] = {}

    def look(self, seen: Observation) -> list[Replica]:
        """Those of this moment, one a pod."""
        found: dict[str, Replica | None] = {}
        replicas = []
        for pod in sight.pods(seen):
            if pod.name not in found:  # pods that are alike have one name
                found[pod.name] = self._look_at(pod, seen.now)
            one = found[pod.name]
            if one is not None:
                replicas.append(one)
        if len(self._peaks) > len(found):
            self._peaks = {name: peaks for name, peaks in self._peaks.items() if name in found}
        return replicas

    def _look_at(self, pod: Pod, now: float) -> Replica | None:
        if not pod.ready or pod.deleting or (pod.kv_usage is None and pod.waiting is None):
            return None
        if pod.name not in self._peaks:
            self._peaks[pod.name] = (Peak(MINUTE), Peak(MINUTE))
        kv, queue = self._peaks[pod.name]
        # A gauge that is missing reads as 0: one of WVA's known failures.
        return Replica(kv.add(now, pod.kv_usage or 0.0), queue.add(now, pod.waiting or 0.0))


class Saturation:
    """V1 on a target that is a model's only variant."""

    def __init__(self, settings: SaturationSettings | None = None) -> None:
        self.settings = settings or SaturationSettings()
        self._reports = Reports()

    def decide(self, observation: Observation) -> Decision:
        """One tick."""
        replicas = self._reports.look(observation)
        if not replicas:
            return answer.held(observation, "no replica reports")
        one = alone(observation, replicas)
        wanted = saturation([one], self.settings)[one.name]
        return answer.decision(observation, wanted, f"{len(replicas)} replicas report, {one.pending} pending")


def alone(seen: Observation, replicas: Sequence[Replica]) -> Variant:
    """The target as the only variant of its model."""
    current = sight.existing(seen)
    bounds = {"minimum": seen.minimum, "maximum": seen.maximum}
    return Variant("only", current, current - seen.supply.ready, tuple(replicas), **bounds)


def lengths(seen: Observation) -> Mapping[str, float] | None:
    """Rates of prompt tokens, output tokens and requests, for means over a window; None where one is not known."""
    named = {"prompt": Signal.TOKENS_IN, "output": Signal.TOKENS_OUT, "requests": Signal.ARRIVALS}
    found = {name: sight.value(seen, signal) for name, signal in named.items()}
    known = {name: value for name, value in found.items() if value is not None}
    return known if len(known) == len(named) else None
