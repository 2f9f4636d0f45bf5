"""The kinds of object that are read and written, as the API server addresses them."""

import dataclasses
from collections.abc import Mapping

from predictor.targets import Kind, Target


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object.

    Attributes:
        group: API group; empty for the core.
        version: API version.
        plural: how the kind is called in paths and in RBAC rules.
        subresource: a part with its own permissions ("scale"); empty for the object itself.
    """

    group: str
    version: str
    plural: str
    subresource: str = ""

    @property
    def path(self) -> str:
        """What a request's path starts with."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def api_version(self) -> str:
        """As in an object's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def rule_name(self) -> str:
        """As in the `resources` of an RBAC rule."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    def scale(self) -> "Resource":
        """The scale subresource of this kind."""
        return dataclasses.replace(self, subresource="scale")


DEPLOYMENTS = Resource("apps", "v1", "deployments")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets")
REPLICA_SETS = Resource("apps", "v1", "replicasets")
PODS = Resource("", "v1", "pods")
HPAS = Resource("autoscaling", "v2", "horizontalpodautoscalers")
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects")
INFERENCE_SERVICES = Resource("serving.kserve.io", "v1beta1", "inferenceservices")
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")
ROLLOUTS = Resource("argoproj.io", "v1alpha1", "rollouts")
EVENTS = Resource("", "v1", "events")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews")

KNOWN: Mapping[str, Resource] = {
    Kind.DEPLOYMENT: DEPLOYMENTS,
    Kind.STATEFUL_SET: STATEFUL_SETS,
    Kind.LEADER_WORKER_SET: LEADER_WORKER_SETS,
    Kind.ROLLOUT: ROLLOUTS,
    Kind.INFERENCE_SERVICE: INFERENCE_SERVICES,
}


# Kinds whose pods hang from them directly or through a ReplicaSet.
PLAIN = frozenset({DEPLOYMENTS, STATEFUL_SETS, ROLLOUTS, INFERENCE_SERVICES})


def of(target: Target) -> Resource:
    """The resource of the target's workload object."""
    return parse(target.resource) if target.resource else KNOWN[target.kind]


def parse(written: str) -> Resource:
    """From kubectl's way of writing it, "rollouts.v1alpha1.argoproj.io".

    Raises:
        ValueError: that is not plural, version and group with dots between.
    """
    plural, _, rest = written.partition(".")
    version, _, group = rest.partition(".")
    if not (plural and version and group):
        raise ValueError(f"{written!r} is not written as plural.version.group, like rollouts.v1alpha1.argoproj.io")
    return Resource(group, version, plural)
