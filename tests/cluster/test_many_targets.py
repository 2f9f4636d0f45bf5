"""Five hundred targets on the real API server: what is asked of it in a minute, and that only changes are written."""

import collections
import itertools
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from predictor.cluster.permissions import Purpose
from tests.cluster import accounts, commands, manifests, plane
from tests.cluster import audit as audit_log
from tests.cluster import kubectl as kubectl_tool
from tests.cluster.floorcast import Service
from tests.cluster.needed import CONCURRENCY, Needed
from tests.servers import waiting

NAMESPACE = "many"
NAMES = [f"model-{number:03d}" for number in range(500)]
CHANGED = NAMES[::25]
MINIMUM, RAISED = 2, 5
HPAS = "horizontalpodautoscalers"
PURPOSES = (Purpose.OBSERVE, Purpose.EVENTS, Purpose.WRITE_HPA)
MINUTE = 60.0
# The picture comes by watches, one for each of four kinds, each begun anew twice a minute; nothing else is asked.
MOST_WATCHES, MOST_IN_A_CALM_MINUTE = 12, 4
MOST_FOR_A_CHANGE = 8  # read, tried out, written; twice, should the number move on; and an Event of each
PATIENCE_S = 240.0


def things(name: str) -> list[dict[str, Any]]:
    """A Deployment whose pods no node takes, which is cheap, and its HPA."""
    workload = manifests.Workload(NAMESPACE, name, replicas=MINIMUM)
    deployment = manifests.deployment(workload)
    deployment["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/none": "such"}
    return [deployment, manifests.hpa(workload)]


def settings(prometheus: str, kubeconfig: Path | None) -> dict[str, Any]:
    """The default loops."""
    shared = {"namespace": NAMESPACE, "capacity": {"concurrency": CONCURRENCY}}
    return {
        "mode": "control",
        "source": {"prometheus": {"url": prometheus}},
        "kubernetes": {"kubeconfig": str(kubeconfig), "owners": ["hpa"]},
        "server": {"host": "127.0.0.1", "port": 0},
        # Longer than the test: no pod is stuck, of which there would be an Event.
        "defaults": {"quantiles": {"raise": 0.5, "lower": 0.5}, "warm_up": "15m", "maximum": 12},
        "targets": [{**shared, "name": name, "model": name} for name in NAMES],
    }


class Asked:
    """What one account asks of the API server."""

    def __init__(self, audit: audit_log.AuditLog, user: str) -> None:
        self._audit = audit
        self._user = user

    def entries(self, since: int) -> list[audit_log.Entry]:
        return [one for one in self._audit.entries(since=since) if one.user == self._user]

    def minute(self) -> collections.Counter[str]:
        """What is asked in the next minute, by verb and resource."""
        since = self._audit.mark()
        threading.Event().wait(MINUTE)
        return collections.Counter(f"{one.verb} {one.resource}" for one in self.entries(since))

    def minima(self, since: int) -> dict[str, list[int]]:
        """The minima that were written since then."""
        found: dict[str, list[int]] = {}
        for one in self.entries(since):
            if (one.verb, one.resource, one.code, one.dry_run) == ("patch", HPAS, 200, False):
                found.setdefault(one.name, []).append(one.body["spec"]["minReplicas"])
        return found


def minima(kubectl: kubectl_tool.Kubectl) -> dict[str, int]:
    listed = kubectl.json("get", "hpa", f"--namespace={NAMESPACE}")["items"]
    return {one["metadata"]["name"]: int(one["spec"]["minReplicas"]) for one in listed}


def create(cluster: plane.ControlPlane) -> None:
    """Side by side, for which kubectl takes minutes."""
    with cluster.api() as api, futures.ThreadPoolExecutor(4) as pool:
        apps, autoscaling = client.AppsV1Api(api), client.AutoscalingV2Api(api)

        def both(name: str) -> None:
            deployment, hpa = things(name)
            apps.create_namespaced_deployment(NAMESPACE, deployment)
            autoscaling.create_namespaced_horizontal_pod_autoscaler(NAMESPACE, hpa)

        collections.deque(pool.map(both, NAMES), maxlen=0)


def raised(written: dict[str, list[int]]) -> bool:
    return all(written.get(name, [0])[-1] >= RAISED for name in CHANGED)


def all_recommended(service: Service) -> bool:
    page = service.page("/metrics")
    return page.count("\nfloorcast_recommended_replicas{") == len(NAMES)


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[plane.ControlPlane]:
    """A control plane of its own: what so many leave behind would slow the tests that follow down."""
    with plane.ControlPlane(tmp_path, commands.Settings(hpa_sync_s=15.0)) as control_plane:
        yield control_plane


@pytest.mark.timeout(900, func_only=True)
def test_five_hundred_targets_ask_little_and_write_only_what_changes(
    apart: plane.ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> None:
    apart.kubectl("create", "namespace", NAMESPACE)
    create(apart)
    needed, since = Needed((NAMESPACE, name) for name in NAMES), apart.audit.mark()
    needed.replicas = 1
    access = accounts.login(apart, NAMESPACE, "floorcast", PURPOSES)
    asked = Asked(apart.audit, f"system:serviceaccount:{NAMESPACE}:floorcast")
    told = settings(needed.api.url, access.kubeconfig)
    with needed.api, Service(tmp_path_factory.mktemp("service"), told) as service:
        waiting.until(lambda: all_recommended(service), within_s=PATIENCE_S, what="a decision for each", every_s=2)
        calm = asked.minute()
        watches = sum(count for what, count in calm.items() if what.startswith("watch "))
        others = sum(calm.values()) - watches
        said = f"{len(NAMES)} targets, nothing changes: {others} requests a minute and {watches} watches"
        print(f"\n{said}: {dict(calm)}")  # noqa: T201
        assert watches <= MOST_WATCHES
        assert others <= MOST_IN_A_CALM_MINUTE
        assert asked.minima(since) == {}

        before = apart.audit.mark()
        needed.others = dict.fromkeys(CHANGED, RAISED)
        waiting.until(
            lambda: raised(asked.minima(before)),
            within_s=PATIENCE_S,
            what=f"{len(CHANGED)} raised minima",
            every_s=2,
        )
        changing = asked.entries(before)
        others = sum(one.verb != "watch" for one in changing)
        print(f"{len(CHANGED)} of them change: {others} requests")  # noqa: T201
        assert others <= MOST_FOR_A_CHANGE * len(CHANGED)
        assert set(asked.minima(before)) == set(CHANGED)
        for written in asked.minima(before).values():
            assert all(one != another for one, another in itertools.pairwise([MINIMUM, *written]))
        untouched = {name: one for name, one in minima(apart.kubectl).items() if name not in CHANGED}
        assert set(untouched.values()) == {MINIMUM}
        assert [one for one in asked.entries(since) if one.code == 403] == []
