"""The cluster of the demo, in memory: fleets, their autoscalers, and the port through which the loops write."""

from collections.abc import Mapping, Sequence

from models.capacity import warmup
from models.fleet.deployment import Deployment
from models.fleet.lifecycle import State
from models.peers.hpa import Hpa
from models.policy.context import Supply
from models.policy.decision import Decision
from models.policy.protocol import Observation
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.demo import scenario
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Target


class Autoscaled:
    """A fleet under an HPA; the HPA's minimum is a number anybody may set."""

    def __init__(self, deployment: Deployment, *, hpa: Hpa | None) -> None:
        """Without an HPA the replica count is whatever it is set to."""
        self.deployment = deployment
        self.minimum = scenario.MINIMUM
        self.hpa = hpa
        self.last: Decision | None = None

    @property
    def supply(self) -> Supply:
        """Replicas by what they can do."""
        count = self.deployment.lifecycle.count
        return Supply(ready=count(State.READY), warming=count(State.WARMING) + count(State.PENDING))

    def sync(self) -> None:
        """One sync of the HPA, on what the ready replicas report."""
        if self.hpa is None:
            return
        now = self.deployment.now
        seen = Observation(
            now=now,
            replicas=self.deployment.lifecycle.asked,
            minimum=self.minimum,
            maximum=scenario.MAXIMUM,
            supply=self.supply,
            readings=self._readings(now),
        )
        self.last = self.hpa.decide(seen)
        if self.last.changes:
            self.deployment.scale(self.last.replicas)

    def _readings(self, now: float) -> dict[Signal, Reading]:
        """Waiting, and running with waiting as "in flight": what an HPA gets from a metrics adapter."""
        fleet = self.deployment.fleet
        seen = [fleet.snapshot(name) for name in fleet.ready]
        if not seen:
            return dict.fromkeys((Signal.WAITING, Signal.IN_FLIGHT), Unknown(Cause.EMPTY, "no replica is ready"))
        waiting = float(sum(one.waiting for one in seen))
        return {
            Signal.WAITING: Known(waiting, now),
            Signal.IN_FLIGHT: Known(waiting + sum(one.running for one in seen), now),
        }


class SimulatedCluster:
    """The port `Workloads` over one simulated fleet."""

    def __init__(self, side: Autoscaled) -> None:
        self._side = side
        self.owner = Owner.SCALE if side.hpa is None else Owner.HPA

    @property
    def _standing(self) -> int:
        return self._side.minimum if self.owner is Owner.HPA else self._side.deployment.lifecycle.asked

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload | Refused]:  # noqa: ARG002
        """The same fleet for every target: there is one."""
        life = self._side.deployment.lifecycle
        state = Workload(
            owner=self.owner,
            standing=self._standing,
            base=scenario.MINIMUM,
            maximum=scenario.MAXIMUM,
            replicas=life.asked,
            supply=self._side.supply,
            warm_up=warmup.of_seconds(*life.warm_ups),
        )
        return {target.key: state for target in targets}

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written | Refused:  # noqa: ARG002
        """Sets the floor, or without an HPA the replica count."""
        if self._standing != seen.standing:
            return Refused("Conflict", f"{self._standing} stands, the decision saw {seen.standing}")
        if self.owner is Owner.HPA:
            self._side.minimum = replicas
        else:
            self._side.deployment.scale(replicas)
        return Written(replicas)

    def announce(self, target: Target, decision: Decision) -> None:
        """Nobody to tell: the page shows the decisions."""

    def release(self, target: Target) -> Written | Refused:  # noqa: ARG002
        """Gives the user's own minimum back."""
        self._side.minimum = scenario.MINIMUM
        return Written(scenario.MINIMUM)
