"""Simulated nodes; the real scheduler counts what they have."""

from dataclasses import dataclass
from typing import Any

from kubernetes import client

from tests.cluster import kubectl

PRODUCT = "nvidia.com/gpu.product"  # label of the kind of GPU, as the GPU operator writes it
GROUP = "rig.floorcast.dev/group"
H100 = "NVIDIA-H100-80GB-HBM3"
A100 = "NVIDIA-A100-SXM4-80GB"


@dataclass(frozen=True)
class Group:
    """Nodes of one kind.

    Args:
        count: how many there are from the start.
        gpus: `nvidia.com/gpu` of each.
        reserved: whether only pods go there that ask for the kind of GPU and tolerate the group's taint; such nodes
            change nothing for the tests that do not know of them.
    """

    name: str
    count: int
    gpus: int
    product: str = H100
    reserved: bool = False

    @property
    def toleration(self) -> dict[str, str]:
        """What a pod needs to be let onto a reserved node."""
        return {"key": GROUP, "operator": "Equal", "value": self.name, "effect": "NoSchedule"}


# Four nodes of eight GPUs for everybody, and two of four GPUs of another kind for who asks for them.
USUAL = (Group("gpu", 4, 8), Group("a100", 2, 4, A100, reserved=True))


def create(api: client.ApiClient, group: Group, *, first: int = 0) -> None:
    """Create the nodes of a group; the first is called after the group and the number `first`."""
    core = client.CoreV1Api(api)
    for number in range(first, first + group.count):
        core.create_node(_node(f"{group.name}-{number}", group))


def ready(call: kubectl.Kubectl) -> int:
    """Count the nodes that are Ready."""
    answer = call.json("get", "nodes")
    conditions = [one for node in answer["items"] for one in node["status"].get("conditions", [])]
    return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _node(name: str, group: Group) -> dict[str, Any]:
    resources = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(group.gpus)}
    labels = {"kubernetes.io/hostname": name, PRODUCT: group.product, GROUP: group.name, "type": "kwok"}
    labels["rig.floorcast.dev/kubelet"] = "processes"
    taint = {"key": GROUP, "value": group.name, "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [taint] if group.reserved else []},
        "status": {"allocatable": resources, "capacity": resources},
    }
