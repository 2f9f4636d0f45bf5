"""What is kept of targets, objects and pods goes when they go: a process runs for months."""

from collections.abc import Iterator
from typing import Any

from models.policy.decision import Decision, Reason
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Workload, Written
from predictor.targets import Target
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

ROUNDS = 20


def containers(thing: Any, path: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, int]]:  # noqa: ANN401
    """The size of every dictionary and set of our own that hangs from an object, with its path."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, (dict, set)):
        yield path, len(thing)
    inner = vars(thing) if type(thing).__module__.startswith("predictor.") and hasattr(thing, "__dict__") else {}
    for key, value in thing.items() if isinstance(thing, dict) else inner.items():
        yield from containers(value, f"{path}.{key}", seen)


def sizes(workloads: ClusterWorkloads) -> dict[str, int]:
    return {path: size for path, size in containers(workloads) if not path.startswith("._api.")}


def life(server: FakeApiServer, workloads: ClusterWorkloads, aim: Target, *, number: int) -> None:
    """A target that is seen, raised and told of, with a pod that is stuck; with an HPA, a ScaledObject or neither."""
    name = aim.name
    server.put("deployments", objects.deployment(name))
    server.put("replicasets", objects.replica_set(name))
    server.put("pods", objects.pod(f"{name}-x", created=-4000, owner=f"{name}-1"))
    if number % 3 == 0:
        server.put("horizontalpodautoscalers", objects.hpa(f"hpa-{name}", aim=name))
    elif number % 3 == 1:
        spec = {"scaleTargetRef": {"name": name}, "minReplicaCount": 2}
        server.put("scaledobjects", {"metadata": objects.meta(f"so-{name}"), "spec": spec, "status": {}})
    seen = workloads.observe([aim], now=NOW)[aim.key]
    assert isinstance(seen, Workload), seen
    assert workloads.write(aim, 6, seen=seen, now=NOW) == Written(6)
    for reason in (Reason.RAISED_FOR_FORECAST, Reason.HELD_UNKNOWN):
        workloads.announce(aim, Decision(NOW, 2, 6, 6, reason, "why"))
    workloads.observe([aim], now=NOW + 100)


def test_nothing_remains_of_targets_that_come_and_go(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    before = sizes(workloads)
    for number in range(ROUNDS):
        aim = target(f"t{number}")
        life(server, workloads, aim, number=number)
        for key in list(server.objects):
            del server.objects[key]
    kept = sizes(workloads)
    assert sum(kept.values()) > sum(before.values()) + ROUNDS  # the test would see it
    workloads.keep_only(set())
    assert {path: size for path, size in sizes(workloads).items() if size > before.get(path, 0)} == {}


def test_nothing_remains_of_objects_and_pods_that_are_made_anew(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    sums = []
    for number in range(ROUNDS):
        for key in list(server.objects):
            del server.objects[key]
        server.put("horizontalpodautoscalers", {**objects.hpa(), "metadata": objects.meta("vllm-hpa", f"h{number}")})
        server.put("deployments", objects.deployment())
        server.put("replicasets", objects.replica_set())
        server.put("pods", objects.pod(f"p{number}", created=-4000))
        seen = workloads.observe([target()], now=NOW + number * 1000)["llm/vllm"]
        assert isinstance(seen, Workload), seen
        assert workloads.write(target(), 6, seen=seen, now=NOW + number * 1000) == Written(6)
        workloads.announce(target(), Decision(NOW, 2, 6, 6, Reason.RAISED_FOR_FORECAST, "why"))
        sums.append(sum(sizes(workloads).values()))
    assert sums[-1] == sums[1]
