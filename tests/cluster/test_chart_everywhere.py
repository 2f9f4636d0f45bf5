"""The chart for the whole cluster: targets by label, and an uninstall that fails, is mended, and gives all back."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import pytest
from kubernetes import client

from predictor.cluster import discovery, marks
from tests.cluster import audit as audit_log
from tests.cluster import chart, kubectl, kubelet, manifests, plane, roles
from tests.cluster.needed import CONCURRENCY, Needed
from tests.cluster.test_chart_run import await_alive, is_alive
from tests.servers import waiting

NAMESPACES = ("everywhere-one", "everywhere-two")
HOME = "everywhere-floorcast"
SERVICE, RELEASE = (f"system:serviceaccount:{HOME}:{name}" for name in ("floorcast", "floorcast-release"))
ROLE = f"{HOME}-floorcast-release"
ORIGINAL, RAISED, RAISED_AGAIN = 2, 4, 6
PATIENCE_S = 240.0


def labelled(namespace: str) -> list[dict[str, Any]]:
    """A Deployment that asks to be scaled, with its HPA."""
    workload = manifests.Workload(namespace, "llm", replicas=ORIGINAL, max_replicas=9, gpus=0)
    deployment = manifests.deployment(workload)
    deployment["metadata"]["labels"] = {discovery.LABEL: "true"}
    deployment["metadata"]["annotations"] = {"floorcast.dev/model": "m", "floorcast.dev/concurrency": str(CONCURRENCY)}
    return [manifests.namespace(workload), deployment, manifests.hpa(workload)]


def values(prometheus: str) -> dict[str, Any]:
    config = {
        "mode": "control",
        "source": {"prometheus": {"url": prometheus, "timeout": 2, "budget": 2}},
        "loops": {"slow": 5, "fast": 1},
        "defaults": {"quantiles": {"raise": 0.5, "lower": 0.5}, "warm_up": 20},
        "discovery": {"enabled": True, "every": 2},
    }
    return {"config": config, "rbac": {"clusterWide": True}}


class Floors:
    """The HPAs of both namespaces."""

    def __init__(self, call: kubectl.Kubectl) -> None:
        self._kubectl = call

    def hpas(self) -> list[dict[str, Any]]:
        return [self._kubectl.json("get", "hpa", "llm", f"--namespace={namespace}") for namespace in NAMESPACES]

    def minima(self) -> list[int]:
        return [int(one["spec"]["minReplicas"]) for one in self.hpas()]

    def marked(self) -> list[bool]:
        return [marks.present(one) for one in self.hpas()]

    def await_raised(self, replicas: int) -> None:
        waiting.until(
            lambda: min(self.minima()) >= replicas, within_s=PATIENCE_S, what=f"minima of {replicas}", every_s=0.5
        )


@contextmanager
def without_rights(control_plane: plane.ControlPlane) -> Iterator[None]:
    """The role of the hook loses all it grants as soon as it is there, and the Job is given up after its first pod."""
    over = threading.Event()

    def spoil() -> None:
        with control_plane.api() as api:
            rbac, batch = client.RbacAuthorizationV1Api(api), client.BatchV1Api(api)
            _until_there(over, lambda: rbac.patch_cluster_role(ROLE, {"rules": []}))
            _until_there(over, lambda: _give_up(batch))

    thread = threading.Thread(target=spoil, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _until_there(over: threading.Event, act: Callable[[], object]) -> None:
    while not over.wait(0.05):
        try:
            act()
        except client.ApiException as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        else:
            return


def _give_up(batch: client.BatchV1Api) -> None:
    job = batch.read_namespaced_job("floorcast-release", HOME)
    if not job.status.failed:
        raise client.ApiException(status=HTTPStatus.NOT_FOUND)
    batch.patch_namespaced_job("floorcast-release", HOME, {"spec": {"backoffLimit": 0}})


@pytest.mark.timeout(900, func_only=True)
def test_targets_found_by_label_are_given_back_by_an_uninstall_that_may_fail_first(
    cluster: plane.ControlPlane, audit: audit_log.AuditLog
) -> None:
    helm, floors, place = chart.Helm(cluster.state, cluster.kubeconfig), Floors(cluster.kubectl), f"--namespace={HOME}"
    cluster.kubectl.apply([one for namespace in NAMESPACES for one in labelled(namespace)])
    load, since = Needed((namespace, "m") for namespace in NAMESPACES), audit.mark()
    load.replicas = RAISED
    with load.api, kubelet.Kubelet(cluster, HOME) as pods:
        helm("install", "floorcast", str(chart.CHART), place, values=values(load.api.url))
        pod = await_alive(pods)
        floors.await_raised(RAISED)
        assert floors.marked() == [True, True]

        with without_rights(cluster), pytest.raises(chart.HelmError, match="floorcast-release"):
            helm("uninstall", "floorcast", place, f"--timeout={PATIENCE_S:.0f}s")
        (failed,) = (one for one in pods.pods() if one.name.startswith("floorcast-release"))
        assert "Forbidden" in failed.log
        assert min(floors.minima()) >= RAISED
        assert floors.marked() == [True, True]
        assert is_alive(pod)
        load.replicas = RAISED_AGAIN  # the service goes on as before
        floors.await_raised(RAISED_AGAIN)

        helm("uninstall", "floorcast", place, "--wait", f"--timeout={PATIENCE_S:.0f}s")
        assert floors.minima() == [ORIGINAL, ORIGINAL]
        assert floors.marked() == [False, False]
        assert pods.await_pods(0) == []
    check_conduct(cluster, audit.entries(since=since))
    cluster.kubectl("delete", "namespace", HOME, *NAMESPACES, "--wait=false")


def check_conduct(cluster: plane.ControlPlane, entries: list[audit_log.Entry]) -> None:
    """One list of each kind in the whole cluster, nothing refused but what was taken away, and nothing left behind."""
    lists = [one for one in entries if one.user == SERVICE and one.verb == "list"]
    assert {one.resource for one in lists} >= {"deployments", "pods", "horizontalpodautoscalers"}
    assert {one.namespace for one in lists} == {""}
    assert [one for one in entries if one.user == SERVICE and one.code in (401, 403)] == []
    assert {one.code for one in entries if one.user == RELEASE} >= {200, 403}
    left = cluster.kubectl.json("get", "clusterroles,clusterrolebindings", f"--selector={roles.OURS}")["items"]
    assert [one["metadata"]["name"] for one in left if one["metadata"]["name"].startswith(HOME)] == []
