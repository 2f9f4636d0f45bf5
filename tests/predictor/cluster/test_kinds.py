"""Kinds of workload beside Deployments and StatefulSets, and workloads without replicas."""

from typing import Any

import pytest
import structlog

from models.policy.context import Supply
from predictor.cluster import inventory, marks, rollouts
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Kind, Target
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

LEADERS = target(kind=Kind.LEADER_WORKER_SET)
ROLLOUT = target(kind=Kind.ROLLOUT)
OTHER = target(kind="ModelServer", resource="modelservers.v1.example.com")


def observed(workloads: ClusterWorkloads, aim: Target) -> Workload:
    state = workloads.observe([aim], now=NOW)[aim.key]
    assert isinstance(state, Workload), state
    return state


def owned(thing: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    thing["metadata"] |= objects.owned_by(kind, name)
    return thing


def pod(name: str, kind: str, owner: str) -> dict[str, Any]:
    return owned(objects.pod(name, created=-500, ready=-380), kind, owner)


def test_the_replicas_of_a_leader_worker_set_are_its_groups(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    """Two groups of three: the leaders hang from the set's own StatefulSet, the workers from one of their leader's."""
    server.put("leaderworkersets", objects.deployment(replicas=2))
    server.put("statefulsets", {"metadata": objects.meta("leaders", **objects.owned_by("LeaderWorkerSet", "vllm"))})
    for group in ("0", "1"):
        server.put("pods", pod(f"vllm-{group}", "StatefulSet", "leaders"))
        workers = objects.meta(f"workers-{group}", **objects.owned_by("Pod", f"vllm-{group}"))
        server.put("statefulsets", {"metadata": workers})
        for worker in ("1", "2"):
            server.put("pods", pod(f"vllm-{group}-{worker}", "StatefulSet", f"workers-{group}"))
    state = observed(workloads, LEADERS)
    assert (state.owner, state.replicas, state.supply) == (Owner.SCALE, 2, Supply(ready=2))
    assert workloads.write(LEADERS, 3, seen=state, now=NOW) == Written(3)
    assert {request.resource for request in server.requests if request.verb == "patch"} == {"leaderworkersets/scale"}


def test_a_hpa_may_scale_a_leader_worker_set(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("leaderworkersets", objects.deployment(replicas=2))
    hpa = objects.hpa()
    hpa["spec"]["scaleTargetRef"] = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "name": "vllm",
    }
    server.put("horizontalpodautoscalers", hpa)
    assert observed(workloads, LEADERS).owner is Owner.HPA


def test_an_argo_rollout_is_scaled_and_one_that_is_paused_is_a_problem(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    """Its observedGeneration is text, and its ReplicaSets are its own."""
    server.put("rollouts", objects.deployment(replicas=2, observedGeneration="1"))
    server.put("replicasets", {"metadata": objects.meta("vllm-1", **objects.owned_by("Rollout", "vllm"))})
    server.put("pods", objects.pod("a", created=-500, ready=-380))
    state = observed(workloads, ROLLOUT)
    assert (state.supply.ready, state.rollout, state.owner_problem) == (1, False, "")
    assert workloads.write(ROLLOUT, 3, seen=state, now=NOW) == Written(3)
    server.change("rollouts", "llm", "vllm", spec={"paused": True})
    assert "paused by hand" in observed(workloads, ROLLOUT).owner_problem


@pytest.mark.parametrize(
    ("kind", "status", "under_way"),
    [
        (Kind.ROLLOUT, {"stableRS": "a", "currentPodHash": "a"}, False),
        (Kind.ROLLOUT, {"stableRS": "a", "currentPodHash": "b"}, True),
        (Kind.ROLLOUT, {"currentPodHash": "b"}, False),
        (Kind.LEADER_WORKER_SET, {"conditions": [objects.condition("UpdateInProgress", "True")]}, True),
        (Kind.LEADER_WORKER_SET, {"conditions": [objects.condition("UpdateInProgress", "False")]}, False),
        (Kind.LEADER_WORKER_SET, {"observedGeneration": 0}, True),
        ("ModelServer", {"observedGeneration": None}, False),
        ("ModelServer", {"observedGeneration": 0}, True),
    ],
)
def test_a_rollout_is_told_in_the_words_of_each_kind(kind: str, status: dict[str, Any], under_way: bool) -> None:  # noqa: FBT001
    assert rollouts.under_way(kind, objects.deployment(**status)) is under_way


def test_any_kind_with_a_scale_is_scaled_by_it(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("modelservers", objects.deployment(replicas=3))
    server.put("pods", pod("a", "ModelServer", "vllm"))
    state = observed(workloads, OTHER)
    assert (state.owner, state.standing, state.replicas, state.supply.ready) == (Owner.SCALE, 3, 3, 1)
    assert workloads.write(OTHER, 5, seen=state, now=NOW) == Written(5)
    assert not state.adopted
    entry = {"manager": "floorcast", "subresource": "scale", "fieldsV1": {"f:spec": {"f:workers": {"f:count": {}}}}}
    server.change("modelservers", "llm", "vllm", metadata={"managedFields": [entry]})
    assert observed(workloads, OTHER).adopted


def test_a_kind_whose_scale_names_no_pods_is_refused_before_anything_is_decided(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("modelservers", objects.deployment(replicas=3))
    server.change("modelservers", "llm", "vllm", spec={"selector": None})
    state = workloads.observe([OTHER], now=NOW)["llm/vllm"]
    assert isinstance(state, Refused)
    assert state.reason == "NoSelector"


@pytest.mark.parametrize(("policy", "one_by_one"), [(None, True), ("OrderedReady", True), ("Parallel", False)])
def test_a_stateful_set_starts_its_replicas_one_by_one_unless_it_says_otherwise(
    server: FakeApiServer,
    workloads: ClusterWorkloads,
    policy: str | None,
    one_by_one: bool,  # noqa: FBT001
) -> None:
    thing = objects.stateful_set()
    if policy is not None:
        thing["spec"]["podManagementPolicy"] = policy
    server.put("statefulsets", thing)
    assert observed(workloads, target(kind=Kind.STATEFUL_SET)).one_by_one is one_by_one


def test_owners_that_own_each_other_end_the_chain() -> None:
    pods = [{"metadata": objects.owned_by("A", "a")}]
    between = [
        {"metadata": {"uid": "uid-a", **objects.owned_by("B", "b")}},
        {"metadata": {"uid": "uid-b", **objects.owned_by("A", "a")}},
    ]
    assert set(inventory.by_workload(pods, between)) == {"uid-a", "uid-b"}


def test_a_workload_at_zero_is_started_where_that_is_asked_for(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    """Under an HPA through the scale, once, with the HPA's own minimum; then the HPA is the owner again."""
    aim = target(from_zero=True)
    server.put("deployments", objects.deployment(replicas=0))
    server.put("horizontalpodautoscalers", objects.hpa(low=3, high=8))
    state = observed(workloads, aim)
    assert (state.owner, state.standing, state.base, state.maximum) == (Owner.SCALE, 0, 3, 8)
    assert workloads.write(aim, 3, seen=state, now=NOW) == Written(3)
    state = observed(workloads, aim)
    assert (state.owner, state.standing) == (Owner.HPA, 3)
    assert {request.resource for request in server.requests if request.verb == "patch"} == {"deployments/scale"}


def test_a_release_leaves_its_note_on_a_workload_if_it_may(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    assert workloads.release(target(), note="by floorcast release") == Written(3)
    state = observed(workloads, target())
    assert state.advice is not None
    assert state.advice.reason == "Released"
    assert workloads.resume(target()) is None
    assert observed(workloads, target()).advice is None


def test_whoever_may_not_leave_the_note_is_told_how_somebody_else_can(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    server.denied.add("patch deployments")
    with structlog.testing.capture_logs() as logs:
        assert workloads.release(target(), note="by floorcast release") == Written(3)
    command = f"kubectl annotate --namespace llm deployment/vllm '{marks.RELEASED}=by floorcast release'"
    assert command in logs[0]["detail"]
    assert server.asked("patch deployments") == []
