"""Objects that come from a repository: who set the number decides, the tool's mark is told of."""

from typing import Any

import pytest
import structlog

from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Workload, Written
from predictor.targets import Target
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

HPAS = "horizontalpodautoscalers"
ARGO = {"annotations": {"argocd.argoproj.io/tracking-id": "app:autoscaling/HorizontalPodAutoscaler:llm/vllm-hpa"}}


def write(workloads: ClusterWorkloads, replicas: int = 6, *, after: float = 0.0, aim: Target | None = None) -> Workload:
    aim = aim or target()
    seen = workloads.observe([aim], now=NOW + after)[aim.key]
    assert isinstance(seen, Workload), seen
    assert workloads.write(aim, replicas, seen=seen, now=NOW + after) == Written(replicas)
    return seen


def events(server: FakeApiServer) -> list[tuple[str, str, str]]:
    bodies = [request.body for request in server.asked("create events")]
    return [(one["involvedObject"]["kind"], one["reason"], one["message"]) for one in bodies]


@pytest.mark.parametrize(
    ("metadata", "tool", "remedy"),
    [
        (ARGO, "Argo CD (argocd.argoproj.io/tracking-id)", "RespectIgnoreDifferences=true"),
        ({"labels": {"argocd.argoproj.io/instance": "app"}}, "Argo CD", "ignoreDifferences"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, "Flux", "ssa: IfNotPresent"),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "llm"}}, "Flux", "driftDetection.ignore"),
    ],
)
def test_a_tools_mark_is_told_of_with_the_first_write_and_refuses_nothing(
    server: FakeApiServer, workloads: ClusterWorkloads, metadata: dict[str, Any], tool: str, remedy: str
) -> None:
    server.put("deployments", objects.deployment())
    server.put(HPAS, objects.hpa(**metadata))
    with structlog.testing.capture_logs() as logs:
        for number, replicas in enumerate((6, 7, 8)):
            assert write(workloads, replicas, after=1000.0 * number).advice is None
    ((kind, reason, message),) = events(server)
    assert (kind, reason) == ("HorizontalPodAutoscaler", "AppliedByGitOps")
    assert f"applied by {tool}" in message
    assert "which did not set spec.minReplicas" in message
    assert remedy in message
    assert [line["event"] for line in logs] == [message]


def test_nothing_is_told_before_anything_is_written(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    server.put(HPAS, objects.hpa(**ARGO))
    workloads.observe([target()], now=NOW)
    assert events(server) == []


def test_nothing_is_told_where_the_tool_is_known_to_leave_it_alone(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment())
    server.put(HPAS, objects.hpa(**ARGO))
    write(workloads, aim=target(gitops_ignored=True))
    assert events(server) == []


def test_the_label_that_helm_sets_too_says_nothing(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    server.put(HPAS, objects.hpa(labels={"app.kubernetes.io/instance": "llm"}))
    write(workloads)
    assert events(server) == []


def test_a_workload_without_an_autoscaler_is_told_of_too(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    thing = objects.deployment()
    thing["metadata"]["labels"] = {"kustomize.toolkit.fluxcd.io/name": "apps"}
    server.put("deployments", thing)
    write(workloads)
    ((kind, _, message),) = events(server)
    assert kind == "Deployment"
    assert "which did not set spec.replicas" in message


def test_a_number_that_the_tool_did_set_is_not_written_at_all(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment())
    manager = [{"manager": "argocd-controller", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}]
    server.put(HPAS, objects.hpa(**ARGO, managedFields=manager))
    seen = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(seen, Workload)
    assert seen.advice is not None
    assert seen.advice.reason == "OwnedByGitOps"
