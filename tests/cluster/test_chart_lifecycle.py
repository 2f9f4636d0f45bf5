"""The chart's life under real Helm: refused, installed, upgraded, rolled back, uninstalled; floors are given back."""

from collections.abc import Iterator
from typing import Any

import pytest

from predictor.cluster import marks
from tests.cluster import audit as audit_log
from tests.cluster import chart, kubelet, manifests, plane, roles
from tests.cluster.test_chart_run import SILENT, await_alive
from tests.helm.matrix import TARGET
from tests.servers import waiting

PATIENCE_S = 300  # for a process to be started and to end, on a machine with other work


class Cluster:
    """One installation, and an HPA in another namespace whose minimum of 2 stands at 4 since Floorcast raised it."""

    def __init__(self, control_plane: plane.ControlPlane, namespace: str) -> None:
        self.kubectl = control_plane.kubectl
        self.namespace = namespace
        self.home = f"{namespace}-floorcast"
        self.helm = chart.Helm(control_plane.state, control_plane.kubeconfig)
        self.release_account = f"system:serviceaccount:{self.home}:floorcast-release"
        raised = manifests.hpa(manifests.Workload(namespace, "llm", replicas=4))
        raised["metadata"]["annotations"] = {marks.ORIGINAL: "2", marks.LAST_WRITTEN: "4"}
        self.kubectl.apply([manifests.deployment(manifests.Workload(namespace, "llm")), raised])

    def do(self, command: str, *more: str, values: dict[str, Any] | None = None) -> str:
        name = (command, "floorcast", *((str(chart.CHART),) if values is not None else ()))
        place = (f"--namespace={self.home}", f"--timeout={PATIENCE_S}s")
        return self.helm(*name, *place, *more, values=values)

    def minimum(self) -> int:
        return int(self._hpa()["spec"]["minReplicas"])

    def marked(self) -> bool:
        return marks.present(self._hpa())

    def _hpa(self) -> dict[str, Any]:
        return self.kubectl.json("get", "hpa", "llm", f"--namespace={self.namespace}")

    def left(self, *namespaces: str) -> list[str]:
        """What the chart has made and is still there."""
        kinds = "deployments,services,configmaps,serviceaccounts,roles,rolebindings,jobs"
        found = [self.kubectl.json("get", kinds, f"-n{one}", f"--selector={roles.OURS}")["items"] for one in namespaces]
        return [f"{one['kind']} {one['metadata']['name']}" for items in found for one in items]


@pytest.fixture
def installation(cluster: plane.ControlPlane, namespace: str) -> Iterator[tuple[Cluster, kubelet.Kubelet]]:
    made = Cluster(cluster, namespace)
    with kubelet.Kubelet(cluster, made.home) as pods:
        yield made, pods
        cluster.kubectl("delete", "namespace", made.home, "--wait=false")


def values(namespace: str, *, level: str = "info") -> dict[str, Any]:
    target = {"namespace": namespace, "name": "llm", "model": "m", "capacity": {"concurrency": 6}}
    config = {
        "mode": "control",
        "source": {"prometheus": {"url": SILENT, "timeout": 1, "budget": 1}},
        "loops": {"slow": 5, "fast": 5},
        "targets": [target],
        "log": {"level": level},
    }
    return {"config": config, "rbac": {"namespaces": [namespace]}}


def test_a_misspelt_key_is_refused_before_anything_is_made(installation: tuple[Cluster, kubelet.Kubelet]) -> None:
    made, _ = installation
    for wrong in ({"replicaCount": 2}, {"config": {"targets": [{**TARGET, "warmup": "5m"}]}}):
        with pytest.raises(chart.HelmError, match="additional properties"):
            made.do("install", values=wrong)
    assert made.left(made.home, made.namespace) == []


@pytest.mark.timeout(900, func_only=True)
def test_a_change_is_taken_up_a_rollback_takes_it_back_and_an_uninstall_gives_every_floor_back(
    installation: tuple[Cluster, kubelet.Kubelet], audit: audit_log.AuditLog
) -> None:
    made, pods = installation
    since = audit.mark()
    made.do("install", values=values(made.namespace))
    pod = await_alive(pods)
    for number, (command, more, told) in enumerate(
        [("upgrade", (), values(made.namespace, level="debug")), ("rollback", ("1",), None)], start=1
    ):
        made.do(command, *more, values=told)
        waiting.until(
            lambda number=number: pod.log.count('"configuration taken up"') == number,
            within_s=120,
            what=f"{command} taken up",
        )
    assert [one.name for one in pods.pods()] == [pod.name]
    assert pod.restarts == 0
    assert (made.minimum(), made.marked()) == (4, True)

    made.do("uninstall", "--wait")
    assert (made.minimum(), made.marked()) == (2, False)
    assert made.left(made.home, made.namespace) == []
    assert pods.await_pods(0) == []
    codes = {entry.code for entry in audit.entries(since=since) if entry.user == made.release_account}
    assert 403 not in codes
    assert codes
