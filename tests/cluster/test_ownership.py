"""The ownership table on a real API server: the right object is written, the wrong ones never, and all is given back.

What makes the objects of a row in a real cluster (KEDA, KServe, LeaderWorkerSet, Argo) is not here: their types are.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from predictor import clock
from predictor.cluster import marks
from predictor.cluster.client import Api
from predictor.cluster.permissions import Purpose
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Kind, Target
from tests.cluster import accounts, owned, plane
from tests.cluster import audit as audit_log
from tests.cluster import kubectl as kubectl_tool
from tests.fakes import cluster_objects as objects

RULES = ({"apiGroups": ["example.com"], "resources": ["modelservers"], "verbs": ["list"]},)
SCALE_RULES = ({"apiGroups": ["example.com"], "resources": ["modelservers/scale"], "verbs": ["get", "patch"]},)
Build = Callable[[owned.Builder], object]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        name: of the row.
        build: makes its objects.
        owner: who owns the number.
        written: (resource as in the audit log, kind, path of the number) of the object that is written.
        target: what differs in the target.
    """

    name: str
    build: Build
    owner: Owner
    written: tuple[str, str, tuple[str, ...]]
    target: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_floor(self) -> bool:
        return self.owner is not Owner.SCALE


def kserve(build: owned.Builder) -> None:
    service = build.inference_service()
    build.workload(name="llm-predictor", owner=service)
    build.hpa("llm-predictor", aim="llm-predictor", owner=service)


def kserve_with_keda(build: owned.Builder) -> None:
    service = build.inference_service()
    build.workload(name="llm-predictor", owner=service)
    build.scaled_object(aim="llm-predictor", owner=service)


HPA = ("horizontalpodautoscalers", "HorizontalPodAutoscaler", ("spec", "minReplicas"))
SCALED = ("scaledobjects", "ScaledObject", ("spec", "minReplicaCount"))
SERVICE = ("inferenceservices", "InferenceService", ("spec", "predictor", "minReplicas"))
REPLICAS = ("spec", "replicas")
PREDICTOR = {"name": "llm-predictor"}
ROWS = (
    Row("plain HPA", lambda b: (b.workload(), b.hpa()), Owner.HPA, HPA),
    Row("KEDA", lambda b: (b.workload(), b.scaled_object()), Owner.KEDA, SCALED),
    Row("KServe, by its Deployment", kserve, Owner.KSERVE, SERVICE, PREDICTOR),
    Row("KServe, by its own name", kserve, Owner.KSERVE, SERVICE, {"kind": Kind.INFERENCE_SERVICE}),
    Row("KServe with KEDA", kserve_with_keda, Owner.KSERVE, SERVICE, PREDICTOR),
    Row("Deployment alone", lambda b: b.workload(), Owner.SCALE, ("deployments/scale", "Deployment", REPLICAS)),
    Row(
        "StatefulSet alone",
        lambda b: b.workload("StatefulSet"),
        Owner.SCALE,
        ("statefulsets/scale", "StatefulSet", REPLICAS),
        {"kind": Kind.STATEFUL_SET},
    ),
    Row(
        "LeaderWorkerSet alone",
        lambda b: b.other("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2}, selector="a=b"),
        Owner.SCALE,
        ("leaderworkersets/scale", "LeaderWorkerSet", REPLICAS),
        {"kind": Kind.LEADER_WORKER_SET},
    ),
    Row(
        "Argo Rollout alone",
        lambda b: b.other("argoproj.io/v1alpha1", "Rollout", {"replicas": 2}, selector="a=b"),
        Owner.SCALE,
        ("rollouts/scale", "Rollout", REPLICAS),
        {"kind": Kind.ROLLOUT},
    ),
    Row(
        "any other kind with a scale",
        lambda b: b.other("example.com/v1", "ModelServer", {"workers": {"count": 2}}, selector="a=b"),
        Owner.SCALE,
        ("modelservers/scale", "ModelServer", ("spec", "workers", "count")),
        {"kind": "ModelServer", "resource": "modelservers.v1.example.com"},
    ),
)


def by_another(build: owned.Builder) -> None:
    maker = build.other("example.com/v1", "ModelServer", {"workers": {"count": 2}})
    build.workload(owner=maker)
    build.hpa(owner=maker)


def by_another_without_hpa(build: owned.Builder) -> None:
    build.workload(owner=build.other("example.com/v1", "ModelServer", {"workers": {"count": 2}}))


def knative(build: owned.Builder) -> None:
    build.workload(owner=build.other("serving.knative.dev/v1", "Revision", {}))


def paused(build: owned.Builder) -> None:
    build.workload()
    build.scaled_object(**{"autoscaling.keda.sh/paused": "true"})


ADVICE = (
    ("an HPA made by another kind", by_another, "OwnedElsewhere", "set the minimum of the ModelServer by hand"),
    ("a Deployment made by another kind", by_another_without_hpa, "OwnedElsewhere", "made by ModelServer llm"),
    ("Knative", knative, "OwnedElsewhere", "makes a new revision"),
    ("a paused ScaledObject", paused, "Paused", "paused by autoscaling.keda.sh/paused"),
)


@pytest.fixture(scope="module", autouse=True)
def _kinds(cluster: plane.ControlPlane) -> None:
    owned.install(cluster.kubectl)


@pytest.fixture
def build(kubectl: kubectl_tool.Kubectl, namespace: str) -> owned.Builder:
    return owned.Builder(kubectl, namespace)


@pytest.fixture
def api(cluster: plane.ControlPlane, namespace: str) -> Iterator[Api]:
    """As an account that may do what the table says, and no more."""
    with_scale = [purpose for purpose in Purpose if purpose is not Purpose.LEAD]
    access = accounts.login(cluster, namespace, "floorcast", with_scale, more=(*RULES, *SCALE_RULES))
    opened = Api(access)
    yield opened
    opened.close()


def aim(namespace: str, **changes: object) -> Target:
    return objects.target(**{"name": "llm", "namespace": namespace, "warm_up": 20.0, **changes})


def observed(workloads: ClusterWorkloads, target: Target) -> Workload:
    state = workloads.observe([target], now=clock.SystemClock().now())[target.key]
    assert isinstance(state, Workload), state
    return state


def write(workloads: ClusterWorkloads, target: Target, replicas: int, *, at: float = 0.0) -> Written | Refused:
    """As the loops: where the object changes as fast as it is read, as one that was just made, the next tick writes."""
    outcome: Written | Refused = Refused("Conflict", "")
    for _ in range(5):
        outcome = workloads.write(target, replicas, seen=observed(workloads, target), now=at)
        if isinstance(outcome, Written) or outcome.reason != "Conflict":
            break
    return outcome


def value(thing: dict[str, Any], path: tuple[str, ...]) -> object:
    found: Any = thing
    for key in path:
        found = found[key]
    return found


def ours(audit: audit_log.AuditLog, since: int, namespace: str) -> set[str]:
    """What was written by our account, Events aside."""
    user = f"system:serviceaccount:{namespace}:floorcast"
    written = {entry.resource for entry in audit.writes(since=since, user=user)}
    return written - {"events", "selfsubjectaccessreviews"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_of_the_table(
    row: Row, build: owned.Builder, api: Api, audit: audit_log.AuditLog, namespace: str
) -> None:
    row.build(build)
    target = aim(namespace, **row.target)
    since = audit.mark()
    resource, kind, path = row.written

    workloads = ClusterWorkloads(api)
    seen = observed(workloads, target)
    assert (seen.owner, seen.standing, seen.base, seen.advice) == (row.owner, 2, 2, None)
    assert write(workloads, target, 4) == Written(4)
    assert value(build.get(kind, "llm"), path) == 4

    again = ClusterWorkloads(api)  # all that a process knew dies with it: kill -9 and a new start
    seen = observed(again, target)
    assert (seen.standing, seen.base, seen.adopted) == (4, 2, True)
    assert write(again, target, 5, at=100.0) == Written(5)

    left = 2 if row.is_floor else 5  # without an autoscaler the count stays as it is
    assert ClusterWorkloads(api).release(target) == Written(left)
    thing = build.get(kind, "llm")
    assert value(thing, path) == left
    assert not any("floorcast.dev" in key for key in thing["metadata"].get("annotations", {}))
    assert ours(audit, since, namespace) == {resource}


@pytest.mark.parametrize(("name", "make", "reason", "remedy"), ADVICE, ids=[row[0] for row in ADVICE])
def test_a_row_that_is_only_advised_on(  # noqa: PLR0913, PLR0917  (a row and the fixtures)
    name: str,  # noqa: ARG001  (the row's id)
    make: Build,
    reason: str,
    remedy: str,
    build: owned.Builder,
    api: Api,
    audit: audit_log.AuditLog,
    namespace: str,
) -> None:
    make(build)
    target, since, workloads = aim(namespace), audit.mark(), ClusterWorkloads(api)
    seen = observed(workloads, target)
    assert seen.advice is not None
    assert seen.advice.reason == reason
    assert remedy in seen.advice.detail
    assert workloads.write(target, 4, seen=seen, now=0.0) == seen.advice
    assert ours(audit, since, namespace) == set()


def test_two_autoscalers_on_one_workload_are_refused_by_name(
    build: owned.Builder, api: Api, audit: audit_log.AuditLog, namespace: str
) -> None:
    build.workload()
    build.scaled_object()
    build.hpa("another")
    since = audit.mark()
    state = ClusterWorkloads(api).observe([aim(namespace)], now=0.0)[f"{namespace}/llm"]
    assert isinstance(state, Refused)
    assert state.reason == "AmbiguousOwner"
    assert "HPA another and ScaledObject llm" in state.detail
    assert ours(audit, since, namespace) == set()


def test_a_minimum_above_the_maximum_never_reaches_the_server(build: owned.Builder, api: Api, namespace: str) -> None:
    build.workload()
    build.scaled_object()
    workloads = ClusterWorkloads(api)
    assert write(workloads, aim(namespace), 40) == Written(owned.MAXIMUM)


def test_a_running_floorcast_leaves_alone_what_was_released_beside_it(
    build: owned.Builder, api: Api, namespace: str
) -> None:
    build.workload()
    build.hpa()
    target, running = aim(namespace), ClusterWorkloads(api)
    assert write(running, target, 5) == Written(5)
    seen = observed(running, target)
    beside = ClusterWorkloads(api)
    assert beside.release(target, note="since now by floorcast release") == Written(2)

    late = running.write(target, 6, seen=seen, now=0.0)  # it looked before the release and decides after it
    assert isinstance(late, Refused)
    state = observed(running, target)
    assert state.advice is not None
    assert (state.standing, state.advice.reason) == (2, "Released")
    assert value(build.get("HorizontalPodAutoscaler", "llm"), HPA[2]) == 2

    assert beside.resume(target) is None
    assert write(running, target, 6) == Written(6)
    annotations = build.get("HorizontalPodAutoscaler", "llm")["metadata"]["annotations"]
    assert marks.RELEASED not in annotations


def test_what_is_no_target_any_more_is_found_by_its_annotations_and_given_back(
    build: owned.Builder, api: Api, namespace: str
) -> None:
    rows = {row.name: row for row in ROWS}
    for name in ("KEDA", "KServe, by its Deployment"):
        rows[name].build(build)
        target, workloads = aim(namespace, **rows[name].target), ClusterWorkloads(api)
        assert write(workloads, target, 4) == Written(4)
    assert ClusterWorkloads(api).release_all(namespace) == {
        f"ScaledObject {namespace}/llm": Written(2),
        f"InferenceService {namespace}/llm": Written(2),
    }
    assert ClusterWorkloads(api).release_all(namespace) == {}
