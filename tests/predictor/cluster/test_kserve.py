"""The floor under KServe, through the real client against a server on loopback."""

from typing import Any

import pytest

from models.policy.decision import Decision, Reason
from predictor.cluster import marks
from predictor.cluster.client import Api
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Kind
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

SERVICES = "inferenceservices"
AIM = target("llama", kind=Kind.INFERENCE_SERVICE)


def service(*, annotations: dict[str, str] | None = None, **predictor: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = {"predictor": {"minReplicas": 2, "maxReplicas": 8, **predictor}}
    return {"metadata": objects.meta("llama", annotations=annotations or {}), "spec": spec, "status": {}}


def below(thing: dict[str, Any]) -> dict[str, Any]:
    thing["metadata"] |= objects.owned_by("InferenceService", "llama")
    return thing


@pytest.fixture(autouse=True)
def _running(server: FakeApiServer) -> None:
    server.put(SERVICES, service())
    server.put("deployments", below(objects.deployment("llama-predictor")))
    server.put("horizontalpodautoscalers", below(objects.hpa("llama-predictor", aim="llama-predictor")))


def observed(workloads: ClusterWorkloads) -> Workload:
    state = workloads.observe([AIM], now=NOW)[AIM.key]
    assert isinstance(state, Workload), state
    return state


def test_an_inference_service_is_found_by_its_name_and_by_its_deployment(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    for aim, now in ((AIM, NOW), (target("llama-predictor"), NOW + 100)):
        state = workloads.observe([aim], now=now)[aim.key]
        assert isinstance(state, Workload)
        assert (state.owner, state.standing, state.maximum) == (Owner.KSERVE, 2, 8)
        assert workloads.write(aim, 5, seen=state, now=now) == Written(5)
        assert workloads.release(aim) == Written(2)
    assert {request.resource for request in server.requests if request.verb == "patch"} == {SERVICES}


def test_without_a_maximum_the_configured_one_counts(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(SERVICES, service(maxReplicas=0))
    assert observed(workloads).maximum == AIM.maximum


def test_on_knative_there_is_only_advice(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    """KServe makes a Knative Service there and no Deployment of its own."""
    server.put(SERVICES, service(annotations={"serving.kserve.io/deploymentMode": "Serverless"}))
    state = workloads.observe([AIM], now=NOW)[AIM.key]
    assert isinstance(state, Refused)
    assert state.reason == "OwnedElsewhere"
    assert "loads the model anew" in state.detail


def test_what_is_made_by_yet_another_kind_is_only_advised_on(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put(SERVICES, {**service(), "metadata": objects.meta("llama", **objects.owned_by("ModelCatalog", "all"))})
    state = observed(workloads)
    assert state.advice is not None
    assert "made by ModelCatalog all" in state.advice.detail


def test_a_predictor_that_is_not_ready_is_a_problem(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    reported = objects.condition("PredictorReady", "False", reason="MinimumReplicasUnavailable", message="why")
    server.put(SERVICES, {**service(), "status": {"conditions": [reported]}})
    assert "PredictorReady is False, MinimumReplicasUnavailable: why" in observed(workloads).owner_problem


def test_clusters_without_kserve_are_never_asked_about_it(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    for plural, name in (("deployments", "llama-predictor"), ("horizontalpodautoscalers", "llama-predictor")):
        del server.objects[plural, "llm", name]
    workloads.observe([target()], now=NOW)
    assert server.asked(f"list {SERVICES}") == []


@pytest.mark.parametrize(
    ("gone", "what"), [(SERVICES, "there is no InferenceService llama"), ("deployments", "has no Deployment")]
)
def test_what_is_not_there_is_named(server: FakeApiServer, workloads: ClusterWorkloads, gone: str, what: str) -> None:
    for key in [key for key in server.objects if key[0] == gone]:
        del server.objects[key]
    state = workloads.observe([AIM], now=NOW)[AIM.key]
    assert isinstance(state, Refused)
    assert what in state.detail


def stored(server: FakeApiServer) -> dict[str, Any]:
    return server.objects[SERVICES, "llm", "llama"]


def change(server: FakeApiServer, to: int, by: str = "kubectl-edit") -> None:
    owner = [{"manager": by, "fieldsV1": {"f:spec": {"f:predictor": {"f:minReplicas": {}}}}}]
    server.change(SERVICES, "llm", "llama", spec={"predictor": {"minReplicas": to}}, metadata={"managedFields": owner})


def test_nothing_that_reaches_the_pods_is_written(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    """KServe copies annotations and labels into the template of the pods, and a change there replaces them all."""
    metadata = {key: stored(server)["metadata"].get(key) for key in ("annotations", "labels")}
    workloads.write(AIM, 5, seen=observed(workloads), now=NOW)
    workloads.write(AIM, 7, seen=observed(workloads), now=NOW + 100)
    workloads.announce(AIM, Decision(NOW + 200, 7, 7, 9, Reason.HELD_UNKNOWN, "why"))
    workloads.observe([AIM], now=NOW + 300)
    workloads.release(AIM, note="since now")
    assert all(set(patch.body["metadata"]) == {"resourceVersion"} for patch in server.asked(f"patch {SERVICES}"))
    assert {key: stored(server)["metadata"].get(key) for key in metadata} == metadata


def test_the_own_minimum_outlives_a_crash_in_the_name_of_the_field_manager(
    server: FakeApiServer, workloads: ClusterWorkloads, api: Api
) -> None:
    workloads.write(AIM, 5, seen=observed(workloads), now=NOW)
    workloads.write(AIM, 7, seen=observed(workloads), now=NOW + 100)
    assert [one["manager"] for one in stored(server)["metadata"]["managedFields"]] == ["floorcast-original-2"]
    again = ClusterWorkloads(api)
    state = observed(again)
    assert (state.standing, state.base, state.adopted) == (7, 2, True)
    assert again.release_all("llm") == {"InferenceService llm/llama": Written(2)}
    assert again.release_all("llm") == {}
    assert [one["manager"] for one in stored(server)["metadata"]["managedFields"]] == ["floorcast"]


def test_a_minimum_that_was_left_out_is_left_out_again(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(SERVICES, {**service(), "spec": {"predictor": {"maxReplicas": 8}}})
    assert observed(workloads).base == 1
    workloads.write(AIM, 5, seen=observed(workloads), now=NOW)
    assert (observed(workloads).standing, observed(workloads).base) == (5, 1)
    assert workloads.release(AIM) == Written(1)
    assert "minReplicas" not in stored(server)["spec"]["predictor"]


def test_a_floor_that_is_back_at_the_own_minimum_has_nothing_to_give_back(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    workloads.write(AIM, 5, seen=observed(workloads), now=NOW)
    workloads.write(AIM, 2, seen=observed(workloads), now=NOW + 100)
    asked = len(server.asked(f"patch {SERVICES}"))
    assert workloads.release(AIM) == Written(2)
    assert len(server.asked(f"patch {SERVICES}")) == asked


def test_a_minimum_that_somebody_changed_since_is_theirs(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    workloads.write(AIM, 5, seen=observed(workloads), now=NOW)
    change(server, 4)
    state = observed(workloads)
    assert (state.base, state.adopted) == (4, False)
    assert workloads.release(AIM) == Written(4)


def test_an_own_minimum_above_a_maximum_lowered_since_is_cut_to_it(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    change(server, 6)
    workloads.write(AIM, 7, seen=observed(workloads), now=NOW)
    server.change(SERVICES, "llm", "llama", spec={"predictor": {"maxReplicas": 4}})
    assert workloads.release(AIM) == Written(4)


def test_the_note_of_a_release_is_left_on_the_deployment(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    workloads.write(AIM, 5, seen=observed(workloads), now=NOW)
    assert workloads.release(AIM, note="since now") == Written(2)
    below = server.objects["deployments", "llm", "llama-predictor"]
    assert below["metadata"]["annotations"] == {marks.RELEASED: "since now"}
    advice = observed(workloads).advice
    assert advice is not None
    assert advice.reason == "Released"
    assert workloads.resume(AIM) is None
    assert observed(workloads).advice is None


def test_who_may_not_leave_the_note_says_it_as_the_manager_of_the_number(
    server: FakeApiServer, workloads: ClusterWorkloads, api: Api
) -> None:
    """As the hook of the chart before an uninstall: the service that still runs would raise it again meanwhile."""
    service = ClusterWorkloads(api)
    state = service.observe([AIM], now=NOW)[AIM.key]
    assert isinstance(state, Workload)
    assert service.write(AIM, 5, seen=state, now=NOW) == Written(5)
    server.denied.add("patch deployments")
    assert workloads.release(AIM, note=marks.paused("since now", until=NOW + 600)) == Written(2)
    assert not marks.present(stored(server))
    for after, answer in ((100, None), (599, None), (601, Written(5))):
        state = service.observe([AIM], now=NOW + after)[AIM.key]
        assert isinstance(state, Workload)
        outcome = service.write(AIM, 5, seen=state, now=NOW + after)
        if answer is None:
            assert isinstance(outcome, Refused)
            assert outcome.reason == "Released"
        else:
            assert outcome == answer
    assert workloads.release(AIM) == Written(2)


def test_all_that_is_marked_is_released_so_that_it_stays_so(workloads: ClusterWorkloads) -> None:
    workloads.write(AIM, 5, seen=observed(workloads), now=NOW)
    answers = workloads.release_all(note=marks.paused("since now", until=NOW + 600))
    assert list(answers.values()) == [Written(2)]
    state = workloads.observe([AIM], now=NOW + 100)[AIM.key]
    assert isinstance(state, Workload)
    assert isinstance(workloads.write(AIM, 5, seen=state, now=NOW + 100), Refused)


def test_a_contest_leaves_no_note_on_it(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    for after in (0, 100):
        workloads.write(AIM, 5, seen=observed(workloads), now=NOW + after)
        change(server, 3, by="somebody")
        workloads.observe([AIM], now=NOW + after + 1)
    state = workloads.observe([AIM], now=NOW + 102)[AIM.key]
    assert isinstance(state, Workload)
    assert (state.advice.reason if state.advice else "", state.rival) == ("Contested", "somebody")
    workloads.announce(AIM, Decision(NOW + 102, 3, 5, 5, Reason.RAISED_FOR_FORECAST, ""))
    assert not stored(server)["metadata"].get("annotations")
