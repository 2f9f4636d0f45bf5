"""What a namespace holds, read once for all of its targets."""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from predictor.cluster import errors, fields, kserve, resources
from predictor.cluster.fields import Json
from predictor.cluster.resources import (
    DEPLOYMENTS,
    HPAS,
    INFERENCE_SERVICES,
    LEADER_WORKER_SETS,
    PODS,
    REPLICA_SETS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    Resource,
)
from predictor.ports import Owner
from predictor.targets import Kind, Target

# Pods that are over hold no replica: the API server need not send them.
LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
ABSENT_FOR = 300.0  # seconds for which a kind that the API server does not know is not asked for again


class Lister(Protocol):
    """Where objects are listed from: the API server, or what is known of it."""

    def list_all(
        self, resource: Resource, *, namespace: str = "", selector: str = "", names_only: bool = False
    ) -> list[Json]:
        """All objects of a kind in a namespace. Raises any ClusterError."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """One namespace at one moment.

    Attributes:
        namespace: its name.
        hpas: its HorizontalPodAutoscalers.
        scaled_objects: its ScaledObjects.
        inference_services: its InferenceServices, where a target has to do with one.
        workloads: (resource, name) -> workload object.
        pods: uid of a workload -> the pods it runs.
    """

    namespace: str
    hpas: tuple[Json, ...]
    scaled_objects: tuple[Json, ...]
    inference_services: tuple[Json, ...]
    workloads: Mapping[tuple[Resource, str], Json]
    pods: Mapping[str, tuple[Json, ...]]

    def aim(self, target: Target) -> Target:
        """What autoscalers refer to: the target, or the Deployment that KServe makes for it.

        Raises:
            NotFoundError: there is no InferenceService of that name, or no Deployment of it.
        """
        if target.kind != Kind.INFERENCE_SERVICE or target.resource:
            return target
        service = next((one for one in self.inference_services if fields.name(one) == target.name), None)
        if service is None:
            raise errors.NotFoundError(f"there is no {target.kind} {target.name} in namespace {target.namespace}")
        if (refusal := kserve.InferenceService().hands_off(service)) and kserve.mode(service) in kserve.KNATIVE:
            raise refusal
        for (resource, name), one in self.workloads.items():
            made = fields.text(fields.controller(one), "uid") == fields.uid(service)
            if resource == DEPLOYMENTS and made and name.endswith(kserve.SUFFIX):
                return dataclasses.replace(target, kind=Kind.DEPLOYMENT, name=name)
        raise errors.NotFoundError(
            f"InferenceService {target.name} in namespace {target.namespace} has no Deployment NAME{kserve.SUFFIX}"
        )

    def workload(self, target: Target) -> Json:
        """The target's workload object.

        Raises:
            NotFoundError: there is none.
        """
        found = self.workloads.get((resources.of(target), target.name))
        if found is None:
            raise errors.NotFoundError(f"there is no {target.kind} {target.name} in namespace {target.namespace}")
        return found

    def pods_of(self, workload: Json) -> tuple[Json, ...]:
        """The pods a workload runs. Of a LeaderWorkerSet the leaders: one a group, which is its replica."""
        return self.pods.get(fields.uid(workload), ())


class Stocktaking:
    """Reads namespaces.

    Args:
        lister: where from.
        owners: the kinds of owner that are looked for; what is left out is not asked for either.
    """

    def __init__(self, lister: Lister, owners: Collection[Owner]) -> None:
        self._lister = lister
        self._owners = owners
        self._absent: dict[Resource, float] = {}  # kind -> Unix seconds at which the API server did not know it

    def take(self, namespace: str, targets: Iterable[Target], *, now: float) -> Inventory:
        """Reads a namespace: one list each of autoscalers, pods, the targets' kinds and what is between."""
        wanted = {resources.of(target) for target in targets}
        named = sorted((wanted - {INFERENCE_SERVICES}) | ({DEPLOYMENTS} & _under(wanted)), key=str)
        workloads = {
            (resource, fields.name(thing)): thing for resource in named for thing in self._list(resource, namespace)
        }
        between = [one for resource in _between(wanted) for one in self._list(resource, namespace, names_only=True)]
        pods = self._lister.list_all(PODS, namespace=namespace, selector=LIVE_PODS)
        hpas = self._list(HPAS, namespace)
        scaled = self._optional(SCALED_OBJECTS, namespace, now=now) if Owner.KEDA in self._owners else []
        services: list[Json] = []
        if INFERENCE_SERVICES in wanted:
            services = self._list(INFERENCE_SERVICES, namespace)
        elif Owner.KSERVE in self._owners and any(map(_by_kserve, (*workloads.values(), *hpas, *scaled))):
            services = self._optional(INFERENCE_SERVICES, namespace, now=now)
        running = by_workload(pods, (*between, *workloads.values()))
        return Inventory(namespace, tuple(hpas), tuple(scaled), tuple(services), workloads, running)

    def _list(self, resource: Resource, namespace: str, *, names_only: bool = False) -> list[Json]:
        return self._lister.list_all(resource, namespace=namespace, names_only=names_only)

    def _optional(self, resource: Resource, namespace: str, *, now: float) -> list[Json]:
        """Objects of a kind that the cluster need not have."""
        if abs(now - self._absent.get(resource, float("-inf"))) < ABSENT_FOR:
            return []
        try:
            return self._list(resource, namespace)
        except errors.NotFoundError:
            self._absent[resource] = now
            return []


def _under(wanted: set[Resource]) -> set[Resource]:
    return {DEPLOYMENTS} if INFERENCE_SERVICES in wanted else set()


def _between(wanted: set[Resource]) -> Iterator[Resource]:
    """The kinds that stand between the workloads and their pods, unless they are read anyway."""
    if wanted - {STATEFUL_SETS, LEADER_WORKER_SETS}:
        yield REPLICA_SETS
    if wanted - resources.PLAIN and STATEFUL_SETS not in wanted:
        yield STATEFUL_SETS


def _by_kserve(thing: Json) -> bool:
    return fields.text(fields.controller(thing), "kind") == kserve.InferenceService.kind


def by_workload(pods: Iterable[Json], between: Iterable[Json]) -> dict[str, tuple[Json, ...]]:
    """Pods by the uid of everything that stands above them: a ReplicaSet, its Deployment, the object that makes that.

    The chain of controllers decides, not the selector: a controller disowns a pod as soon as the pod's labels no
    longer match, and a stray pod that happens to match is nobody's replica. The chain ends at a pod: the workers of a
    LeaderWorkerSet's group hang from their leader, and are none of the set's replicas.
    """
    above = {fields.uid(one): fields.text(fields.controller(one), "uid") for one in between}
    found: dict[str, list[Json]] = {}
    for pod in pods:
        owner, seen = fields.text(fields.controller(pod), "uid"), set[str]()
        while owner and owner not in seen:
            found.setdefault(owner, []).append(pod)
            seen.add(owner)
            owner = above.get(owner, "")
    return {uid: tuple(owned) for uid, owned in found.items()}
