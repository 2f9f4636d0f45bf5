"""The floor under KServe, through the real client against a server on loopback."""

from typing import Any

import pytest

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
    for aim in (AIM, target("llama-predictor")):
        state = workloads.observe([aim], now=NOW)[aim.key]
        assert isinstance(state, Workload)
        assert (state.owner, state.standing, state.maximum) == (Owner.KSERVE, 2, 8)
        assert workloads.write(aim, 5, seen=state, now=NOW) == Written(5)
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
