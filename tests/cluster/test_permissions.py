"""Each verb of docs/permissions.md, taken away alone on the real API server: what needs it names it, and only it."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from kubernetes import client

from models.policy.decision import Decision, Reason
from predictor import clock
from predictor.cluster import permissions
from predictor.cluster.client import Api
from predictor.cluster.lease import Elector, Terms
from predictor.cluster.permissions import PERMISSIONS, Permission, Purpose
from predictor.cluster.watching import Cache
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Refused, Workload
from predictor.targets import Kind, Target
from tests.cluster import accounts, owned, plane
from tests.fakes import cluster_objects as objects
from tests.servers import waiting

NAMESPACE, ACCOUNT = "one-by-one", "floorcast"
PATIENCE_S = 30.0
# What is written of each, in the words of the rule.
TARGETS = {
    "horizontalpodautoscalers": ("plain", {}),
    "scaledobjects": ("scaled", {}),
    "inferenceservices": ("llm-predictor", {}),
    "deployments/scale": ("alone", {}),
    "statefulsets/scale": ("set", {"kind": Kind.STATEFUL_SET}),
    "leaderworkersets/scale": ("groups", {"kind": Kind.LEADER_WORKER_SET}),
    "rollouts/scale": ("rolled", {"kind": Kind.ROLLOUT}),
}
AIMED_AT = {
    resource: objects.target(name=name, namespace=NAMESPACE, warm_up=20.0, **more)
    for resource, (name, more) in TARGETS.items()
}
THERE, ABSENT = "there", "absent"  # names of leases
QUICK = {"duration": 0.3, "renew": 0.2, "retry": 0.1}


@pytest.fixture(scope="module")
def api(cluster: plane.ControlPlane) -> Iterator[Api]:
    """As the account that may do everything but what is taken away, where there is a target of every kind."""
    owned.install(cluster.kubectl)
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl.apply([_lease()])
    build = owned.Builder(cluster.kubectl, NAMESPACE)
    for name in ("plain", "scaled", "alone"):
        build.workload(name=name)
    build.workload("StatefulSet", "set")
    build.hpa("plain", aim="plain")
    build.scaled_object(aim="scaled")
    service = build.inference_service()
    build.workload(name="llm-predictor", owner=service)
    build.hpa("llm-predictor", aim="llm-predictor", owner=service)
    build.other("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2}, selector="a=b", name="groups")
    build.other("argoproj.io/v1alpha1", "Rollout", {"replicas": 2}, selector="a=b", name="rolled")
    opened = Api(accounts.login(cluster, NAMESPACE, ACCOUNT, Purpose))
    yield opened
    opened.close()
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _lease() -> dict[str, Any]:
    """One that was given back."""
    place = {"namespace": NAMESPACE, "name": THERE}
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": place, "spec": spec}


@pytest.fixture(params=PERMISSIONS, ids=str)
def taken(request: pytest.FixtureRequest, cluster: plane.ControlPlane, api: Api) -> Permission:
    """What is taken away; the API server goes by that."""
    permission: Permission = request.param
    rules = [_less(rule, permission) for rule in permissions.rules(Purpose)]
    with cluster.api() as administrator:
        change = {"rules": [rule for rule in rules if rule["verbs"]]}
        client.RbacAuthorizationV1Api(administrator).patch_namespaced_role(ACCOUNT, NAMESPACE, change)
    waiting.until(
        lambda: (
            [one.permission for one in permissions.check_permissions(api, {NAMESPACE: PERMISSIONS})] == [permission]
        ),
        within_s=PATIENCE_S,
        what=f"nothing but {permission} is missing",
    )
    return permission


def _less(rule: dict[str, list[str]], permission: Permission) -> dict[str, list[str]]:
    is_it = (rule["apiGroups"], rule["resources"]) == ([permission.resource.group], [permission.resource.rule_name])
    return {**rule, "verbs": [verb for verb in rule["verbs"] if not (is_it and verb == permission.verb)]}


def looking(api: Api) -> str:
    """What is said where a look is refused, by a service that keeps itself up to date with watches."""
    cache = Cache(api)
    workloads = ClusterWorkloads(api, lister=cache)

    def refused() -> str:
        states = workloads.observe([*AIMED_AT.values()], now=clock.SystemClock().now())
        told = [one.detail for one in states.values() if isinstance(one, Refused) and one.reason == "Forbidden"]
        return told[0] if told else ""

    try:
        return waiting.until(refused, within_s=PATIENCE_S, what="a refused look", every_s=0.05)
    finally:
        cache.close()


def writing(api: Api, target: Target) -> str:
    """What is said where a write is refused."""
    workloads = ClusterWorkloads(api)
    now = clock.SystemClock().now()
    seen = workloads.observe([*AIMED_AT.values()], now=now)[target.key]
    assert isinstance(seen, Workload), seen
    assert seen.advice is None
    outcome = workloads.write(target, seen.standing + 1, seen=seen, now=now)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Forbidden"
    return outcome.detail


def telling(api: Api) -> str:
    """What is logged where an Event is refused."""
    workloads, now, target = ClusterWorkloads(api), clock.SystemClock().now(), AIMED_AT["horizontalpodautoscalers"]
    workloads.observe([target], now=now)
    with structlog.testing.capture_logs() as lines:
        workloads.announce(target, Decision(now, 2, 4, wanted=4, reason=Reason.RAISED_FOR_FORECAST, note=""))
    return str(lines)


def leading(api: Api, verb: str) -> str:
    """What is logged where a lease cannot be had."""
    terms = Terms(NAMESPACE, ABSENT if verb == "create" else THERE, "somebody", **QUICK)
    elector = Elector(api, terms, clock=clock.SystemClock())
    with structlog.testing.capture_logs() as lines:
        for _ in range(8):
            elector.step()
            threading.Event().wait(QUICK["retry"])
    assert not elector.holds()
    return str(lines)


def test_a_verb_that_is_gone_is_named_by_what_needs_it(api: Api, taken: Permission) -> None:
    if taken.verb in ("list", "watch"):
        said = looking(api)
    elif taken.purpose is Purpose.EVENTS:
        said = telling(api)
    elif taken.purpose is Purpose.LEAD:
        said = leading(api, taken.verb)
    else:
        said = writing(api, AIMED_AT[taken.resource.rule_name])
    group, resource = taken.resource.group, taken.resource.rule_name
    assert f'apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{taken.verb}"]' in said
