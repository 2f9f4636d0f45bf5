"""Workloads without an autoscaler, through the real client against a server on loopback."""

import pytest

from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Kind, Target
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

PATCH = "patch deployments/scale"


def observed(workloads: ClusterWorkloads, aim: Target | None = None) -> Workload:
    state = workloads.observe([aim or target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Workload), state
    return state


def write(workloads: ClusterWorkloads, replicas: int, seen: Workload) -> Written | Refused:
    return workloads.write(target(), replicas, seen=seen, now=NOW)


def test_the_count_stands_and_the_bounds_are_the_configured_ones(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    state = observed(workloads)
    assert (state.owner, state.standing, state.replicas) == (Owner.SCALE, 3, 3)
    assert (state.base, state.maximum, state.adopted) == (2, 10, False)


def test_a_write_patches_nothing_but_the_scale(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    version = server.put("deployments", objects.deployment(replicas=3))["metadata"]["resourceVersion"]
    assert write(workloads, 5, observed(workloads)) == Written(5)
    tried, patch = [request for request in server.requests if request.verb == "patch"]
    assert tried.query == {"fieldManager": "floorcast", "dryRun": "All"}
    assert patch.query == {"fieldManager": "floorcast"}
    assert patch.what == tried.what == PATCH
    assert patch.body == tried.body == {"metadata": {"resourceVersion": version}, "spec": {"replicas": 5}}


def test_a_stateful_set_is_scaled_the_same_way(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    aim = target(kind=Kind.STATEFUL_SET)
    server.put("statefulsets", objects.stateful_set(replicas=2))
    assert workloads.write(aim, 4, seen=observed(workloads, aim), now=NOW) == Written(4)
    assert server.objects["statefulsets", "llm", "vllm"]["spec"]["replicas"] == 4


@pytest.mark.parametrize(("asked", "written"), [(14, 10), (0, 1)])
def test_the_count_stays_between_one_and_the_maximum(
    server: FakeApiServer, workloads: ClusterWorkloads, asked: int, written: int
) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    assert write(workloads, asked, observed(workloads)) == Written(written)


def test_a_count_that_we_set_last_is_recognised(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    fields = {"f:spec": {"f:replicas": {}}}
    server.put("deployments", objects.deployment(replicas=3))
    entries = [
        {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:template": {}}}},
        {"manager": "floorcast", "subresource": "scale", "fieldsV1": fields},
    ]
    server.change("deployments", "llm", "vllm", metadata={"managedFields": entries})
    assert observed(workloads).adopted
    server.change("deployments", "llm", "vllm", metadata={"managedFields": [{"manager": "helm", "fieldsV1": fields}]})
    assert not observed(workloads).adopted


def test_a_pod_that_becomes_ready_in_between_is_no_conflict(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    seen = observed(workloads)
    server.before(PATCH, lambda: server.change("deployments", "llm", "vllm", status={"readyReplicas": 2}))
    assert write(workloads, 5, seen) == Written(5)


def test_a_count_that_somebody_changed_in_between_is_one(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    seen = observed(workloads)
    server.before(PATCH, lambda: server.change("deployments", "llm", "vllm", spec={"replicas": 7}))
    assert write(workloads, 5, seen) == Refused(
        "Conflict", "Deployment vllm has 7 replicas; 3 stood when this was decided"
    )
    assert server.objects["deployments", "llm", "vllm"]["spec"]["replicas"] == 7


def test_three_conflicts_end_the_write(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    seen = observed(workloads)
    server.answer(PATCH, 409, times=9)
    outcome = write(workloads, 5, seen)
    assert isinstance(outcome, Refused)
    assert (outcome.reason, len(server.asked(PATCH))) == ("Conflict", 3)


def test_a_workload_that_was_made_anew_is_not_the_one_decided_on(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    seen = observed(workloads)
    server.change("deployments", "llm", "vllm", metadata={"uid": "another"})
    outcome = write(workloads, 5, seen)
    assert isinstance(outcome, Refused)
    assert (outcome.reason, server.asked(PATCH)) == ("Conflict", [])


def test_a_scale_that_names_no_pods_is_left_alone(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    server.change("deployments", "llm", "vllm", spec={"selector": None})
    outcome = write(workloads, 5, observed(workloads))
    assert isinstance(outcome, Refused)
    assert (outcome.reason, server.asked(PATCH)) == ("NoSelector", [])


def test_a_workload_that_a_controller_makes_is_advised_on_and_never_written(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    owner = objects.owned_by("VLLMRuntime", "llama")
    server.put("deployments", objects.deployment())
    server.change("deployments", "llm", "vllm", metadata=owner)
    state = observed(workloads)
    assert state.owner is Owner.SCALE
    assert state.advice is not None
    assert state.advice.reason == "OwnedElsewhere"
    assert "made by VLLMRuntime llama" in state.advice.detail
    assert "set spec.deploymentConfig.replicas of the VLLMRuntime" in state.advice.detail
    assert write(workloads, 5, state) == state.advice
    assert server.asked(PATCH) == []


def test_a_workload_at_zero_is_left_asleep(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=0))
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Refused)
    assert state.reason == "ScaledToZero"


def test_the_missing_permission_names_the_subresource(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    seen = observed(workloads)
    server.denied.add(PATCH)
    outcome = write(workloads, 5, seen)
    assert isinstance(outcome, Refused)
    assert 'apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["patch"]' in outcome.detail


def test_a_release_leaves_the_count_as_it_is(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    write(workloads, 5, observed(workloads))
    assert workloads.release(target()) == Written(5)
    assert workloads.release(target()) == Written(5)
    assert len(server.written(PATCH)) == 1
