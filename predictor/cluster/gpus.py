"""Which GPUs a pod asks for, read off its own spec: to look at nodes takes a permission for the whole cluster."""

from collections.abc import Iterable, Iterator

from predictor.cluster import fields
from predictor.cluster.fields import Json
from predictor.ports import MIXED_GPUS

# Node labels that name the type: of the GPU operator, GKE, Karpenter, AKS, the AMD operator.
LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "kubernetes.azure.com/accelerator",
    "amd.com/gpu.product-name",
)
RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi")


def kind(pod: Json) -> str:
    """The type of GPU that a pod selects its node by; empty where it takes any, or nobody labels them."""
    selected = fields.mapping(pod, "spec", "nodeSelector")
    found = next((selected[label] for label in LABELS if label in selected), None)
    if isinstance(found, str):
        return found
    return ",".join(next((values for label in LABELS if (values := _required(pod, label))), ()))


def common_kind(pods: Iterable[Json]) -> str:
    """The type that all of them select; empty of none, MIXED_GPUS when they differ."""
    kinds = {kind(pod) for pod in pods} or {""}
    return kinds.pop() if len(kinds) == 1 else MIXED_GPUS


def count(pod: Json) -> int:
    """GPUs that its containers ask for together; 0 where they ask for none."""
    containers = fields.mappings(pod, "spec", "containers")
    return sum(_asked(container, resource) for container in containers for resource in RESOURCES)


def _asked(container: Json, resource: str) -> int:
    """A limit is a request too: the API server fills in the one from the other, and they must be equal."""
    for kind_of in ("limits", "requests"):
        asked = fields.mapping(container, "resources", kind_of).get(resource)
        if isinstance(asked, (int, str)) and str(asked).isdecimal():
            return int(asked)
    return 0


def _required(pod: Json, label: str) -> tuple[str, ...]:
    """Values of a label that the pod's required node affinity allows, in order."""
    return tuple(sorted({value for match in _matches(pod) if match.get("key") == label for value in _values(match)}))


def _matches(pod: Json) -> Iterator[Json]:
    path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for term in fields.mappings(pod, *path):
        yield from (one for one in fields.mappings(term, "matchExpressions") if one.get("operator") == "In")


def _values(match: Json) -> Iterator[str]:
    values = match.get("values")
    yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
