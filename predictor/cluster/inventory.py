"""What a namespace holds, read once for all of its targets."""

import dataclasses
from collections.abc import Iterable, Mapping

from predictor.cluster import client, errors, fields
from predictor.cluster.fields import Json
from predictor.cluster.resources import HPAS, PODS, REPLICA_SETS, WORKLOADS
from predictor.targets import Kind, Target

# Pods that are over hold no replica: the API server need not send them.
LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """One namespace at one moment.

    Attributes:
        namespace: its name.
        hpas: its HorizontalPodAutoscalers.
        workloads: (kind, name) -> workload object.
        pods: uid of a workload -> the pods it runs.
    """

    namespace: str
    hpas: tuple[Json, ...]
    workloads: Mapping[tuple[Kind, str], Json]
    pods: Mapping[str, tuple[Json, ...]]

    def workload(self, target: Target) -> Json:
        """The target's workload object.

        Raises:
            NotFoundError: there is none.
        """
        found = self.workloads.get((target.kind, target.name))
        if found is None:
            raise errors.NotFoundError(f"there is no {target.kind} {target.name} in namespace {target.namespace}")
        return found

    def pods_of(self, workload: Json) -> tuple[Json, ...]:
        """The pods a workload runs."""
        return self.pods.get(fields.uid(workload), ())


def take(api: client.Api, namespace: str, kinds: Iterable[Kind]) -> Inventory:
    """Reads a namespace: one list each of HPAs, pods, and the kinds of workload asked for."""
    kinds = sorted(set(kinds))
    workloads = {
        (kind, fields.name(thing)): thing
        for kind in kinds
        for thing in api.list_all(WORKLOADS[kind], namespace=namespace)
    }
    between = api.list_all(REPLICA_SETS, namespace=namespace, names_only=True) if Kind.DEPLOYMENT in kinds else []
    pods = api.list_all(PODS, namespace=namespace, selector=LIVE_PODS)
    return Inventory(namespace, tuple(api.list_all(HPAS, namespace=namespace)), workloads, by_workload(pods, between))


def by_workload(pods: Iterable[Json], replica_sets: Iterable[Json]) -> dict[str, tuple[Json, ...]]:
    """Pods by the uid of the workload that runs them, through the ReplicaSet where there is one between.

    The chain of controllers decides, not the selector: a controller disowns a pod as soon as the pod's labels no
    longer match, and a stray pod that happens to match is nobody's replica.
    """
    above = {fields.uid(one): fields.text(fields.controller(one), "uid") for one in replica_sets}
    found: dict[str, list[Json]] = {}
    for pod in pods:
        owner = fields.text(fields.controller(pod), "uid")
        found.setdefault(above.get(owner, owner), []).append(pod)
    return {uid: tuple(owned) for uid, owned in found.items() if uid}
