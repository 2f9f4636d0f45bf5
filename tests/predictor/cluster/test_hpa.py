"""The floor under an HPA, through the real client against a server on loopback."""

from typing import Any

import pytest

from predictor.cluster import marks
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload, Written
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

HPAS = "horizontalpodautoscalers"
PATCH = f"patch {HPAS}"


@pytest.fixture(autouse=True)
def _running(server: FakeApiServer) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    server.put(HPAS, objects.hpa(low=2, high=10))


def observed(workloads: ClusterWorkloads) -> Workload:
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Workload), state
    return state


def refusal(workloads: ClusterWorkloads) -> Refused:
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Refused), state
    return state


def stored(server: FakeApiServer) -> dict[str, Any]:
    return server.objects[HPAS, "llm", "vllm-hpa"]


def annotations(server: FakeApiServer) -> dict[str, str]:
    """The marks; the condition aside."""
    found: dict[str, str] = stored(server)["metadata"].get("annotations", {})
    return {key: value for key, value in found.items() if key != marks.STATUS}


def write(workloads: ClusterWorkloads, replicas: int, seen: Workload) -> Written | Refused:
    return workloads.write(target(), replicas, seen=seen, now=NOW)


def test_the_hpas_bounds_are_base_and_maximum(workloads: ClusterWorkloads) -> None:
    state = observed(workloads)
    assert (state.owner, state.standing, state.base, state.maximum) == (Owner.HPA, 2, 2, 10)
    assert (state.replicas, state.adopted) == (3, False)


def test_a_minimum_that_is_left_out_is_one(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, objects.hpa(low=None))
    state = observed(workloads)
    assert (state.standing, state.base) == (1, 1)


def test_a_write_sets_the_minimum_and_leaves_both_marks_in_one_patch(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    assert write(workloads, 6, observed(workloads)) == Written(6)
    assert stored(server)["spec"]["minReplicas"] == 6
    assert annotations(server) == {marks.ORIGINAL: "2", marks.LAST_WRITTEN: "6"}
    (patch,) = server.written(PATCH)
    assert patch.query == {"fieldManager": "floorcast"}
    assert patch.headers["content-type"] == "application/merge-patch+json"


def test_the_patch_carries_nothing_but_the_minimum_the_marks_and_the_version(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    seen = observed(workloads)
    version = stored(server)["metadata"]["resourceVersion"]
    write(workloads, 6, seen)
    told = (
        '{"type": "FloorFollowsPlan", "status": "True", "reason": "Active",'
        ' "lastTransitionTime": "2027-01-15T08:00:00Z", "floor": 6, "wanted": 6,'
        ' "message": "2027-01-15T08:00:00Z minReplicas 2 -> 6 by Floorcast; own minimum 2, at most 10"}'
    )
    left = {marks.ORIGINAL: "2", marks.LAST_WRITTEN: "6", marks.STATUS: told}
    left |= dict.fromkeys((marks.SHADOWED, marks.RELEASED))
    expected = {"metadata": {"resourceVersion": version, "annotations": left}, "spec": {"minReplicas": 6}}
    assert [patch.body for patch in server.asked(PATCH)] == [expected, expected]


def test_the_first_write_is_tried_out_at_the_server_and_later_ones_are_not(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    for replicas in (6, 8):
        write(workloads, replicas, observed(workloads))
    assert [patch.query.get("dryRun") for patch in server.asked(PATCH)] == ["All", None, None]


def test_a_write_that_fails_when_tried_out_is_never_sent(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    seen = observed(workloads)
    server.answer(PATCH, 422)
    outcome = write(workloads, 6, seen)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Invalid"
    assert server.written(PATCH) == []


def test_the_original_minimum_survives_further_writes(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    for replicas in (6, 8, 5):
        assert write(workloads, replicas, observed(workloads)) == Written(replicas)
    assert annotations(server) == {marks.ORIGINAL: "2", marks.LAST_WRITTEN: "5"}
    state = observed(workloads)
    assert (state.standing, state.base, state.adopted) == (5, 2, True)


def test_a_minimum_that_somebody_else_set_becomes_the_new_base(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    write(workloads, 6, observed(workloads))
    server.change(HPAS, "llm", "vllm-hpa", spec={"minReplicas": 4})
    state = observed(workloads)
    assert (state.standing, state.base, state.adopted) == (4, 4, False)
    write(workloads, 7, state)
    assert annotations(server) == {marks.ORIGINAL: "4", marks.LAST_WRITTEN: "7"}


@pytest.mark.parametrize(("asked", "written"), [(14, 10), (0, 1), (-3, 1)])
def test_a_write_stays_within_the_hpas_bounds(workloads: ClusterWorkloads, asked: int, written: int) -> None:
    assert write(workloads, asked, observed(workloads)) == Written(written)


def test_a_minimum_of_zero_may_come_back_where_it_was_the_users_own(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put(HPAS, objects.hpa(low=0))
    write(workloads, 5, observed(workloads))
    assert write(workloads, 0, observed(workloads)) == Written(0)


def test_a_change_of_the_minimum_since_it_was_seen_is_a_conflict_and_stays(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    seen = observed(workloads)
    owner = [{"manager": "kubectl-edit", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}]
    server.change(HPAS, "llm", "vllm-hpa", spec={"minReplicas": 5}, metadata={"managedFields": owner})
    outcome = write(workloads, 7, seen)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Conflict"
    assert "minReplicas 5, set by kubectl-edit; 2 stood" in outcome.detail
    assert stored(server)["spec"]["minReplicas"] == 5


def test_a_change_of_the_minimum_between_reading_and_patching_is_a_conflict_too(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    seen = observed(workloads)
    server.before(PATCH, lambda: server.change(HPAS, "llm", "vllm-hpa", spec={"minReplicas": 5}))
    outcome = write(workloads, 7, seen)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Conflict"
    assert stored(server)["spec"]["minReplicas"] == 5


def test_a_change_of_something_else_is_retried_in_silence(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    seen = observed(workloads)

    def status() -> None:
        server.change(HPAS, "llm", "vllm-hpa", status={"currentReplicas": 4})

    server.before(PATCH, status, status)
    assert write(workloads, 7, seen) == Written(7)
    assert len(server.asked(PATCH)) == 4  # one conflict of the dry run, one of the write
    assert stored(server)["status"]["currentReplicas"] == 4


def test_after_three_conflicts_the_write_is_given_up(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    seen = observed(workloads)
    server.answer(PATCH, 409, times=9)
    outcome = write(workloads, 7, seen)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Conflict"
    assert len(server.asked(PATCH)) == 3


def test_an_hpa_that_was_pointed_elsewhere_since_is_a_conflict(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    seen = observed(workloads)
    server.change(HPAS, "llm", "vllm-hpa", spec={"scaleTargetRef": {"name": "other"}})
    outcome = write(workloads, 7, seen)
    assert isinstance(outcome, Refused)
    assert (outcome.reason, len(server.asked(PATCH))) == ("Conflict", 0)


def test_a_write_without_an_observation_is_refused(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    seen = observed(workloads)
    outcome = workloads.write(target("unseen"), 5, seen=seen, now=NOW)
    assert isinstance(outcome, Refused)
    assert (outcome.reason, server.asked(PATCH)) == ("NotObserved", [])


def test_a_number_the_server_does_not_keep_is_reported(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    seen = observed(workloads)
    server.answer(PATCH, 200, body=b'{"spec": {"minReplicas": 5}}')
    outcome = write(workloads, 7, seen)
    assert outcome == Refused("Overruled", "HPA vllm-hpa: wrote minReplicas 7, 5 stands")


def test_two_hpas_on_one_target_are_refused_by_name(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, objects.hpa("another"))
    refused = refusal(workloads)
    assert refused.reason == "AmbiguousOwner"
    assert "HPA another and HPA vllm-hpa" in refused.detail


@pytest.mark.parametrize(
    "aim", [{"kind": "StatefulSet"}, {"apiVersion": "argoproj.io/v1alpha1"}, {"name": "vllm-2"}, {"apiVersion": "v1"}]
)
def test_an_hpa_on_something_else_is_not_the_targets(
    server: FakeApiServer, workloads: ClusterWorkloads, aim: dict[str, str]
) -> None:
    server.change(HPAS, "llm", "vllm-hpa", spec={"scaleTargetRef": aim})
    assert observed(workloads).owner is Owner.SCALE


def test_the_version_of_the_targets_group_does_not_matter(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.change(HPAS, "llm", "vllm-hpa", spec={"scaleTargetRef": {"apiVersion": "apps/v1beta2"}})
    assert observed(workloads).owner is Owner.HPA


@pytest.mark.parametrize(
    ("metadata", "above"),
    [
        (objects.owned_by("ScaledObject", "vllm-so"), "ScaledObject vllm-so"),
        (objects.owned_by("InferenceService", "llama"), "InferenceService llama"),
        ({"labels": {"scaledobject.keda.sh/name": "vllm-so"}}, "ScaledObject vllm-so"),
    ],
)
def test_an_hpa_that_a_controller_makes_is_advised_on_and_never_written(
    server: FakeApiServer, workloads: ClusterWorkloads, metadata: dict[str, Any], above: str
) -> None:
    server.put(HPAS, objects.hpa(low=3, **metadata))
    state = observed(workloads)
    assert (state.owner, state.standing, state.base, state.maximum) == (Owner.HPA, 3, 3, 10)
    assert state.advice is not None
    assert state.advice.reason == "OwnedElsewhere"
    assert f"made by {above}" in state.advice.detail
    kind, _, _ = above.partition(" ")
    assert f"set the minimum of the {kind} by hand" in state.advice.detail
    assert write(workloads, 6, state) == state.advice
    assert server.asked(PATCH) == []


def test_a_workload_at_zero_is_left_asleep(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment(replicas=0))
    refused = refusal(workloads)
    assert refused.reason == "ScaledToZero"
    assert "scale it to at least 1" in refused.detail


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (("AbleToScale", "False", "FailedGetScale"), "HPA vllm-hpa: AbleToScale is False, FailedGetScale: why"),
        (
            ("ScalingActive", "False", "FailedGetExternalMetric"),
            "HPA vllm-hpa: ScalingActive is False, FailedGetExternalMetric: why",
        ),
        (("ScalingActive", "False", "ScalingDisabled"), ""),
        (("ScalingActive", "True", "ValidMetricFound"), ""),
        (("ScalingLimited", "True", "TooFewReplicas"), ""),
    ],
)
def test_what_the_hpa_reports_to_be_wrong_is_passed_on(
    server: FakeApiServer, workloads: ClusterWorkloads, condition: tuple[str, str, str], problem: str
) -> None:
    kind, status, reason = condition
    reported = objects.condition(kind, status, reason=reason, message="why")
    server.change(HPAS, "llm", "vllm-hpa", status={"conditions": [reported]})
    assert observed(workloads).owner_problem == problem


@pytest.mark.parametrize("status", [None, {}, {"conditions": None}, {"conditions": [None, "odd"]}])
def test_a_status_that_says_nothing_is_no_problem(
    server: FakeApiServer, workloads: ClusterWorkloads, status: object
) -> None:
    server.put(HPAS, {**objects.hpa(), "status": status})
    assert observed(workloads).owner_problem == ""


@pytest.mark.parametrize(
    "left",
    [
        {marks.LAST_WRITTEN: "2"},
        {marks.ORIGINAL: "x", marks.LAST_WRITTEN: "2"},
        {marks.ORIGINAL: "9" * 5000, marks.LAST_WRITTEN: "2"},
    ],
)
def test_marks_that_cannot_be_read_are_no_marks(
    server: FakeApiServer, workloads: ClusterWorkloads, left: dict[str, str]
) -> None:
    server.put(HPAS, objects.hpa(annotations=left))
    state = observed(workloads)
    assert (state.base, state.adopted) == (2, False)


def test_a_missing_permission_is_named_with_its_rule(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    seen = observed(workloads)
    server.denied.add(PATCH)
    outcome = write(workloads, 7, seen)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Forbidden"
    rule = 'apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"], verbs: ["patch"]'
    assert f"Role in namespace llm with {rule}" in outcome.detail
