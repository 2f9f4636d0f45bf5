"""Every permission Floorcast uses, as data: the chart's roles, the documentation and the tests are made from it."""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping

from predictor.cluster import client, fields
from predictor.cluster.resources import (
    ACCESS_REVIEWS,
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    INFERENCE_SERVICES,
    LEADER_WORKER_SETS,
    LEASES,
    PODS,
    REPLICA_SETS,
    ROLLOUTS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    Resource,
)
from predictor.ports import Owner
from predictor.targets import Kind, Mode, Target


class Purpose(enum.StrEnum):
    """What a permission is for; what is not wanted need not be granted."""

    OBSERVE = "observe"  # shadow mode needs no more
    WRITE_HPA = "write_hpa"  # control mode for targets with an HPA, and release
    WRITE_KEDA = "write_keda"  # the same with a ScaledObject
    WRITE_KSERVE = "write_kserve"  # the same with an InferenceService
    WRITE_SCALE = "write_scale"  # control mode for Deployments and StatefulSets without an autoscaler, and from_zero
    WRITE_LEADER_WORKER_SETS = "write_leader_worker_sets"  # the same for LeaderWorkerSets
    WRITE_ROLLOUTS = "write_rollouts"  # the same for Argo Rollouts
    EVENTS = "events"  # optional: decisions in `kubectl describe`
    LEAD = "lead"  # leader election, in the namespace of the lease only


@dataclasses.dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource, in every namespace that has targets."""

    verb: str
    resource: Resource
    purpose: Purpose
    why: str

    def __str__(self) -> str:
        name = self.resource.rule_name
        return f"{self.verb} {name}.{self.resource.group}" if self.resource.group else f"{self.verb} {name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Missing:
    """A permission that is not granted in a namespace."""

    permission: Permission
    namespace: str

    def __str__(self) -> str:
        return f"may not {self.permission} in namespace {self.namespace}: {self.permission.why}"


_LOOKED_AT: tuple[Permission, ...] = (
    Permission("list", HPAS, Purpose.OBSERVE, "finds the HPA of a target, and what carries our annotations"),
    Permission(
        "list", SCALED_OBJECTS, Purpose.OBSERVE, "finds the ScaledObject of a target; unless owners leaves it out"
    ),
    Permission("list", INFERENCE_SERVICES, Purpose.OBSERVE, "finds the InferenceService above a target, where one is"),
    Permission("list", DEPLOYMENTS, Purpose.OBSERVE, "replicas and rollouts"),
    Permission("list", STATEFUL_SETS, Purpose.OBSERVE, "replicas and rollouts"),
    Permission("list", LEADER_WORKER_SETS, Purpose.OBSERVE, "groups and rollouts, of targets of that kind"),
    Permission("list", ROLLOUTS, Purpose.OBSERVE, "replicas and rollouts, of targets of that kind"),
    Permission("list", REPLICA_SETS, Purpose.OBSERVE, "which Deployment a pod belongs to; metadata only"),
    Permission("list", PODS, Purpose.OBSERVE, "supply and warm-up"),
)

PERMISSIONS: tuple[Permission, ...] = (
    *_LOOKED_AT,
    *(dataclasses.replace(one, verb="watch", why=f"the same, kept up to date: {one.why}") for one in _LOOKED_AT),
    Permission("get", HPAS, Purpose.WRITE_HPA, "the newest version right before a write, and after a release"),
    Permission("patch", HPAS, Purpose.WRITE_HPA, "moves minReplicas"),
    Permission("get", SCALED_OBJECTS, Purpose.WRITE_KEDA, "the newest version right before a write"),
    Permission("patch", SCALED_OBJECTS, Purpose.WRITE_KEDA, "moves minReplicaCount"),
    Permission("get", INFERENCE_SERVICES, Purpose.WRITE_KSERVE, "the newest version right before a write"),
    Permission("patch", INFERENCE_SERVICES, Purpose.WRITE_KSERVE, "moves spec.predictor.minReplicas"),
    Permission("get", DEPLOYMENTS.scale(), Purpose.WRITE_SCALE, "the newest version right before a write"),
    Permission("patch", DEPLOYMENTS.scale(), Purpose.WRITE_SCALE, "sets the replicas where there is no autoscaler"),
    Permission("get", STATEFUL_SETS.scale(), Purpose.WRITE_SCALE, "the newest version right before a write"),
    Permission("patch", STATEFUL_SETS.scale(), Purpose.WRITE_SCALE, "sets the replicas where there is no autoscaler"),
    *(
        Permission(verb, resource.scale(), purpose, why)
        for resource, purpose in (
            (LEADER_WORKER_SETS, Purpose.WRITE_LEADER_WORKER_SETS),
            (ROLLOUTS, Purpose.WRITE_ROLLOUTS),
        )
        for verb, why in (("get", "the newest version right before a write"), ("patch", "sets the replicas"))
    ),
    Permission("create", EVENTS, Purpose.EVENTS, "tells of decisions where people look for them"),
    Permission("get", LEASES, Purpose.LEAD, "sees which replica may write"),
    Permission("create", LEASES, Purpose.LEAD, "makes the lease when there is none yet"),
    Permission("update", LEASES, Purpose.LEAD, "takes, renews and gives back the lease"),
)


def rules(purposes: Iterable[Purpose]) -> list[dict[str, list[str]]]:
    """RBAC rules that grant these purposes and nothing else, one for each resource."""
    wanted = set(purposes)
    verbs: dict[tuple[str, str], list[str]] = {}
    for permission in PERMISSIONS:
        if permission.purpose in wanted:
            verbs.setdefault((permission.resource.group, permission.resource.rule_name), []).append(permission.verb)
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": sorted(granted)}
        for (group, resource), granted in verbs.items()
    ]


_OF_KIND = {Kind.LEADER_WORKER_SET: Purpose.WRITE_LEADER_WORKER_SETS, Kind.ROLLOUT: Purpose.WRITE_ROLLOUTS}
_OF_OWNER = {Owner.HPA: Purpose.WRITE_HPA, Owner.KEDA: Purpose.WRITE_KEDA, Owner.KSERVE: Purpose.WRITE_KSERVE}
# A resource that is only listed where an owner is looked for, or a target is of that kind.
_ONLY_FOR_OWNER = {SCALED_OBJECTS: Owner.KEDA, INFERENCE_SERVICES: Owner.KSERVE}
_ONLY_FOR_KIND = {LEADER_WORKER_SETS: Kind.LEADER_WORKER_SET, ROLLOUTS: Kind.ROLLOUT}


def wanted(targets: Iterable[Target], owners: Collection[Owner], *, events: bool = True) -> dict[str, set[Permission]]:
    """What is needed by namespace for these targets, the kinds of owner that are looked for, and Events if they are on.

    What may not come up, as a ScaledObject in a cluster without KEDA, is wanted too: that cannot be known before.
    """
    needed: dict[str, set[Permission]] = {}
    for target in targets:
        purposes = {Purpose.OBSERVE} | (_writing(target, owners) if target.mode is Mode.CONTROL else set())
        purposes -= set() if events else {Purpose.EVENTS}
        needed.setdefault(target.namespace, set()).update(
            one for one in PERMISSIONS if one.purpose in purposes and _comes_up(one, target, owners)
        )
    return needed


def _writing(target: Target, owners: Collection[Owner]) -> set[Purpose]:
    purposes = {Purpose.EVENTS} | {_OF_OWNER[owner] for owner in owners if owner in _OF_OWNER}
    if Owner.SCALE in owners and not target.resource and target.kind != Kind.INFERENCE_SERVICE:
        purposes.add(_OF_KIND.get(Kind(target.kind), Purpose.WRITE_SCALE))
    return purposes


def _comes_up(permission: Permission, target: Target, owners: Collection[Owner]) -> bool:
    resource = permission.resource
    of_owner, of_kind = _ONLY_FOR_OWNER.get(resource), _ONLY_FOR_KIND.get(resource)
    return (of_owner is None or of_owner in owners) and (of_kind is None or of_kind == target.kind)


def check_permissions(api: client.Api, needed: Mapping[str, Iterable[Permission]]) -> list[Missing]:
    """What is not granted, by asking the API server (SelfSubjectAccessReview, which everybody may create).

    Args:
        api: the API server, with the credentials to be checked.
        needed: namespace -> what is to be allowed in it.

    Raises:
        ClusterError: the API server does not answer the question.
    """
    return [
        Missing(permission, namespace)
        for namespace, permissions in needed.items()
        for permission in PERMISSIONS
        if permission in set(permissions)
        and not allowed(api, permission.verb, permission.resource, namespace=namespace)
    ]


def allowed(api: client.Api, verb: str, resource: Resource, *, namespace: str) -> bool:
    """Whether this account may do that.

    Raises:
        ClusterError: the API server does not answer the question.
    """
    attributes = {"namespace": namespace, "verb": verb, "group": resource.group}
    attributes |= {"resource": resource.plural, "subresource": resource.subresource}
    review = api.create(
        ACCESS_REVIEWS,
        {
            "apiVersion": ACCESS_REVIEWS.api_version,
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        },
    )
    return fields.truth(review, "status", "allowed")
