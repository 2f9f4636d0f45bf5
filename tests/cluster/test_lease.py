"""Two replicas of the service on the real API server: who writes when, by its audit log."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from predictor.cluster import permissions
from predictor.cluster.permissions import Purpose
from tests.cluster import audit as audit_log
from tests.cluster import manifests, plane
from tests.fakes import prometheus_api
from tests.servers import processes, waiting

HPAS = "horizontalpodautoscalers"
LEASE, RENEW, RETRY = 10.0, 4.0, 0.5
TICK = 1.0  # seconds of the fast loop
ENDING = 5.0  # seconds in which a process ends that was asked to
BUSY = 4.0  # seconds for the answers of a machine with other work
MODEL = "m"
WORKLOAD = manifests.Workload(name="chat", replicas=2, max_replicas=200, image_delay_s=0, model_delay_s=1)


def growing(namespace: str, *, begun: float) -> prometheus_api.Respond:
    """A load that asks for one replica more every two seconds: there is always something to write."""

    def respond(request: prometheus_api.Request) -> prometheus_api.Answer:
        if request.path.endswith("query_range"):
            return prometheus_api.result([], kind="matrix")
        if "> 1)" in request.query or request.query.endswith("> 1"):
            return prometheus_api.result([])  # no pod is scraped twice
        now = time.clock_gettime(time.CLOCK_REALTIME)
        load = 12.0 + 3.0 * (now - begun) if "num_requests_running" in request.query else 0.0
        value = now if "timestamp(" in request.query else 1000.0 if request.query.startswith("count") else load
        labels = {"namespace": namespace, "model_name": MODEL}
        return prometheus_api.result([{"metric": labels, "value": [now, str(value)]}])

    return respond


class Replica:
    """One replica with an account of its own, so that the audit log tells them apart."""

    def __init__(self, cluster: plane.ControlPlane, namespace: str, name: str, prometheus: str) -> None:
        self.user = f"system:serviceaccount:{namespace}:{name}"
        folder = cluster.state / namespace
        folder.mkdir(exist_ok=True)
        token = cluster.service_account_token(namespace, name)
        self.log = folder / f"{name}.log"
        file = folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(settings(namespace, cluster.kubeconfig_for(token), prometheus)))
        command = [*processes.module("predictor.cli"), "run", f"--config={file}"]
        self.process = processes.Child(name, command, log=self.log)

    def leads(self) -> bool:
        """Whether the last thing it said of the lease is that it leads."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        said = [line for line in lines if '"predictor.cluster.lease"' in line or '"identity"' in line]
        return bool(said) and '"leading"' in said[-1]


def settings(namespace: str, kubeconfig: Path, prometheus: str) -> dict[str, Any]:
    election = {"enabled": True, "namespace": namespace, "lease": LEASE, "renew": RENEW, "retry": RETRY}
    target = {"namespace": namespace, "name": "chat", "engine": "vllm", "model": MODEL}
    return {
        "mode": "control",
        "leader_election": election,
        "source": {"prometheus": {"url": prometheus, "timeout": 2, "budget": 3, "scrape_interval": 1}},
        "kubernetes": {"kubeconfig": str(kubeconfig)},
        "loops": {"slow": 2, "fast": TICK},
        "history": {"step": 1, "span": "1h", "carry": 10},
        "forecast": {"seasons": [], "level_window": 60, "score_window": 1800},
        "server": {"host": "127.0.0.1", "port": 0},
        "targets": [{**target, "capacity": {"concurrency": 6}, "warm_up": 5}],
    }


@pytest.fixture
def replicas(cluster: plane.ControlPlane, namespace: str) -> Iterator[tuple[Replica, Replica]]:
    cluster.kubectl.apply([one for name in ("one", "two") for one in account(namespace, name)])
    deployment = manifests.deployment(placed(namespace))
    deployment["spec"]["template"]["spec"]["containers"][0].pop("resources")  # GPUs would limit the floor
    cluster.kubectl.apply([deployment, manifests.hpa(placed(namespace))])
    begun = time.clock_gettime(time.CLOCK_REALTIME)
    with prometheus_api.PrometheusApi(growing(namespace, begun=begun)) as prometheus:
        pair = tuple(Replica(cluster, namespace, name, prometheus.url) for name in ("one", "two"))
        for one in pair:
            one.process.start()
        yield pair[0], pair[1]
        for one in pair:
            one.process.stop()


def placed(namespace: str) -> manifests.Workload:
    import dataclasses  # noqa: PLC0415

    return dataclasses.replace(WORKLOAD, namespace=namespace)


def account(namespace: str, name: str) -> list[dict[str, Any]]:
    place, rbac = {"namespace": namespace, "name": name}, "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "Role", "name": name}
    head = {"apiVersion": f"{rbac}/v1", "metadata": place}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place},
        {**head, "kind": "Role", "rules": permissions.rules(Purpose)},
        {**head, "kind": "RoleBinding", "roleRef": role, "subjects": [{"kind": "ServiceAccount", **place}]},
    ]


def floors(audit: audit_log.AuditLog, since: int, *users: str) -> list[audit_log.Entry]:
    """Accepted writes of the HPA that were no dry runs, by time."""
    written = [one for one in audit.writes(since=since, resource=HPAS) if one.user in users and one.code == 200]
    return sorted(written, key=lambda one: one.at)


def now() -> float:
    """Unix time, as in the audit log."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def after(audit: audit_log.AuditLog, since: int, user: str, moment: float) -> tuple[float, float]:
    """Seconds from a moment until a replica has the lease, and until it writes its first floor."""
    leases = [one for one in audit.writes(since=since, user=user, resource="leases") if one.code == 200]
    first = [
        min(seconds for one in entries if (seconds := one.at.timestamp() - moment) > 0)
        for entries in (leases, floors(audit, since, user))
    ]
    return first[0], first[1]


@pytest.mark.timeout(400, func_only=True)
def test_a_leader_stopped_past_its_lease_and_continued_is_never_a_second_writer(
    replicas: tuple[Replica, Replica], audit: audit_log.AuditLog
) -> None:
    since = audit.mark()
    users = [one.user for one in replicas]

    def writers() -> list[str]:
        return [one.user for one in floors(audit, since, *users)]

    waiting.until(lambda: len(writers()) >= 3, within_s=120, what="three writes", every_s=0.5)
    leader, standby = sorted(replicas, key=lambda one: one.user != writers()[-1])
    assert leader.leads()
    assert not standby.leads()
    leader.process.pause()
    stopped = now()
    waiting.until(lambda: standby.user in writers(), within_s=LEASE + 40, what="a write of the standby", every_s=0.2)
    taken, written = after(audit, since, standby.user, stopped)
    print(f"lease of {LEASE:g} s taken {taken:.1f} s after the stop, floor written after {written:.1f} s")  # noqa: T201
    assert LEASE - RENEW <= taken <= LEASE + 2 * RETRY + BUSY
    assert written <= LEASE + 2 * RETRY + TICK + BUSY
    leader.process.resume()
    count = len(writers())
    waiting.until(lambda: len(writers()) >= count + 4, within_s=60, what="four more writes", every_s=0.5)
    assert set(writers()[count:]) == {standby.user}
    count = len(writers())
    given_back = now()
    standby.process.stop()
    waiting.until(lambda: leader.user in writers()[count:], within_s=60, what="the first again", every_s=0.2)
    taken, written = after(audit, since, leader.user, given_back)
    print(f"after a clean end taken within {taken:.1f} s, floor written after {written:.1f} s")  # noqa: T201
    assert taken <= ENDING + 2 * RETRY + BUSY
    assert written <= ENDING + 2 * RETRY + TICK + BUSY

    runs = [user for user, _ in itertools.groupby(writers())]
    assert runs == [leader.user, standby.user, leader.user]
    forbidden = [one for one in audit.entries(since=since) if one.user in users and one.code == 403]
    assert forbidden == []
    leases = [one for one in audit.writes(since=since, resource="leases") if one.user in users]
    print(f"{len(writers())} floors by {runs}, {len(leases)} writes of the lease")  # noqa: T201
