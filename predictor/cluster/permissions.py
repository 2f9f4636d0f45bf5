"""Every permission Floorcast uses, as data: the chart's roles, the documentation and the tests are made from it."""

import dataclasses
import enum
from collections.abc import Iterable, Mapping

from predictor.cluster import client, fields
from predictor.cluster.resources import (
    ACCESS_REVIEWS,
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)


class Purpose(enum.StrEnum):
    """What a permission is for; what is not wanted need not be granted."""

    OBSERVE = "observe"  # shadow mode needs no more
    WRITE_HPA = "write_hpa"  # control mode for targets with an HPA, and release
    WRITE_SCALE = "write_scale"  # control mode for targets without
    EVENTS = "events"  # optional: decisions in `kubectl describe`


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


PERMISSIONS: tuple[Permission, ...] = (
    Permission("list", HPAS, Purpose.OBSERVE, "finds the HPA of a target, and what carries our annotations"),
    Permission("list", DEPLOYMENTS, Purpose.OBSERVE, "replicas and rollouts"),
    Permission("list", STATEFUL_SETS, Purpose.OBSERVE, "replicas and rollouts"),
    Permission("list", REPLICA_SETS, Purpose.OBSERVE, "which Deployment a pod belongs to; metadata only"),
    Permission("list", PODS, Purpose.OBSERVE, "supply and warm-up"),
    Permission("get", HPAS, Purpose.WRITE_HPA, "the newest version right before a write, and after a release"),
    Permission("patch", HPAS, Purpose.WRITE_HPA, "moves minReplicas"),
    Permission("get", DEPLOYMENTS.scale(), Purpose.WRITE_SCALE, "the newest version right before a write"),
    Permission("patch", DEPLOYMENTS.scale(), Purpose.WRITE_SCALE, "sets the replicas where there is no autoscaler"),
    Permission("get", STATEFUL_SETS.scale(), Purpose.WRITE_SCALE, "the newest version right before a write"),
    Permission("patch", STATEFUL_SETS.scale(), Purpose.WRITE_SCALE, "sets the replicas where there is no autoscaler"),
    Permission("create", EVENTS, Purpose.EVENTS, "tells of decisions where people look for them"),
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


def check_permissions(api: client.Api, wanted: Mapping[str, Iterable[Purpose]]) -> list[Missing]:
    """What is not granted, by asking the API server (SelfSubjectAccessReview, which everybody may create).

    Args:
        api: the API server, with the credentials to be checked.
        wanted: namespace -> what is to be done in it.

    Raises:
        ClusterError: the API server does not answer the question.
    """
    return [
        Missing(permission, namespace)
        for namespace, purposes in wanted.items()
        for permission in PERMISSIONS
        if permission.purpose in set(purposes) and not _allowed(api, permission, namespace)
    ]


def _allowed(api: client.Api, permission: Permission, namespace: str) -> bool:
    resource = permission.resource
    attributes = {"namespace": namespace, "verb": permission.verb, "group": resource.group}
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
