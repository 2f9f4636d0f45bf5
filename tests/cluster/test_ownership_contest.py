"""A foreign writer who sets the floor back every five seconds, in each of the ways such writers write."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import yaml

from models.policy.decision import Decision, Reason
from predictor import clock
from predictor.cluster import marks
from predictor.cluster.client import Api
from predictor.cluster.permissions import Purpose
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Workload
from predictor.targets import Target
from tests.cluster import accounts, manifests, owned, plane
from tests.cluster import audit as audit_log
from tests.cluster import kubectl as kubectl_tool
from tests.fakes import cluster_objects as objects
from tests.servers import waiting

EVERY = 5.0  # seconds between two writes of the foreign writer
WANTED = 6
HPAS = "horizontalpodautoscalers"
Revert = Callable[[], object]


@pytest.fixture
def build(cluster: plane.ControlPlane, kubectl: kubectl_tool.Kubectl, namespace: str) -> owned.Builder:
    owned.install(cluster.kubectl)
    builder = owned.Builder(kubectl, namespace)
    builder.workload()
    builder.hpa()
    return builder


@pytest.fixture
def api(cluster: plane.ControlPlane, namespace: str) -> Iterator[Api]:
    purposes = (Purpose.OBSERVE, Purpose.EVENTS, Purpose.WRITE_HPA, Purpose.WRITE_SCALE)
    opened = Api(accounts.login(cluster, namespace, "floorcast", purposes))
    yield opened
    opened.close()


@contextmanager
def writing(revert: Revert) -> Iterator[None]:
    """The foreign writer, until the end of the block."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(EVERY):
            revert()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def by_merge_patch(build: owned.Builder, manager: str) -> None:
    """As a cron job with kubectl, or another autoscaler."""
    patch = '{"spec": {"minReplicas": 2}}'
    place = (HPAS, "llm", f"--namespace={build.namespace}")
    build.kubectl("patch", *place, "--type=merge", f"--field-manager={manager}", f"--patch={patch}")


def by_server_side_apply(build: owned.Builder, manager: str) -> None:
    """As Argo CD and Flux: the whole manifest again, and whatever conflicts is overruled."""
    thing = manifests.hpa(manifests.Workload(build.namespace, "llm", replicas=2, max_replicas=owned.MAXIMUM))
    arguments = ("--server-side", "--force-conflicts", f"--field-manager={manager}", "--filename=-")
    build.kubectl("apply", *arguments, stdin=yaml.safe_dump(thing))


class Ticking:
    """What the loops do, once a second: look, write what is wanted, tell of it."""

    def __init__(self, api: Api, target: Target) -> None:
        self.workloads = ClusterWorkloads(api)
        self.target = target

    def tick(self) -> Workload:
        now = clock.SystemClock().now()
        state = self.workloads.observe([self.target], now=now)[self.target.key]
        assert isinstance(state, Workload), state
        if state.advice is None and state.standing != WANTED:
            self.workloads.write(self.target, WANTED, seen=state, now=now)
        told = Decision(now, state.standing, WANTED, wanted=WANTED, reason=Reason.RAISED_FOR_FORECAST, note="")
        self.workloads.announce(self.target, told)
        return state

    def until_it_steps_back(self) -> Workload:
        def stepped_back() -> Workload | None:
            state = self.tick()
            return state if state.advice is not None else None

        return waiting.until(stepped_back, within_s=120, what="a step back", every_s=1)


@pytest.mark.parametrize(
    ("revert", "manager"),
    [
        (by_merge_patch, "night-shift"),
        (by_server_side_apply, "argocd-controller"),
        (by_server_side_apply, "kustomize-controller"),
    ],
    ids=["merge patch", "server-side apply of Argo CD", "server-side apply of Flux"],
)
def test_a_writer_who_sets_the_floor_back_every_five_seconds_is_left_to_it_and_named(
    revert: Callable[[owned.Builder, str], None],
    manager: str,
    build: owned.Builder,
    api: Api,
    audit: audit_log.AuditLog,
) -> None:
    """As if somebody had said that the tool ignores the field, which it does not."""
    target = objects.target(name="llm", namespace=build.namespace, gitops_ignored=True)
    since, ticking = audit.mark(), Ticking(api, target)
    with writing(lambda: revert(build, manager)):
        state = ticking.until_it_steps_back()
        assert state.advice is not None
        assert (state.advice.reason, state.rival) == ("Contested", manager)
        for _ in range(10):
            ticking.tick()
            threading.Event().wait(1)
    user = f"system:serviceaccount:{build.namespace}:floorcast"
    written = [entry for entry in audit.writes(since=since, user=user, resource=HPAS) if entry.code == 200]
    assert len(written) <= 3
    assert [entry.body["spec"]["minReplicas"] for entry in written if "spec" in entry.body] == [WANTED, WANTED]
    described = build.kubectl("describe", HPAS, "llm", f"--namespace={build.namespace}")
    assert f"changed back by {manager}" in described
    assert f"{manager} changed the number back 2 times" in described
    annotations = build.get("HorizontalPodAutoscaler", "llm")["metadata"]["annotations"]
    assert [key for key in annotations if key.startswith("floorcast.dev/")] == [marks.SHADOWED]


def test_what_a_gitops_tool_applies_is_not_written_at_all_and_the_tool_is_named(
    build: owned.Builder, api: Api, audit: audit_log.AuditLog
) -> None:
    by_server_side_apply(build, "argocd-controller")
    since, target = audit.mark(), objects.target(name="llm", namespace=build.namespace)
    state = Ticking(api, target).tick()
    assert state.advice is not None
    assert state.advice.reason == "OwnedByGitOps"
    assert "set by argocd-controller" in state.advice.detail
    user = f"system:serviceaccount:{build.namespace}:floorcast"
    assert audit.writes(since=since, user=user, resource=HPAS) == []
