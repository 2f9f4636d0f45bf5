"""A foreign writer who sets the floor back every five seconds, in each of the ways such writers write.

The service runs as a process beside all of them at once, a target for each.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from predictor.cluster import marks
from predictor.cluster.permissions import Purpose
from tests.cluster import accounts, manifests, owned, plane
from tests.cluster import audit as audit_log
from tests.cluster import kubectl as kubectl_tool
from tests.cluster.floorcast import Service
from tests.cluster.needed import CONCURRENCY, Needed
from tests.servers import waiting

EVERY = 5.0  # seconds between two writes of the foreign writer
SETTLED = 12.0  # seconds without a write, two rounds of the slow loop, after which the plan moves no more
AFTERWARDS = 15.0  # seconds for which he goes on when the service has stood back
WANTED = 6
HPAS = "horizontalpodautoscalers"
PATIENCE_S = 120.0
PURPOSES = (Purpose.OBSERVE, Purpose.EVENTS, Purpose.WRITE_HPA, Purpose.WRITE_SCALE)
Revert = Callable[[owned.Builder, str, str], object]


def by_merge_patch(build: owned.Builder, name: str, manager: str) -> None:
    """As a cron job with kubectl, or another autoscaler."""
    patch = '{"spec": {"minReplicas": 2}}'
    place = (HPAS, name, f"--namespace={build.namespace}")
    build.kubectl("patch", *place, "--type=merge", f"--field-manager={manager}", f"--patch={patch}")


def by_server_side_apply(build: owned.Builder, name: str, manager: str) -> None:
    """As Argo CD and Flux: the whole manifest again, and whatever conflicts is overruled."""
    thing = manifests.hpa(manifests.Workload(build.namespace, name, replicas=2, max_replicas=owned.MAXIMUM))
    arguments = ("--server-side", "--force-conflicts", f"--field-manager={manager}", "--filename=-")
    build.kubectl("apply", *arguments, stdin=yaml.safe_dump(thing))


# Target -> who sets its floor back, and how. As if somebody had said that the tools ignore the field; they do not.
WRITERS: dict[str, tuple[str, Revert]] = {
    "patched": ("night-shift", by_merge_patch),
    "by-argo": ("argocd-controller", by_server_side_apply),
    "by-flux": ("kustomize-controller", by_server_side_apply),
}
APPLIED = "applied"  # by argocd-controller before the service starts, and nobody has said anything


@contextmanager
def writing(revert: Callable[[], object]) -> Iterator[None]:
    """The foreign writer, until the end of the block."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(EVERY):
            revert()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def build(kubectl: kubectl_tool.Kubectl, namespace: str) -> owned.Builder:
    builder = owned.Builder(kubectl, namespace)
    for name in (*WRITERS, APPLIED):
        builder.workload(name=name)
        builder.hpa(name, aim=name)
    by_server_side_apply(builder, APPLIED, "argocd-controller")
    return builder


@pytest.fixture
def service(cluster: plane.ControlPlane, build: owned.Builder, tmp_path: Path) -> Iterator[Service]:
    needed = Needed((build.namespace, name) for name in (*WRITERS, APPLIED))
    needed.replicas = WANTED
    access = accounts.login(cluster, build.namespace, "floorcast", PURPOSES)
    with needed.api, Service(tmp_path, settings(build.namespace, needed.api.url, access.kubeconfig)) as running:
        yield running


def settings(namespace: str, prometheus: str, kubeconfig: Path | None) -> dict[str, Any]:
    shared = {"namespace": namespace, "capacity": {"concurrency": CONCURRENCY}}
    return {
        "mode": "control",
        "source": {"prometheus": {"url": prometheus, "timeout": 2, "budget": 2}},
        "kubernetes": {"kubeconfig": str(kubeconfig), "owners": ["hpa", "scale"]},
        "loops": {"slow": 5, "fast": 1},
        "server": {"host": "127.0.0.1", "port": 0},
        "defaults": {"quantiles": {"raise": 0.5, "lower": 0.5}, "warm_up": 20},
        "targets": [
            *({**shared, "name": name, "model": name, "gitops_ignored": True} for name in WRITERS),
            {**shared, "name": APPLIED, "model": APPLIED},
        ],
    }


def contested(service: Service, namespace: str) -> set[str]:
    """Targets of which the metric names the one who sets them back."""
    return {
        name
        for name, (manager, _) in WRITERS.items()
        if service.metric("floorcast_floor_contested", target=f"{namespace}/{name}", manager=manager) == 1
        and service.metric("floorcast_workload_refused", target=f"{namespace}/{name}", reason="Contested") == 1
    }


def raised(build: owned.Builder) -> bool:
    hpas = build.kubectl.json("get", "hpa", f"--namespace={build.namespace}")["items"]
    minima = {one["metadata"]["name"]: int(one["spec"]["minReplicas"]) for one in hpas}
    return min(minima[name] for name in WRITERS) >= WANTED


def is_condition(patch: dict[str, Any]) -> bool:
    """Whether a patch says how the target fares and nothing else."""
    return "spec" not in patch and list(patch["metadata"].get("annotations", {})) == [marks.STATUS]


def told(build: owned.Builder, name: str) -> list[str]:
    """What the Events of a target's HPA say."""
    events = build.kubectl.json("get", "events", f"--namespace={build.namespace}")["items"]
    ours = [one for one in events if one["source"].get("component") == "floorcast"]
    return [one["message"] for one in ours if one["involvedObject"]["name"] == name]


def test_who_sets_the_floor_back_every_five_seconds_is_left_to_it_and_named(
    build: owned.Builder, audit: audit_log.AuditLog, service: Service
) -> None:
    user = f"system:serviceaccount:{build.namespace}:floorcast"
    waiting.until(lambda: raised(build), within_s=PATIENCE_S, what="every floor raised", every_s=1)

    def is_settled() -> bool:
        """A plan that knows no past yet may rise once more with the first forecast, on a busy machine late."""
        before = len(audit.writes(user=user, resource=HPAS))
        threading.Event().wait(SETTLED)
        return before == len(audit.writes(user=user, resource=HPAS))

    waiting.until(is_settled, within_s=PATIENCE_S, what="no floor moves")
    since = audit.mark()

    def written(name: str) -> list[audit_log.Entry]:
        """What was written; a condition, which changes when a signal stays away for a moment, is none of it."""
        entries = audit.writes(since=since, user=user, resource=HPAS)
        ours = [one for one in entries if (one.namespace, one.name, one.code) == (build.namespace, name, 200)]
        return [one for one in ours if not is_condition(one.body)]

    with ExitStack() as running:
        for name, (manager, revert) in WRITERS.items():
            running.enter_context(writing(lambda name=name, by=manager, revert=revert: revert(build, name, by)))
        waiting.until(
            lambda: contested(service, build.namespace) == set(WRITERS),
            within_s=PATIENCE_S,
            what="every target contested",
            every_s=1,
        )
        threading.Event().wait(AFTERWARDS)
        assert contested(service, build.namespace) == set(WRITERS)

    for name, (manager, _) in WRITERS.items():
        number, note = written(name)  # beside the first one, before anybody had set it back
        assert number.body["spec"]["minReplicas"] >= WANTED
        assert "spec" not in note.body
        (event,) = [message for message in told(build, name) if manager in message]
        assert f"{manager} changed the number back 2 times" in event
        hpa = build.get("HorizontalPodAutoscaler", name)
        marked = {key: text for key, text in hpa["metadata"]["annotations"].items() if key.startswith("floorcast.dev/")}
        assert list(marked) == [marks.SHADOWED]
        assert f"changed back by {manager}" in marked[marks.SHADOWED]
        assert hpa["spec"]["minReplicas"] == owned.MINIMUM

    # What a GitOps tool applies is not written at all, and the tool is named.
    assert [one for one in audit.writes(user=user, resource=HPAS) if one.name == APPLIED] == []
    assert (
        service.metric("floorcast_workload_refused", target=f"{build.namespace}/{APPLIED}", reason="OwnedByGitOps") == 1
    )
    assert any('"OwnedByGitOps"' in line and "set by argocd-controller" in line for line in service.log())
