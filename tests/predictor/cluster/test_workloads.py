"""One look at the cluster: what is asked, and what is told of each target."""

import dataclasses

import pytest

from models.policy.context import Supply
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload
from predictor.targets import Kind, Target
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target


def observe(workloads: ClusterWorkloads, *targets: Target) -> dict[str, Workload | Refused]:
    return dict(workloads.observe(targets, now=NOW))


def reasons(answers: dict[str, Workload | Refused]) -> list[str]:
    return [answer.reason if isinstance(answer, Refused) else "" for answer in answers.values()]


def test_a_namespace_is_read_once_for_all_its_targets(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    for name in ("a", "b", "c"):
        server.put("deployments", objects.deployment(name))
        server.put("horizontalpodautoscalers", objects.hpa(f"{name}-hpa", aim=name))
    answers = observe(workloads, *map(target, "abc"))
    assert all(isinstance(answer, Workload) for answer in answers.values())
    assert sorted(request.what for request in server.requests) == [
        "list deployments",
        "list horizontalpodautoscalers",
        "list pods",
        "list replicasets",
        "list scaledobjects",
    ]


def test_only_the_kinds_that_are_configured_are_asked_for(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("statefulsets", objects.stateful_set())
    observe(workloads, target(kind=Kind.STATEFUL_SET))
    asked = {request.resource for request in server.requests}
    assert asked == {"statefulsets", "horizontalpodautoscalers", "scaledobjects", "pods"}


def test_replica_sets_are_asked_for_their_metadata_only(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    observe(workloads, target())
    (request,) = server.asked("list replicasets")
    assert "PartialObjectMetadataList" in request.headers["accept"]


def test_supply_and_warm_ups_come_from_the_targets_own_pods(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    server.put("replicasets", objects.replica_set())
    server.put("pods", objects.pod("a", created=-500, ready=-380))
    server.put("pods", objects.pod("b", created=-20))
    server.put("pods", objects.pod("stuck", created=-900))
    server.put("pods", objects.pod("of another", created=-500, ready=-380, owner="other-1"))
    stray = objects.pod("stray", created=-500, ready=-380)
    del stray["metadata"]["ownerReferences"]
    server.put("pods", stray)
    state = observe(workloads, target())["llm/vllm"]
    assert isinstance(state, Workload)
    assert state.supply == Supply(1, 1, 1, ready_in=(100.0,))
    assert state.warm_up is not None
    assert (state.warm_up.measured, state.warm_up.seconds) == (1, None)
    assert [(one.pod, one.reason) for one in state.stuck] == [("stuck", "NotReady")]


def test_the_pods_of_a_stateful_set_are_found_without_a_replica_set(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("statefulsets", objects.stateful_set())
    pod = objects.pod("vllm-0", created=-500, ready=-380)
    pod["metadata"] |= objects.owned_by("StatefulSet", "vllm")
    server.put("pods", pod)
    state = observe(workloads, target(kind=Kind.STATEFUL_SET))["llm/vllm"]
    assert isinstance(state, Workload)
    assert state.supply == Supply(1)


def test_a_measured_warm_up_decides_what_counts_as_stuck(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=4))
    server.put("replicasets", objects.replica_set())
    for name in ("a", "b", "c"):
        server.put("pods", objects.pod(name, created=-500, ready=-480))
    # Three starts took 20 s; this one, which lasts, counts as far as it makes the usual start: 60 s. Three times that.
    server.put("pods", objects.pod("slow", created=-181))
    state = observe(workloads, target())["llm/vllm"]
    assert isinstance(state, Workload)
    assert state.supply == Supply(3, 0, 1)


def test_a_rollout_is_reported(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=3, updatedReplicas=1))
    state = observe(workloads, target())["llm/vllm"]
    assert isinstance(state, Workload)
    assert state.rollout


def test_a_target_that_does_not_exist_leaves_the_others_alone(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment())
    answers = observe(workloads, target(), target("missing"))
    assert isinstance(answers["llm/vllm"], Workload)
    assert answers["llm/missing"] == Refused("NotFound", "there is no Deployment missing in namespace llm")


def test_a_forbidden_namespace_leaves_the_others_alone(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    elsewhere = dataclasses.replace(target(), namespace="closed")
    server.put("deployments", objects.deployment())
    server.before("list deployments", lambda: server.answer("list deployments", 403))
    answers = observe(workloads, elsewhere, target())
    assert isinstance(answers["llm/vllm"], Workload)
    refused = answers["closed/vllm"]
    assert isinstance(refused, Refused)
    assert refused.reason == "Forbidden"
    assert "Role in namespace closed" in refused.detail


@pytest.mark.parametrize(
    ("status", "reason"), [(401, "Unauthorized"), (429, "TooManyRequests"), (500, "ServerError"), (410, "Expired")]
)
def test_whatever_the_server_answers_is_a_value(
    server: FakeApiServer, workloads: ClusterWorkloads, status: int, reason: str
) -> None:
    server.answer("list pods", status, times=9)
    assert reasons(observe(workloads, target(), target("b"))) == [reason, reason]


def test_a_silent_server_costs_one_timeout_and_not_one_a_namespace(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.hang("list deployments")
    targets = [dataclasses.replace(target(), namespace=name) for name in ("one", "two", "three")]
    assert reasons(observe(workloads, *targets)) == ["Unreachable"] * 3
    assert len(server.requests) == 1


def test_writes_and_releases_of_a_server_that_is_gone_are_values(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment())
    server.put("horizontalpodautoscalers", objects.hpa())
    state = observe(workloads, target())["llm/vllm"]
    assert isinstance(state, Workload)
    for what in ("get horizontalpodautoscalers", "list horizontalpodautoscalers"):
        server.answer(what, 503, times=9)
    for outcome in (workloads.write(target(), 5, seen=state, now=NOW), workloads.release(target())):
        assert isinstance(outcome, Refused)
        assert outcome.reason == "ServerError"


def test_the_hpa_is_the_owner_where_there_is_one(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    server.put("deployments", objects.deployment("plain"))
    server.put("horizontalpodautoscalers", objects.hpa())
    answers = observe(workloads, target(), target("plain"))
    owners = [answer.owner for answer in answers.values() if isinstance(answer, Workload)]
    assert owners == [Owner.HPA, Owner.SCALE]


def test_no_targets_ask_for_nothing(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    assert observe(workloads) == {}
    assert server.requests == []


@pytest.mark.parametrize(
    "metadata", [{}, objects.owned_by("ScaledObject", "vllm"), {"annotations": {"floorcast.dev/last-written": "2"}}]
)
def test_a_workload_is_not_taken_over_while_its_hpa_is_replaced_or_paused(
    server: FakeApiServer, workloads: ClusterWorkloads, metadata: dict[str, object]
) -> None:
    """25 replicas under an HPA up to 40; without one the configured maximum is 10, and 15 would be cut off at once."""
    server.put("deployments", objects.deployment(replicas=25))
    server.put("horizontalpodautoscalers", objects.hpa(high=40, **metadata))
    observe(workloads, target())
    del server.objects["horizontalpodautoscalers", objects.NAMESPACE, "vllm-hpa"]
    assert reasons(observe(workloads, target())) == ["OwnerGone"]
    server.put("horizontalpodautoscalers", objects.hpa(high=40))
    (answer,) = observe(workloads, target()).values()
    assert isinstance(answer, Workload)
    assert (answer.owner, answer.maximum) == (Owner.HPA, 40)
