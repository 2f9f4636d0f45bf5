"""Simulated nodes; the real scheduler counts what they have."""

from typing import Any

from kubernetes import client

from tests.cluster import kubectl


def create(api: client.ApiClient, *, count: int, gpus: int) -> None:
    """Create `count` nodes with `gpus` GPUs each."""
    core = client.CoreV1Api(api)
    for number in range(count):
        core.create_node(_node(f"gpu-{number}", gpus))


def ready(call: kubectl.Kubectl) -> int:
    """Count the nodes that are Ready."""
    answer = call.json("get", "nodes")
    conditions = [one for node in answer["items"] for one in node["status"].get("conditions", [])]
    return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _node(name: str, gpus: int) -> dict[str, Any]:
    resources = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "type": "kwok"}
    labels["rig.floorcast.dev/kubelet"] = "processes"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": resources, "capacity": resources},
    }
