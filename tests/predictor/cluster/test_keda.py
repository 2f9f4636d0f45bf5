"""The floor under KEDA, through the real client against a server on loopback."""

from typing import Any

import pytest

from predictor.cluster import marks
from predictor.cluster.client import Api
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload, Written
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

SCALED = "scaledobjects"
PATCH = f"patch {SCALED}"
PREFIX = "autoscaling.keda.sh/"


def scaled_object(low: int | None = 2, *, status: object = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A ScaledObject of the Deployment vllm; `more` goes to its spec, annotations among it to its metadata."""
    annotations = more.pop("annotations", {})
    spec = {"scaleTargetRef": {"name": "vllm"}, "maxReplicaCount": 10, **more}
    if low is not None:
        spec["minReplicaCount"] = low
    return {"metadata": objects.meta("so", annotations=annotations), "spec": spec, "status": status or {}}


@pytest.fixture(autouse=True)
def _running(server: FakeApiServer) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    server.put(SCALED, scaled_object())
    server.put("horizontalpodautoscalers", objects.hpa("keda-hpa-so", low=2, **objects.owned_by("ScaledObject", "so")))


def observed(workloads: ClusterWorkloads) -> Workload:
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Workload), state
    return state


def write(workloads: ClusterWorkloads, replicas: int, *, after: float = 0.0) -> Written | Refused:
    return workloads.write(target(), replicas, seen=observed(workloads), now=NOW + after)


def test_the_scaled_object_is_written_and_the_hpa_that_keda_makes_never(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    state = observed(workloads)
    assert (state.owner, state.standing, state.base, state.maximum, state.advice) == (Owner.KEDA, 2, 2, 10, None)
    assert write(workloads, 6) == Written(6)
    assert server.objects[SCALED, "llm", "so"]["spec"]["minReplicaCount"] == 6
    assert {request.resource for request in server.requests if request.verb == "patch"} == {SCALED}


def test_a_minimum_that_was_left_out_is_left_out_again_after_a_release(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put(SCALED, scaled_object(None))
    assert observed(workloads).base == 0
    write(workloads, 4)
    annotations = server.objects[SCALED, "llm", "so"]["metadata"]["annotations"]
    assert annotations[marks.ORIGINAL] == marks.LEFT_OUT
    assert observed(workloads).base == 0
    assert workloads.release(target()) == Written(0)
    assert "minReplicaCount" not in server.objects[SCALED, "llm", "so"]["spec"]


@pytest.mark.parametrize(
    "annotations", [{"paused": "true"}, {"paused": ""}, {"paused": "yes"}, {"paused-replicas": "0"}]
)
def test_a_paused_object_is_reported_and_not_written(
    server: FakeApiServer, workloads: ClusterWorkloads, annotations: dict[str, str]
) -> None:
    server.put(SCALED, scaled_object(annotations={PREFIX + key: value for key, value in annotations.items()}))
    del server.objects["horizontalpodautoscalers", "llm", "keda-hpa-so"]  # KEDA takes it away while paused
    state = observed(workloads)
    assert state.advice is not None
    assert (state.owner, state.advice.reason) == (Owner.KEDA, "Paused")
    assert write(workloads, 6) == state.advice
    assert server.asked(PATCH) == []


@pytest.mark.parametrize("key", ["paused", "paused-scale-out", "paused-scale-in"])
def test_an_annotation_that_says_false_pauses_nothing(
    server: FakeApiServer, workloads: ClusterWorkloads, key: str
) -> None:
    server.put(SCALED, scaled_object(annotations={PREFIX + key: "false"}))
    state = observed(workloads)
    assert (state.advice, state.owner_problem, state.maximum) == (None, "", 10)


def test_while_scaling_out_is_paused_nothing_is_raised(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    """A floor would go past the pause: an HPA applies its bounds before its behaviour."""
    server.put(SCALED, scaled_object(3, annotations={f"{PREFIX}paused-scale-out": "true"}))
    assert observed(workloads).maximum == 3
    assert write(workloads, 6) == Written(3)


def test_while_scaling_in_is_paused_nothing_is_lowered(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(SCALED, scaled_object(annotations={f"{PREFIX}paused-scale-in": "true"}))
    assert "scaling in is paused" in observed(workloads).owner_problem  # the rules hold for it


@pytest.mark.parametrize(
    ("kind", "status", "what"),
    [
        ("Ready", "False", "not Ready, ScaledObjectCheckFailed: why"),
        ("Fallback", "True", "a trigger fails and KEDA falls back, why"),
        ("Ready", "True", ""),
    ],
)
def test_what_keda_reports_to_be_wrong_is_passed_on(
    server: FakeApiServer, workloads: ClusterWorkloads, kind: str, status: str, what: str
) -> None:
    reported = objects.condition(kind, status, reason="ScaledObjectCheckFailed", message="why")
    server.put(SCALED, scaled_object(status={"conditions": [reported]}))
    problem = observed(workloads).owner_problem
    assert problem.endswith(what)
    assert bool(problem) == bool(what)


def test_what_the_hpa_below_reports_counts_too(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    reported = objects.condition("ScalingActive", "False", reason="FailedGetExternalMetric", message="why")
    server.change("horizontalpodautoscalers", "llm", "keda-hpa-so", status={"conditions": [reported]})
    assert "HPA keda-hpa-so: ScalingActive is False" in observed(workloads).owner_problem


def test_the_floor_stays_above_the_idle_count(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(SCALED, scaled_object(3, idleReplicaCount=1))
    assert write(workloads, 1) == Written(2)


def test_the_floor_is_raised_at_once_and_lowered_a_minute_after_the_last_write(workloads: ClusterWorkloads) -> None:
    assert write(workloads, 5) == Written(5)
    assert write(workloads, 7, after=30) == Written(7)
    refused = write(workloads, 6, after=89)
    assert isinstance(refused, Refused)
    assert refused.reason == "TooSoon"
    assert write(workloads, 6, after=90) == Written(6)


def test_raises_within_half_a_minute_become_one_write_and_none_is_lost(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    """KEDA starts its loop anew at each: at most two a minute, whatever the ticks want."""
    for tick, wanted in enumerate((4, 5, 6, 8, 9, 9, 9)):
        outcome = write(workloads, wanted, after=10.0 * tick)
        assert isinstance(outcome, Written) or outcome.reason == "TooSoon"
    written = [patch.body["spec"]["minReplicaCount"] for patch in server.written(PATCH)]
    assert written == [4, 8, 9]


def test_without_a_maximum_kedas_own_counts(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(SCALED, scaled_object(maxReplicaCount=None))
    assert observed(workloads).maximum == 100


def test_two_scaled_objects_are_refused_by_name(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(SCALED, {**scaled_object(), "metadata": objects.meta("another")})
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Refused)
    assert state.reason == "AmbiguousOwner"
    assert "ScaledObject another and ScaledObject so" in state.detail


def test_a_scaled_object_on_another_kind_is_not_the_targets(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(SCALED, scaled_object(scaleTargetRef={"kind": "StatefulSet", "name": "vllm"}))
    del server.objects["horizontalpodautoscalers", "llm", "keda-hpa-so"]
    assert observed(workloads).owner is Owner.SCALE


def test_a_cluster_without_keda_is_asked_once_in_a_while(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.absent.add(SCALED)
    del server.objects["horizontalpodautoscalers", "llm", "keda-hpa-so"]
    for after in (0, 30, 60, 330):
        workloads.observe([target()], now=NOW + after)
    assert len(server.asked(f"list {SCALED}")) == 2


def test_what_is_left_out_of_the_owners_is_not_asked_for_and_only_advised_on(server: FakeApiServer, api: Api) -> None:
    workloads = ClusterWorkloads(api, owners=[Owner.HPA])
    state = observed(workloads)
    assert server.asked(f"list {SCALED}") == []
    assert state.advice is not None
    assert "made by ScaledObject so" in state.advice.detail


@pytest.mark.parametrize("everything", [False, True])
def test_the_marks_that_keda_copies_onto_its_hpa_are_kedas_to_take_away(
    server: FakeApiServer, workloads: ClusterWorkloads, *, everything: bool
) -> None:
    """KEDA gives its HPA the ScaledObject's annotations and minimum, and takes both back as they change."""
    write(workloads, 6)
    copied = dict(server.objects[SCALED, "llm", "so"]["metadata"]["annotations"])
    hpa = objects.hpa("keda-hpa-so", low=6, annotations=copied, **objects.owned_by("ScaledObject", "so"))
    server.put("horizontalpodautoscalers", hpa)
    released = workloads.release_all("llm") if everything else {"ScaledObject llm/so": workloads.release(target())}
    assert released == {"ScaledObject llm/so": Written(2)}
    assert workloads.release_all("llm") == {}  # KEDA has not taken them back yet
    assert {request.resource for request in server.requests if request.verb == "patch"} == {SCALED}
