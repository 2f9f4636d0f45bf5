"""The chart's own account in real use: it is never refused anything, and a service that lacks a verb says which.

That each verb of every kind is needed, one at a time, is in test_permissions.py.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from tests.cluster import audit as audit_log
from tests.cluster import chart, kubectl, kubelet, manifests, plane, roles, test_chart_run
from tests.cluster.needed import CONCURRENCY, Needed
from tests.servers import waiting

OF_KIND = {"llm": "Deployment", "plain": "Deployment", "set": "StatefulSet"}  # llm has an HPA
# Each is needed by one of the three.
WRITING = (
    ("get", "autoscaling", "horizontalpodautoscalers"),
    ("patch", "autoscaling", "horizontalpodautoscalers"),
    ("get", "apps", "deployments/scale"),
    ("patch", "apps", "deployments/scale"),
    ("get", "apps", "statefulsets/scale"),
    ("patch", "apps", "statefulsets/scale"),
    ("create", "", "events"),
)
LOOKED_AT = (
    ("autoscaling", "horizontalpodautoscalers"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "replicasets"),
    ("", "pods"),
)
LEASE = ("coordination.k8s.io", "leases")
PATIENCE_S = 180.0  # a process is started again, on a machine with other work
Taken = tuple[str, str, str]


class Installed:
    """The service of one installation, and what stands in the cluster for it."""

    def __init__(self, control_plane: plane.ControlPlane, pods: kubelet.Kubelet, namespace: str) -> None:
        self._kubectl = control_plane.kubectl
        self._namespace = namespace
        self.home = pods.namespace
        self.account = f"system:serviceaccount:{pods.namespace}:floorcast"
        (self.pod,) = pods.await_pods(1)

    def floors(self) -> list[int]:
        """What stands for each target: a minimum, and two replica counts."""
        place = f"--namespace={self._namespace}"
        return [
            self._kubectl.json("get", "hpa", "llm", place)["spec"]["minReplicas"],
            self._kubectl.json("get", "deployment", "plain", place)["spec"]["replicas"],
            self._kubectl.json("get", "statefulset", "set", place)["spec"]["replicas"],
        ]

    def await_floors(self, replicas: int) -> None:
        waiting.until(
            lambda: min(self.floors()) >= replicas, within_s=PATIENCE_S, what=f"floors of {replicas}", every_s=0.5
        )

    def unnoticed(self, *taken: Taken, since: int, starting: bool = False) -> list[Taken]:
        """Of these verbs, those that the log does not name in time, after so many characters.

        Named by what needs them, or where the service is starting, by its look at what it lacks.
        """
        words = _missing if starting else _rule

        def left() -> list[Taken]:
            said = self.pod.log[since:]
            return [one for one in taken if words(*one) not in said]

        try:
            waiting.until(lambda: not left(), within_s=PATIENCE_S, what="every rule named", every_s=0.25)
        except TimeoutError:
            return left()
        return []

    def await_line(self, words: str, *, since: int) -> None:
        """Wait until the log says so, after so many characters."""
        waiting.until(lambda: words in self.pod.log[since:], within_s=PATIENCE_S, what=words, every_s=0.25)

    def await_no_refusal(self) -> None:
        def fine() -> bool:
            targets = requests.get(f"{self.pod.url}/api/state", timeout=5).json()["targets"].values()
            return all(one["workload"] and not one["refused"] for one in targets)

        waiting.until(fine, within_s=PATIENCE_S, what="no target refused", every_s=0.5)

    @contextmanager
    def without(self, *taken: Taken) -> Iterator[None]:
        """Take these verbs from the roles that grant them."""
        found = [
            role
            for namespace in (self._namespace, self.home)
            for role in self._kubectl.json("get", "roles", f"--namespace={namespace}", f"--selector={roles.OURS}")[
                "items"
            ]
        ]
        for role in found:
            left = [_less(rule, taken) for rule in role["rules"]]
            self._patch(role, [rule for rule in left if rule["verbs"]])
        yield
        for role in found:
            self._patch(role, role["rules"])

    def _patch(self, role: dict[str, Any], rules: list[dict[str, Any]]) -> None:
        place = f"--namespace={role['metadata']['namespace']}"
        change = ("--type=merge", f"--patch={json.dumps({'rules': rules})}")
        self._kubectl("patch", "role", role["metadata"]["name"], place, *change)


def _less(rule: dict[str, Any], taken: tuple[Taken, ...]) -> dict[str, Any]:
    gone = {verb for verb, group, resource in taken if (rule["apiGroups"], rule["resources"]) == ([group], [resource])}
    return {**rule, "verbs": [one for one in rule["verbs"] if one not in gone]}


def _rule(verb: str, group: str, resource: str) -> str:
    """How the log, which is JSON, words a missing rule."""
    return json.dumps(f'apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]')[1:-1]


def _missing(verb: str, group: str, resource: str) -> str:
    """How the log words what the service lacks at its start."""
    return f"may not {verb} {resource}{'.' if group else ''}{group} in namespace"


@pytest.fixture
def workloads(namespace: str, kubectl: kubectl.Kubectl) -> None:
    llm = manifests.deployment(manifests.Workload(namespace, "llm"))
    plain = manifests.deployment(manifests.Workload(namespace, "plain"))
    stateful = manifests.deployment(manifests.Workload(namespace, "set"))
    stateful |= {"kind": "StatefulSet", "spec": {**stateful["spec"], "serviceName": "set"}}
    kubectl.apply([llm, plain, stateful, manifests.hpa(manifests.Workload(namespace, "llm", max_replicas=99))])


def values(namespace: str, prometheus: str, *, mode: str, grant: dict[str, bool]) -> dict[str, Any]:
    targets = [
        {"namespace": namespace, "name": name, "kind": kind, "model": name, "capacity": {"concurrency": CONCURRENCY}}
        for name, kind in OF_KIND.items()
    ]
    config = {
        "mode": mode,
        "source": {"prometheus": {"url": prometheus, "timeout": 2, "budget": 2}},
        "loops": {"slow": 5, "fast": 1},
        # The median: a floor that runs ahead of the load would leave nothing to write at its next step.
        "defaults": {"quantiles": {"raise": 0.5, "lower": 0.5}, "maximum": 99},
        "targets": targets,
    }
    return {"config": config, "rbac": {"namespaces": [namespace], "grant": grant}}


@contextmanager
def running(cluster: plane.ControlPlane, namespace: str, load: Needed, *, told: dict[str, Any]) -> Iterator[Installed]:
    home = f"{namespace}-floorcast"
    helm = chart.Helm(cluster.state, cluster.kubeconfig)
    with load.api, kubelet.Kubelet(cluster, home) as pods:
        helm("install", "floorcast", str(chart.CHART), f"--namespace={home}", values=told)
        test_chart_run.await_alive(pods)
        yield Installed(cluster, pods, namespace)
        cluster.kubectl("delete", "namespace", home, "--wait=false")


def refused(audit: audit_log.AuditLog, account: str, *, since: int) -> list[tuple[str, str]]:
    return [(e.verb, e.resource) for e in audit.entries(since=since) if e.user == account and e.code in (401, 403)]


@pytest.mark.timeout(900, func_only=True)
@pytest.mark.usefixtures("workloads")
def test_the_default_roles_are_enough_and_each_verb_that_writes_is_named_when_it_is_gone(
    cluster: plane.ControlPlane, namespace: str, audit: audit_log.AuditLog
) -> None:
    load, since = Needed((namespace, name) for name in OF_KIND), audit.mark()
    with running(cluster, namespace, load, told=values(namespace, load.api.url, mode="control", grant={})) as service:
        service.await_floors(load.replicas)
        assert refused(audit, service.account, since=since) == []
        unnoticed = []
        for one in WRITING:
            said = len(service.pod.log)
            with service.without(one):
                load.replicas = max(service.floors()) + 1  # nothing is written unless something changes
                unnoticed += service.unnoticed(one, since=said)
            service.await_no_refusal()
            service.await_floors(load.replicas)
        assert unnoticed == []


@pytest.mark.timeout(600, func_only=True)
@pytest.mark.usefixtures("workloads")
def test_the_verbs_of_the_lease_are_all_used_and_each_is_named_when_it_is_gone(
    cluster: plane.ControlPlane, namespace: str, audit: audit_log.AuditLog
) -> None:
    load, since = Needed((namespace, name) for name in OF_KIND), audit.mark()
    told = values(namespace, load.api.url, mode="shadow", grant={})
    told["config"]["leader_election"] = {"enabled": True, "lease": 8, "renew": 3, "retry": 1}
    with running(cluster, namespace, load, told=told) as service:

        def used() -> roles.Verbs:
            """What was let through; that no lease was there the first time it was read is an answer too."""
            mine = [one for one in audit.entries(since=since) if one.user == service.account]
            return {(one.verb, one.resource) for one in mine if one.resource == "leases" and one.code != 403}

        granted = {(verb, "leases") for verb in ("get", "create", "update")}
        assert roles.granted(cluster.kubectl, service.home) == granted
        waiting.until(lambda: used() == granted, within_s=PATIENCE_S, what="every verb of the lease in use", every_s=1)
        assert refused(audit, service.account, since=since) == []

        unnoticed = []
        for verb in ("update", "create", "get"):
            said = len(service.pod.log)
            with service.without((verb, *LEASE)):
                if verb == "create":
                    cluster.kubectl("delete", "lease", "floorcast", f"--namespace={service.home}")
                if verb == "get":
                    service.pod.crash()  # who holds the lease need not read it
                unnoticed += service.unnoticed((verb, *LEASE), since=said)
            service.await_line('"leading"', since=len(service.pod.log))
        assert unnoticed == []
