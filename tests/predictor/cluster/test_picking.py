"""What ten thousand pods take in memory, whole and as they are kept."""

import gc
import json
import tracemalloc
from typing import Any

from predictor.cluster import picking
from predictor.cluster.resources import PODS
from tests.fakes import cluster_objects as objects

PODS_IN_ALL = 10_000
SAMPLE = 1_000  # measured; what they share is counted once, so ten times this is an upper bound
LARGEST_MB = 60.0


def written(number: int) -> str:
    """A pod of a vLLM Deployment as the API server writes it: 7 kB, most of it nothing we look at."""
    pod: dict[str, Any] = objects.pod(f"vllm-6f7d9c5b8-{number:05d}", created=number, ready=number + 180.0)
    variables = [{"name": f"VARIABLE_{n}", "value": f"some value of it, {n}"} for n in range(20)]
    container = {
        "name": "vllm",
        "image": "registry.example/vllm:v0.11",
        "args": ["--model", "llama"] * 8,
        "env": variables,
        "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "64Gi"}, "requests": {"cpu": "8"}},
        "volumeMounts": [{"name": f"volume-{n}", "mountPath": f"/mount/{n}"} for n in range(6)],
    }
    pod["spec"] = {
        "containers": [container],
        "nodeName": f"gpu-node-{number % 500}",
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}] * 3,
        "volumes": [{"name": f"volume-{n}", "emptyDir": {}} for n in range(6)],
    }
    pod["metadata"]["managedFields"] = [
        {"manager": manager, "fieldsV1": {f"f:field-{n}": {} for n in range(60)}} for manager in ("kubelet", "manager")
    ]
    pod["metadata"]["labels"] = {f"example.org/label-{n}": "value" for n in range(8)}
    pod["status"]["podIP"] = f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"
    return json.dumps(pod)


def test_ten_thousand_pods_are_kept_in_bounded_memory() -> None:
    texts = [written(number) for number in range(SAMPLE)]
    whole, kept = megabytes(texts, pick=False), megabytes(texts, pick=True)
    print(f"{PODS_IN_ALL} pods: {whole:.0f} MB whole, {kept:.0f} MB as they are kept")  # noqa: T201  (the figure)
    assert kept < LARGEST_MB
    assert kept < whole / 3


def megabytes(texts: list[str], *, pick: bool) -> float:
    """What `PODS_IN_ALL` pods take, measured on fewer."""
    gc.collect()
    tracemalloc.start()
    try:
        held = []
        for text in texts:
            pod = json.loads(text)
            held.append(picking.picked(PODS, pod, names_only=False) if pick else pod)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return size / 1e6 * PODS_IN_ALL / len(texts)
