"""The objects of an example: a model server's Deployment and the HPA that scales it by its queue."""

from dataclasses import dataclass
from typing import Any

METRIC = "queue-depth"  # of the external metrics API; requests that wait, all replicas together
DELAYS = "rig.floorcast.dev"  # prefix of the annotations stages.yaml reads


@dataclass(frozen=True)
class Workload:
    """What is deployed and how its HPA is set.

    Args:
        namespace: left empty, the fixtures of conftest.py choose one.
        replicas: of the Deployment, and minReplicas of the HPA.
        queue_per_replica: waiting requests a replica the HPA aims at.
        image_delay_s: seconds from the sandbox (1 s after the binding) until the container runs.
        model_delay_s: seconds from there until Ready.
        gpus: of one replica.
    """

    namespace: str = ""
    name: str = "llm"
    replicas: int = 2
    max_replicas: int = 12
    queue_per_replica: int = 4
    image_delay_s: float = 4.0
    model_delay_s: float = 15.0
    gpus: int = 1

    @property
    def deployment(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


def namespace(workload: Workload) -> dict[str, Any]:
    """Return the namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": workload.namespace}}


def deployment(workload: Workload) -> dict[str, Any]:
    """Return the Deployment."""
    labels = {"app": workload.name}
    delays = {
        f"{DELAYS}/image-delay": f"{workload.image_delay_s}s",
        f"{DELAYS}/model-delay": f"{workload.model_delay_s}s",
    }
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.33.0",
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": str(workload.gpus)}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _place(workload),
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": delays},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 5},
            },
        },
    }


def hpa(workload: Workload) -> dict[str, Any]:
    """Return the HPA."""
    target = {"type": "AverageValue", "averageValue": str(workload.queue_per_replica)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _place(workload),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name},
            "minReplicas": workload.replicas,
            "maxReplicas": workload.max_replicas,
            "metrics": [{"type": "External", "external": {"metric": {"name": METRIC}, "target": target}}],
        },
    }


def query(workload: Workload) -> str:
    """Return the PromQL behind the metric; it yields nothing while no replica is scraped."""
    return f'sum(vllm:num_requests_waiting{{namespace="{workload.namespace}"}})'


def _place(workload: Workload) -> dict[str, str]:
    return {"namespace": workload.namespace, "name": workload.name}
