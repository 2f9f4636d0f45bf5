"""The objects of an example: a model server's Deployment and the HPA that scales it by its queue."""

from dataclasses import dataclass
from typing import Any, Literal

from tests.cluster import nodes

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
        group: the nodes it runs on; None for those that are everybody's.
        autoscaler: what scales it by its queue.
    """

    namespace: str = ""
    name: str = "llm"
    replicas: int = 2
    max_replicas: int = 12
    queue_per_replica: int = 4
    image_delay_s: float = 4.0
    model_delay_s: float = 15.0
    gpus: int = 1
    group: nodes.Group | None = None
    autoscaler: Literal["hpa", "keda"] = "hpa"

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
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 5, **_placement(workload)},
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


def scaled_object(workload: Workload, *, prometheus: str) -> dict[str, Any]:
    """Return KEDA's object that does the same, asking the Prometheus at that address."""
    asked = {"serverAddress": prometheus, "query": query(workload), "threshold": str(workload.queue_per_replica)}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": _place(workload),
        "spec": {
            "scaleTargetRef": {"name": workload.name},
            "pollingInterval": 2,
            "cooldownPeriod": 10,
            "minReplicaCount": workload.replicas,
            "maxReplicaCount": workload.max_replicas,
            "triggers": [{"type": "prometheus", "metadata": asked}],
        },
    }


def autoscaler(workload: Workload, *, prometheus: str) -> dict[str, Any]:
    """Return what scales the workload."""
    return scaled_object(workload, prometheus=prometheus) if workload.autoscaler == "keda" else hpa(workload)


def query(workload: Workload) -> str:
    """Return the PromQL behind the metric; it yields nothing while no replica is scraped."""
    return f'sum(vllm:num_requests_waiting{{namespace="{workload.namespace}"}})'


def _placement(workload: Workload) -> dict[str, Any]:
    if workload.group is None:
        return {}
    return {"nodeSelector": {nodes.PRODUCT: workload.group.product}, "tolerations": [workload.group.toleration]}


def _place(workload: Workload) -> dict[str, str]:
    return {"namespace": workload.namespace, "name": workload.name}
