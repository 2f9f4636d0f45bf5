"""The chart's smallest configuration: one kind of owner and no Events. What is granted is what is used, all of it."""

from typing import Any

import pytest

from tests.cluster import audit as audit_log
from tests.cluster import chart, kubectl, manifests, plane, roles
from tests.cluster import test_chart_permissions as default
from tests.cluster.needed import CONCURRENCY, Needed
from tests.servers import waiting

OF_KIND = {"llm": "Deployment", "set": "StatefulSet"}  # each with an HPA
GRANT = {"hpa": True, "keda": False, "kserve": False, "scale": False, "events": False}
WRITING = (("get", "autoscaling", "horizontalpodautoscalers"), ("patch", "autoscaling", "horizontalpodautoscalers"))
LOOKING = tuple((verb, *place) for verb in ("list", "watch") for place in default.LOOKED_AT)
PATIENCE_S = 180.0


class Minima:
    """The minimum of each HPA."""

    def __init__(self, call: kubectl.Kubectl, namespace: str) -> None:
        self._kubectl = call
        self._namespace = namespace

    def lowest(self) -> int:
        listed = self._kubectl.json("get", "hpa", f"--namespace={self._namespace}")["items"]
        return min(int(one["spec"]["minReplicas"]) for one in listed)

    def await_lowest(self, replicas: int) -> None:
        waiting.until(lambda: self.lowest() >= replicas, within_s=PATIENCE_S, what=f"minima of {replicas}", every_s=0.5)


@pytest.fixture
def minima(namespace: str, kubectl: kubectl.Kubectl) -> Minima:
    deployment = manifests.deployment(manifests.Workload(namespace, "llm", gpus=0))
    stateful = manifests.deployment(manifests.Workload(namespace, "set", gpus=0))
    stateful |= {"kind": "StatefulSet", "spec": {**stateful["spec"], "serviceName": "set"}}
    hpas = [manifests.hpa(manifests.Workload(namespace, name, max_replicas=99)) for name in OF_KIND]
    for hpa in hpas:
        hpa["spec"]["scaleTargetRef"]["kind"] = OF_KIND[hpa["spec"]["scaleTargetRef"]["name"]]
    kubectl.apply([deployment, stateful, *hpas])
    return Minima(kubectl, namespace)


def values(namespace: str, prometheus: str, *, mode: str) -> dict[str, Any]:
    told = default.values(namespace, prometheus, mode=mode, grant=GRANT)
    told["config"]["targets"] = [
        {"namespace": namespace, "name": name, "kind": kind, "model": name, "capacity": {"concurrency": CONCURRENCY}}
        for name, kind in OF_KIND.items()
    ]
    return told


@pytest.mark.timeout(900, func_only=True)
def test_the_smallest_roles_are_used_to_the_last_verb_and_each_is_named_when_it_is_gone(
    cluster: plane.ControlPlane, namespace: str, audit: audit_log.AuditLog, minima: Minima
) -> None:
    needed, since = Needed((namespace, name) for name in OF_KIND), audit.mark()
    helm = chart.Helm(cluster.state, cluster.kubeconfig)
    with default.running(cluster, namespace, needed, told=values(namespace, needed.api.url, mode="shadow")) as service:

        def granted() -> roles.Verbs:
            return roles.granted(cluster.kubectl, namespace)

        def all_used() -> bool:
            return roles.used(audit.entries(since=since), service.account) == granted()

        # A watch stands in the log when it has ended, half a minute after it began.
        waiting.until(all_used, within_s=PATIENCE_S, what="every verb of shadow mode in use", every_s=1)
        assert {verb for verb, _ in granted()} == {"list", "watch"}
        assert minima.lowest() == manifests.Workload().replicas

        place = f"--namespace={service.pod.manifest['metadata']['namespace']}"
        helm("upgrade", "floorcast", str(chart.CHART), place, values=values(namespace, needed.api.url, mode="control"))
        minima.await_lowest(needed.replicas)
        waiting.until(all_used, within_s=PATIENCE_S, what="every verb of control mode in use", every_s=1)
        assert granted() == {(verb, resource) for verb, _, resource in (*LOOKING, *WRITING)}
        assert default.refused(audit, service.account, since=since) == []

        unnoticed = []
        for one in WRITING:
            said = len(service.pod.log)
            with service.without(one):
                needed.replicas = minima.lowest() + 2  # nothing is written unless something changes
                unnoticed += service.unnoticed(one, since=said)
            minima.await_lowest(needed.replicas)  # a refusal is told when it is a new one
        said = len(service.pod.log)
        with service.without(*LOOKING):
            service.pod.crash()  # a new process says at its start what it lacks
            unnoticed += service.unnoticed(*LOOKING, since=said, starting=True)
        assert unnoticed == []
