import itertools
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from kubernetes import client

from tests.cluster import audit as audit_log
from tests.cluster import binaries, manifests, plane
from tests.cluster import kubectl as kubectl_tool
from tests.servers import waiting

Deploy = Callable[[manifests.Workload], manifests.Workload]


def pods(kubectl: kubectl_tool.Kubectl, namespace: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = kubectl.json("get", "pods", f"--namespace={namespace}")["items"]
    return items


def condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next((one for one in pod["status"].get("conditions", []) if one["type"] == kind), {})
    return found


def are_ready(kubectl: kubectl_tool.Kubectl, namespace: str, count: int) -> list[dict[str, Any]] | None:
    ready = [pod for pod in pods(kubectl, namespace) if condition(pod, "Ready").get("status") == "True"]
    return ready if len(ready) == count else None


def test_the_api_server_answers_with_the_version_it_was_built_from(api: client.ApiClient) -> None:
    assert client.VersionApi(api).get_code().git_version == binaries.VERSION_OF_KUBERNETES


def test_a_service_account_may_do_nothing_unless_a_role_says_so(cluster: plane.ControlPlane, namespace: str) -> None:
    with cluster.api(cluster.service_account_token(namespace, "default")) as somebody:
        with pytest.raises(client.ApiException) as refused:
            client.CoreV1Api(somebody).list_namespaced_pod(namespace)
        assert refused.value.status == 403


def test_a_pod_becomes_ready_after_its_warm_up_and_each_phase_has_its_time(
    kubectl: kubectl_tool.Kubectl, namespace: str, deploy: Deploy
) -> None:
    deploy(manifests.Workload(replicas=1, image_delay_s=2, model_delay_s=4))
    (pod,) = waiting.until(lambda: are_ready(kubectl, namespace, 1), within_s=60, what="the pod Ready")
    status = pod["status"]["containerStatuses"][0]
    assert status["ready"]
    assert status["started"]
    bound, sandbox, ready = (
        condition(pod, kind)["lastTransitionTime"] for kind in ("PodScheduled", "PodReadyToStartContainers", "Ready")
    )
    times = [datetime.fromisoformat(at) for at in (bound, sandbox, status["state"]["running"]["startedAt"], ready)]
    phases = [(later - sooner).total_seconds() for sooner, later in itertools.pairwise(times)]
    for wanted, seen in zip((1, 2, 4), phases, strict=True):
        assert wanted - 1 <= seen <= wanted + 5  # times are whole seconds, and a busy machine is late, never early


def test_pods_have_addresses_of_the_network_leased_by_this_rig(
    cluster: plane.ControlPlane, kubectl: kubectl_tool.Kubectl, namespace: str, deploy: Deploy
) -> None:
    deploy(manifests.Workload(replicas=2, image_delay_s=0.1, model_delay_s=0.1))
    ready = waiting.until(lambda: are_ready(kubectl, namespace, 2), within_s=60, what="pods Ready")
    addresses = {pod["status"]["podIP"] for pod in ready}
    assert len(addresses) == 2
    assert all(address.startswith(cluster.network.removesuffix("0.0/16")) for address in addresses)


def test_the_scheduler_leaves_pods_pending_when_the_gpus_run_out(
    kubectl: kubectl_tool.Kubectl, namespace: str, deploy: Deploy
) -> None:
    deploy(manifests.Workload(replicas=6, gpus=8, image_delay_s=0.1, model_delay_s=0.1))  # four nodes have eight each
    waiting.until(lambda: are_ready(kubectl, namespace, 4), within_s=60, what="four pods Ready")
    left = [pod for pod in pods(kubectl, namespace) if pod["status"]["phase"] == "Pending"]
    assert len(left) == 2
    assert {condition(pod, "PodScheduled")["reason"] for pod in left} == {"Unschedulable"}
    assert "Insufficient nvidia.com/gpu" in condition(left[0], "PodScheduled")["message"]


def test_an_hpa_enforces_a_raised_minimum_though_its_metric_is_missing(
    kubectl: kubectl_tool.Kubectl, namespace: str, deploy: Deploy, audit: audit_log.AuditLog
) -> None:
    workload = deploy(manifests.Workload(replicas=1))
    kubectl.apply([manifests.hpa(workload)])
    since = audit.mark()
    patch = '{"spec":{"minReplicas":3}}'
    kubectl("patch", "hpa", workload.name, f"--namespace={namespace}", "--type=merge", f"--patch={patch}")
    raised = audit.await_write(lambda entry: entry.verb == "patch" and entry.namespace == namespace, since=since)
    scaled = audit.await_write(
        lambda entry: entry.resource == "deployments/scale" and entry.namespace == namespace, since=since
    )
    assert scaled.user == "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    assert scaled.body["spec"]["replicas"] == 3
    assert (scaled.at - raised.at).total_seconds() < 10  # a sync is 2 s


def test_the_audit_log_shows_a_patch_with_its_field_manager_and_body(
    cluster: plane.ControlPlane, kubectl: kubectl_tool.Kubectl, namespace: str, deploy: Deploy
) -> None:
    workload = deploy(manifests.Workload(replicas=1))
    kubectl(
        "create", "rolebinding", "edit", "--clusterrole=edit", f"--serviceaccount={namespace}:default", f"-n{namespace}"
    )
    since = cluster.audit.mark()
    with cluster.api(cluster.service_account_token(namespace, "default")) as writer:
        body = {"metadata": {"annotations": {"floor": "3"}}}
        apps = client.AppsV1Api(writer)
        apps.patch_namespaced_deployment(workload.name, namespace, body, field_manager="floorcast")
    user = f"system:serviceaccount:{namespace}:default"
    (entry,) = waiting.until(lambda: cluster.audit.writes(since=since, user=user), within_s=10, what="the entry")
    assert (entry.verb, entry.resource, entry.namespace, entry.name) == ("patch", "deployments", namespace, "llm")
    assert entry.field_manager == "floorcast"
    assert entry.body == body
    assert entry.code == 200


def test_the_audit_log_shows_refused_writes(cluster: plane.ControlPlane, namespace: str) -> None:
    since = cluster.audit.mark()
    token = cluster.service_account_token(namespace, "default")
    with cluster.api(token) as somebody, pytest.raises(client.ApiException):
        client.CoreV1Api(somebody).create_namespaced_config_map(namespace, {"metadata": {"name": "mine"}})
    entry = cluster.audit.await_write(lambda entry: entry.resource == "configmaps" and entry.code == 403, since=since)
    assert entry.namespace == namespace
