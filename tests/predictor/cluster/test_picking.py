"""What ten thousand pods take in memory: one by one as they are kept, and in all while they are listed anew."""

import dataclasses
import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from predictor.cluster import picking, watching
from predictor.cluster.access import Access
from predictor.cluster.client import PAGE, Api
from predictor.cluster.resources import PODS
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.servers import waiting

PODS_IN_ALL = 10_000
SAMPLE = 500
LARGEST_MB = 60.0  # what is kept
LARGEST_PEAK_MB = 130.0  # two pictures, and a page of whole pods as text and as objects
RESYNC_S = 1800.0


def written(number: int, *, version: int = 1) -> str:
    """A pod of a vLLM Deployment as the API server writes it: 7 kB, most of it nothing we look at."""
    pod: dict[str, Any] = objects.pod(f"vllm-6f7d9c5b8-{number:05d}", created=number, ready=number + 180.0)
    variables = [{"name": f"VARIABLE_{n}", "value": f"some value of it, {n}"} for n in range(8)]
    container = {
        "name": "vllm",
        "image": "registry.example/vllm:v0.11",
        "args": ["--model", "llama"] * 4,
        "env": variables,
        "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "64Gi"}, "requests": {"cpu": "8"}},
        "volumeMounts": [{"name": f"volume-{n}", "mountPath": f"/mount/{n}"} for n in range(4)],
    }
    pod["spec"] = {
        "containers": [container],
        "nodeName": f"gpu-node-{number % 500}",
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}] * 2,
        "volumes": [{"name": f"volume-{n}", "emptyDir": {}} for n in range(4)],
    }
    pod["metadata"]["managedFields"] = [
        {"manager": manager, "fieldsV1": {f"f:field-{n}": {} for n in range(10)}} for manager in ("kubelet", "manager")
    ]
    pod["metadata"]["annotations"] = {"example.org/last-applied": f"{number:05d}" * 800}  # of 4 kB
    pod["metadata"]["resourceVersion"] = str(version)
    pod["metadata"]["labels"] = {f"example.org/label-{n}": "value" for n in range(5)}
    pod["status"]["podIP"] = f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"
    return json.dumps(pod)


def test_most_of_a_pod_is_not_kept() -> None:
    texts = [written(number) for number in range(SAMPLE)]
    assert megabytes(texts, pick=True) < megabytes(texts, pick=False) / 3


def megabytes(texts: list[str], *, pick: bool) -> float:
    """What pods take, whole or as they are kept."""
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
    return size / 1e6


# ------------------------------------------------------------------------------------------------ through the cache


class Passed:
    """A clock that is moved on by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def passed() -> Passed:
    return Passed()


@pytest.fixture
def cache(server: FakeApiServer, access: Access, passed: Passed) -> Iterator[watching.Cache]:
    api = Api(dataclasses.replace(access, timeout=30.0))
    pace = watching.Pace(window=1.0, stale_after=2 * RESYNC_S, resync=RESYNC_S, patience=60.0, idle=2 * RESYNC_S)
    made = watching.Cache(api, pace=pace, passed=passed)
    yield made
    server.watches.end()  # what waits for events ends
    made.close()
    api.close()


@pytest.fixture
def traced() -> Iterator[Callable[[], tuple[float, float]]]:
    """MB that the process has taken since and holds, and the most it held at one time since the last look."""
    gc.collect()
    tracemalloc.start()

    def look() -> tuple[float, float]:
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        return held / 1e6, peak / 1e6

    yield look
    tracemalloc.stop()


def page(start: int, *, version: int) -> bytes:
    """A part of all pods as the API server lists them, with a token for the next one."""
    more = str(start + PAGE) if start + PAGE < PODS_IN_ALL else ""
    about = json.dumps({"resourceVersion": str(version), "continue": more})
    items = ",".join(written(number, version=version) for number in range(start, start + PAGE))
    return f'{{"kind": "PodList", "metadata": {about}, "items": [{items}]}}'.encode()


@pytest.fixture
def listed(server: FakeApiServer) -> tuple[int, int]:
    """The versions of two lists that the server gives out one after the other, made before memory is counted."""
    versions = (1, 2)
    turns = [page(start, version=version) for version in versions for start in range(0, PODS_IN_ALL, PAGE)]

    def answered(body: bytes) -> Callable[[], None]:
        return lambda: server.answer("list pods", 200, body=body)

    server.before("list pods", *(answered(body) for body in turns))
    return versions


@pytest.mark.timeout(120, func_only=True)
def test_ten_thousand_pods_are_followed_and_listed_anew_in_bounded_memory(
    listed: tuple[int, int],
    server: FakeApiServer,
    cache: watching.Cache,
    passed: Passed,
    traced: Callable[[], tuple[float, float]],
) -> None:
    """Through the real client; the old picture is given out until the new one is whole, so both are there."""
    assert versions(cache) == {str(listed[0]): PODS_IN_ALL}
    kept, first_peak = traced()
    passed.now += RESYNC_S
    waiting.until(lambda: cache.report()[0].lists == 2, within_s=60, what="a second list")
    assert versions(cache) == {str(listed[1]): PODS_IN_ALL}
    kept_anew, peak = traced()
    print(f"{PODS_IN_ALL} pods: {kept:.0f} MB kept, {first_peak:.0f} MB listed, {peak:.0f} MB anew")  # noqa: T201  (the figures)
    assert len(server.asked("list pods")) == 2 * PODS_IN_ALL / PAGE
    assert kept < LARGEST_MB
    assert kept_anew < LARGEST_MB, "the old picture has been let go"
    assert peak > 1.5 * kept, "both pictures were there, or this has measured something else"
    assert peak < LARGEST_PEAK_MB


def versions(cache: watching.Cache) -> dict[str, int]:
    """How many pods are given out, by version."""
    found = [one["metadata"]["resourceVersion"] for one in cache.list_all(PODS, namespace=objects.NAMESPACE)]
    return {version: found.count(version) for version in set(found)}
