"""The chart's pods as processes of this machine: what helm installs is what runs."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import yaml

from tests.cluster import audit as audit_log
from tests.cluster import chart, kubectl, kubelet, plane
from tests.cluster.needed import Needed
from tests.servers import waiting

SILENT = "http://127.0.0.1:9"  # nothing listens there: enough for what is asked here


@pytest.fixture
def helm(cluster: plane.ControlPlane) -> chart.Helm:
    return chart.Helm(cluster.state, cluster.kubeconfig)


@pytest.fixture
def release(cluster: plane.ControlPlane, namespace: str, helm: chart.Helm) -> Iterator[kubelet.Kubelet]:
    """The chart in `namespace`-floorcast, observing the workloads of `namespace`."""
    home = f"{namespace}-floorcast"
    with kubelet.Kubelet(cluster, home) as pods:
        helm("install", "floorcast", str(chart.CHART), f"--namespace={home}", values=values(namespace))
        yield pods
        cluster.kubectl("delete", "namespace", home, "--wait=false")


def values(namespace: str, **config: object) -> dict[str, Any]:
    target = {"namespace": namespace, "name": "llm", "engine": "vllm", "model": "m", "capacity": {"concurrency": 6}}
    source = {"kind": "prometheus", "prometheus": {"url": SILENT, "timeout": 1}}
    told = {"mode": "shadow", "source": source, "loops": {"slow": 5, "fast": 5}, "targets": [target], **config}
    return {"config": told, "rbac": {"namespaces": [namespace]}}


def is_alive(pod: kubelet.Pod) -> bool:
    try:
        return requests.get(f"{pod.url}/healthz", timeout=2).ok
    except requests.RequestException:
        return False


def _is_ready(pods: kubelet.Kubelet) -> bool:
    (pod,) = (one for one in pods.pods() if one.container.get("ports"))
    try:
        return requests.get(f"{pod.url}/readyz", timeout=2).ok
    except requests.RequestException:
        return False


def await_alive(pods: kubelet.Kubelet) -> kubelet.Pod:
    (pod,) = pods.await_pods(1)
    waiting.until(lambda: is_alive(pod), within_s=240, what="200 from /healthz", every_s=0.25)
    return pod


def test_the_rendered_deployment_runs_with_its_own_account_and_configuration(
    release: kubelet.Kubelet, namespace: str, audit: audit_log.AuditLog
) -> None:
    since = audit.mark()
    pod = await_alive(release)
    account = f"system:serviceaccount:{release.namespace}:floorcast"
    waiting.until(
        lambda: any(e.user == account and e.resource == "deployments" for e in audit.entries(since=since)),
        within_s=30,
        what="a look at the Deployments",
    )
    assert [e for e in audit.entries(since=since) if e.user == account and e.code in (401, 403)] == []
    config = pod.folder / "volumes" / "config" / "floorcast.yaml"
    assert SILENT in config.read_text()
    assert f'"targets": ["{namespace}/llm"]' in pod.log


def test_a_crashed_container_is_started_again(release: kubelet.Kubelet, kubectl: kubectl.Kubectl) -> None:
    pod = await_alive(release)
    before = pod.process.pid
    pod.crash()
    waiting.until(lambda: pod.restarts == 1 and is_alive(pod), within_s=120, what="another process", every_s=0.25)
    assert pod.process.pid != before
    told = kubectl.json("get", "pod", pod.name, f"--namespace={release.namespace}")["status"]
    assert told["containerStatuses"][0]["restartCount"] == 1


def test_an_upgrade_replaces_the_pod_and_an_uninstall_ends_it(
    release: kubelet.Kubelet, namespace: str, helm: chart.Helm
) -> None:
    old = await_alive(release)
    place = f"--namespace={release.namespace}"
    # A configuration alone is taken up without a new pod: test_chart_lifecycle.py.
    told = values(namespace, log={"level": "debug"}) | {"podAnnotations": {"changed": "yes"}}
    helm("upgrade", "floorcast", str(chart.CHART), place, values=told)
    waiting.until(lambda: [p.name for p in release.pods()] not in ([], [old.name]), within_s=120, what="a new pod")
    new = await_alive(release)
    assert not old.process.running
    assert "level: debug" in (new.folder / "volumes" / "config" / "floorcast.yaml").read_text()
    helm("uninstall", "floorcast", place, "--wait", f"--timeout={chart.TIMEOUT_S}s")
    assert release.await_pods(0) == []


def test_a_changed_config_map_reaches_the_mounted_file_without_a_restart(
    release: kubelet.Kubelet, kubectl: kubectl.Kubectl
) -> None:
    pod = await_alive(release)
    config = pod.folder / "volumes" / "config" / "floorcast.yaml"
    changed = f"# changed\n{config.read_text()}"
    place = f"--namespace={release.namespace}"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "floorcast", "namespace": release.namespace}}
    kubectl("replace", place, "--filename=-", stdin=yaml.safe_dump({**body, "data": {"floorcast.yaml": changed}}))
    waiting.until(lambda: config.read_text() == changed, within_s=30, what="the new text in the mounted file")
    assert pod.process.running
    assert pod.restarts == 0


def test_helm_test_passes_on_a_service_that_is_ready_and_fails_on_one_that_is_not(
    cluster: plane.ControlPlane, namespace: str, helm: chart.Helm
) -> None:
    home, needed = f"{namespace}-floorcast", Needed([(namespace, "m")])
    place = (f"--namespace={home}", f"--timeout={chart.TIMEOUT_S}s")
    told = values(namespace, source={"prometheus": {"url": SILENT, "timeout": 1, "budget": 1}})
    with needed.api, kubelet.Kubelet(cluster, home) as pods:
        helm("install", "floorcast", str(chart.CHART), f"--namespace={home}", values=told)
        await_alive(pods)
        with pytest.raises(chart.HelmError, match=r"pod floorcast-test failed"):  # no history from a silent Prometheus
            helm("test", "floorcast", *place)
        (failed,) = (pod for pod in pods.pods() if pod.name == "floorcast-test")
        assert f"http://floorcast.{home}:8080/readyz: 503" in failed.log

        told["config"]["source"]["prometheus"]["url"] = needed.api.url
        helm("upgrade", "floorcast", str(chart.CHART), f"--namespace={home}", values=told)
        waiting.until(lambda: _is_ready(pods), within_s=120, what="200 from /readyz", every_s=0.5)
        assert "Succeeded" in helm("test", "floorcast", *place)
        cluster.kubectl("delete", "namespace", home, "--wait=false")


def test_a_job_ends_with_the_exit_code_of_its_process(release: kubelet.Kubelet, kubectl: kubectl.Kubectl) -> None:
    for name, command, done in (("works", "true", "Complete"), ("fails", "false", "Failed")):
        container = {"name": "floorcast", "image": "floorcast:0", "command": [command]}
        pod = {"restartPolicy": "Never", "containers": [container]}
        place = {"namespace": release.namespace, "name": name}
        spec = {"backoffLimit": 0, "template": {"spec": pod}}
        kubectl.apply([{"apiVersion": "batch/v1", "kind": "Job", "metadata": place, "spec": spec}])
        kubectl("wait", f"job/{name}", f"--for=condition={done}", f"-n{release.namespace}", "--timeout=60s")
