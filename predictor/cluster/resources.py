"""The kinds of object that are read and written, as the API server addresses them."""

import dataclasses

from predictor.targets import Kind


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
EVENTS = Resource("", "v1", "events")
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews")

WORKLOADS = {Kind.DEPLOYMENT: DEPLOYMENTS, Kind.STATEFUL_SET: STATEFUL_SETS}
