"""The cluster of the demo, in memory: fleets, their autoscalers, and the port through which the loops write."""

from collections.abc import Mapping, Sequence

from models.capacity import warmup
from models.fleet import page
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment, Phase, Pod
from models.fleet.requests import Requests
from models.policy.context import Supply
from models.policy.decision import Decision
from models.policy.protocol import Autoscaler, Observation
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.demo import scenario
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Target

KEPT = 100  # warm-ups that are looked at; a simulated day has hundreds


class Autoscaled:
    """A fleet under an HPA; the HPA's minimum is a number anybody may set."""

    def __init__(self, cluster: Cluster, *, hpa: Autoscaler | None) -> None:
        """Without an HPA the replica count is whatever it is set to."""
        self._cluster = cluster
        self.minimum = scenario.MINIMUM
        self.hpa = hpa
        self.last: Decision | None = None

    @property
    def deployment(self) -> Deployment:
        """The fleet."""
        return self._cluster.deployments[scenario.NAME]

    @property
    def now(self) -> float:
        """The present, seconds from midnight."""
        return self._cluster.now

    def begin(self) -> None:
        """The replicas that stand at the beginning serve."""
        self.deployment.advance(self.now)

    def serve(self, requests: Requests, *, until: float) -> None:
        """Lets time pass until then, seconds; these are the requests that arrive before."""
        self.deployment.pool.offer(requests)
        self._cluster.advance(until)

    def scale(self, replicas: int) -> None:
        """Asks for a number of replicas."""
        self._cluster.scale(scenario.NAME, replicas)

    def count(self, *phases: Phase) -> int:
        """Replicas in any of these phases."""
        return sum(pod.phase in phases for pod in self.deployment.pods)

    @property
    def ready(self) -> list[Pod]:
        """The replicas that serve, oldest first."""
        return [pod for pod in self.deployment.pods if pod.phase is Phase.READY]

    @property
    def supply(self) -> Supply:
        """Replicas by what they can do."""
        usual = self.usual
        coming = [pod for pod in self.deployment.pods if pod.phase in (Phase.STARTING, Phase.PENDING)]
        left = (warmup.remaining(usual.waits, self.now - pod.created, longest=usual.longest) for pod in coming)
        return Supply(ready=self.count(Phase.READY), warming=len(coming), ready_in=tuple(sorted(left)))

    @property
    def usual(self) -> warmup.Usual:
        """How long starts take, by those of the day so far."""
        starts = [warmup.Start(0.0, ready=seconds) for seconds in self.deployment.warm_ups[-KEPT:]]
        return warmup.usual(starts, now=0.0, default=scenario.TYPICAL_WARM_UP)

    def sync(self) -> None:
        """One sync of the HPA, on what the ready replicas report now: the freshest it could see."""
        if self.hpa is None:
            return
        seen = Observation(
            now=self.now,
            replicas=self.deployment.wanted,
            minimum=self.minimum,
            maximum=scenario.MAXIMUM,
            supply=self.supply,
            readings=self._readings(),
        )
        self.last = self.hpa.decide(seen)
        if self.last.changes:
            self.scale(self.last.replicas)

    def _readings(self) -> dict[Signal, Reading]:
        seen = [page.gauges(self.deployment.pool, pod.slot) for pod in self.ready]
        if not seen:
            return dict.fromkeys((Signal.WAITING, Signal.IN_FLIGHT), Unknown(Cause.EMPTY, "no replica is ready"))
        return {
            Signal.WAITING: Known(float(sum(one.waiting for one in seen)), self.now),
            Signal.IN_FLIGHT: Known(float(sum(one.running for one in seen)), self.now),
        }


def name_of(pod: Pod) -> str:
    """What a replica is called."""
    return f"replica-{pod.number + 1}"


class SimulatedCluster:
    """The port `Workloads` over one simulated fleet."""

    def __init__(self, side: Autoscaled) -> None:
        self._side = side
        self.owner = Owner.SCALE if side.hpa is None else Owner.HPA

    @property
    def _standing(self) -> int:
        return self._side.minimum if self.owner is Owner.HPA else self._side.deployment.wanted

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload | Refused]:  # noqa: ARG002
        """The same fleet for every target: there is one."""
        fleet = self._side.deployment
        state = Workload(
            owner=self.owner,
            standing=self._standing,
            base=scenario.MINIMUM,
            maximum=scenario.MAXIMUM,
            replicas=fleet.wanted,
            supply=self._side.supply,
            warm_up=self._side.usual,
        )
        return {target.key: state for target in targets}

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written | Refused:  # noqa: ARG002
        """Sets the floor, or without an HPA the replica count."""
        if self._standing != seen.standing:
            return Refused("Conflict", f"{self._standing} stands, the decision saw {seen.standing}")
        if self.owner is Owner.HPA:
            self._side.minimum = replicas
        else:
            self._side.scale(replicas)
        return Written(replicas)

    def announce(self, target: Target, decision: Decision) -> None:
        """Nobody to tell: the page shows the decisions."""

    def release(self, target: Target) -> Written | Refused:  # noqa: ARG002
        """Gives the user's own minimum back."""
        self._side.minimum = scenario.MINIMUM
        return Written(scenario.MINIMUM)
