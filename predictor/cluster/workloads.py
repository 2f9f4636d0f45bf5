"""The port to the cluster on the real API server."""

from collections.abc import Iterator, Mapping, Sequence

import structlog

from models.policy.decision import Decision
from predictor.cluster import client, errors, fields, gpus, hpa, inventory, owners, pods, rollouts
from predictor.cluster.events import Announcer
from predictor.cluster.hpa import HpaActuator
from predictor.cluster.inventory import Inventory
from predictor.cluster.scale import ScaleActuator
from predictor.cluster.warmups import WarmUps
from predictor.ports import Refused, Workload, Written
from predictor.targets import Mode, Target

_log = structlog.get_logger(__name__)


class ClusterWorkloads:
    """Observes and writes targets. What the API server answers is a value, never an exception.

    Safe to use from several threads.
    """

    def __init__(self, api: client.Api) -> None:
        self._api = api
        self._hpas = HpaActuator(api)
        # From the highest owner down: a new kind of owner goes above the ones it makes.
        self._actuators: Sequence[owners.Actuator] = (self._hpas, ScaleActuator(api))
        self._warm_ups = WarmUps()
        self._announcer = Announcer(api)
        self._autoscaled: set[str] = set()  # targets that an HPA scaled when they were looked at
        self._things: dict[str, owners.Object] = {}
        self._serving: dict[str, tuple[pods.Serving, ...]] = {}

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload | Refused]:
        """State by target key: every namespace is read once, for all of its targets."""
        answers: dict[str, Workload | Refused] = {}
        down: errors.ClusterError | None = None
        for namespace, within in _by_namespace(targets):
            try:
                if down is not None:
                    raise down  # one timeout a pass, not one a namespace
                stock = inventory.take(self._api, namespace, (target.kind for target in within))
            except errors.ClusterError as error:
                down = error if isinstance(error, errors.UnreachableError) else None
                answers.update((target.key, _refused(error)) for target in within)
            else:
                answers.update((target.key, self._state(target, stock, now=now)) for target in within)
        return answers

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written | Refused:  # noqa: ARG002  (owners to come limit how often they are written)
        """Sets the number unless it changed since it was `seen`."""
        thing = self._things.get(target.key)
        actuator = next((one for one in self._actuators if one.owner is seen.owner), None)
        if thing is None or actuator is None:
            return Refused("NotObserved", f"{target.key} was not observed with owner {seen.owner} before this write")
        try:
            return Written(actuator.write(target, replicas, thing=thing, seen=seen))
        except errors.ClusterError as error:
            return _refused(error)

    def serving(self, target: Target) -> tuple[pods.Serving, ...]:
        """The Ready pods of a target and their addresses, as of the last `observe`."""
        return self._serving.get(target.key, ())

    def announce(self, target: Target, decision: Decision) -> None:
        """An Event on the object that is written; none in shadow mode, which leaves no trace in the cluster."""
        thing = self._things.get(target.key)
        if thing is not None and target.mode is Mode.CONTROL:
            self._announcer.announce(thing, decision)

    def release(self, target: Target) -> Written | Refused:
        """Gives the original minimum back and takes the annotations away; safe to repeat."""
        self._things.pop(target.key, None)
        try:
            for actuator in self._actuators:
                standing = actuator.release(target)
                if standing is not None:
                    return Written(standing)
        except errors.ClusterError as error:
            return _refused(error)
        return Refused("NotFound", f"nothing owns the replica count of {target.kind} {target.key}")

    def release_all(self, namespace: str = "") -> Mapping[str, Written | Refused]:
        """Releases everything that carries our annotations, configured or not, by "namespace/name" of the object.

        Args:
            namespace: where to look; empty for the whole cluster, which needs the permission to list there.

        Raises:
            ClusterError: what is to be released cannot even be listed.
        """
        answers: dict[str, Written | Refused] = {}
        for marked in self._hpas.marked(namespace):
            key = f"{fields.text(marked, 'metadata', 'namespace')}/{fields.name(marked)}"
            try:
                answers[key] = Written(self._hpas.restore(marked))
            except errors.ClusterError as error:
                answers[key] = _refused(error)
            _log.info("released", hpa=key, outcome=str(answers[key]))
        return answers

    def _state(self, target: Target, stock: Inventory, *, now: float) -> Workload | Refused:
        try:
            state = self._workload(target, stock, now=now)
        except errors.ClusterError as error:
            return _refused(error)
        if target.mode is Mode.CONTROL:  # shadow mode leaves no trace in the cluster
            self._announcer.tell_stuck(self._things[target.key], state.stuck, at=now)
        return state

    def _workload(self, target: Target, stock: Inventory, *, now: float) -> Workload:
        workload = stock.workload(target)
        self._refuse_if_orphaned(target, stock)
        number = owners.find(self._actuators, target, stock)
        self._things[target.key] = number.thing
        replicas = rollouts.asked_for(workload)
        if replicas == 0:
            raise errors.ScaledToZeroError(
                f"{target.kind} {target.key} has 0 replicas: a floor does not wake it; scale it to at least 1"
            )
        running = stock.pods_of(workload)
        self._serving[target.key] = pods.serving(running)
        usual = self._warm_ups.usual(target.key, running, now=now, default=target.warm_up)
        return Workload(
            owner=number.owner,
            standing=number.standing,
            base=number.base,
            maximum=number.maximum,
            replicas=replicas,
            supply=pods.supply(running, now=now, usual=usual),
            warm_up=usual,
            stuck=pods.stuck(running, now=now, usual=usual),
            gpus=max(map(gpus.count, running), default=0),
            rollout=rollouts.under_way(target.kind, workload),
            owner_problem=number.problem,
            adopted=number.adopted,
        )

    def _refuse_if_orphaned(self, target: Target, stock: Inventory) -> None:
        """An HPA that is deleted may be about to be replaced, or paused: its workload is nobody's to take over."""
        if any(hpa.refers(one, target) for one in stock.hpas):
            self._autoscaled.add(target.key)
        elif target.key in self._autoscaled:
            raise errors.OwnerGoneError(
                f"the HPA of {target.kind} {target.key} is gone since Floorcast started; its replicas are left"
                " alone, for it may come back; restart Floorcast to let it set the replicas itself"
            )


def _by_namespace(targets: Sequence[Target]) -> Iterator[tuple[str, list[Target]]]:
    for namespace in sorted({target.namespace for target in targets}):
        yield namespace, [target for target in targets if target.namespace == namespace]


def _refused(error: errors.ClusterError) -> Refused:
    return Refused(error.reason, str(error))
