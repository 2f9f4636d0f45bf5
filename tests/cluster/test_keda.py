"""The floor under a real KEDA: its operator, its metrics adapter, its HPA; only the GPUs are simulated.

KEDA aims at four waiting requests a replica, by a trigger that asks the Prometheus which Floorcast reads.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import audit as audit_log
from tests.cluster import keda as keda_rig
from tests.cluster import load, manifests, serving
from tests.cluster.conftest import Serve
from tests.cluster.floorcast import Floorcast, Tuning
from tests.servers import waiting

CALM, BUSY = load.steady(4.0), load.steady(20.0)  # 8 and 40 in flight: two replicas, and seven at six each
LEFT = {"floorcast.dev/released"}  # all that a release leaves: since when the object is let alone
NEEDED = 6
HPA_CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
PAUSED = "autoscaling.keda.sh/paused"
TUNING = Tuning(warm_up_s=8.0)


@contextmanager
def scaled(serve: Serve, namespace: str) -> Iterator[serving.Serving]:
    """Two replicas under a calm load, scaled by KEDA."""
    workload = manifests.Workload(
        namespace, replicas=2, max_replicas=12, autoscaler="keda", image_delay_s=1.0, model_delay_s=2.0
    )
    served = serve(CALM, workload)
    served.await_ready(2, within_s=120)
    served.await_scrape(2)
    waiting.until(lambda: hpa(served), within_s=60, what="the HPA that KEDA makes")
    yield served


def scaled_object(served: serving.Serving) -> dict[str, Any]:
    return served.plane.kubectl.json("get", "scaledobject", "llm", f"--namespace={served.workload.namespace}")


def floor(served: serving.Serving) -> int:
    return int(scaled_object(served)["spec"]["minReplicaCount"])


def hpa(served: serving.Serving) -> dict[str, Any] | None:
    listed = served.plane.kubectl.json("get", "hpa", f"--namespace={served.workload.namespace}")["items"]
    return next((one for one in listed if one["metadata"]["name"] == "keda-hpa-llm"), None)


def hpa_minimum(served: serving.Serving) -> int:
    found = hpa(served)
    return int(found["spec"]["minReplicas"]) if found else 0


def change(served: serving.Serving, patch: dict[str, Any]) -> None:
    place = ("llm", f"--namespace={served.workload.namespace}", "--type=merge")
    served.plane.kubectl("patch", "scaledobject", *place, f"--patch={json.dumps(patch)}")


def triggers(served: serving.Serving, address: str) -> dict[str, Any]:
    (trigger,) = scaled_object(served)["spec"]["triggers"]
    return {"spec": {"triggers": [{**trigger, "metadata": {**trigger["metadata"], "serverAddress": address}}]}}


def floors(entries: list[audit_log.Entry]) -> list[int]:
    """The minReplicaCount of each accepted write."""
    spec = [entry.body.get("spec") or {} for entry in entries if entry.code == 200 and entry.verb == "patch"]
    return [one["minReplicaCount"] for one in spec if "minReplicaCount" in one]


def stands(seconds: float, served: serving.Serving, expected: int) -> None:
    """The floor is not lowered for a while."""
    with pytest.raises(TimeoutError):
        waiting.until(lambda: floor(served) < expected, within_s=seconds, what="a lower floor", every_s=1)


@pytest.mark.timeout(600, func_only=True)
def test_the_floor_goes_through_the_scaled_object_and_restarts_no_loop_beyond_its_own_changes(
    keda: keda_rig.Keda, serve: Serve, audit: audit_log.AuditLog
) -> None:
    since = audit.mark()
    with scaled(serve, "keda-floor") as served, Floorcast(served, TUNING) as floorcast:
        started = keda.loop_starts("keda-floor", "llm")
        served.load(BUSY)
        waiting.until(lambda: floor(served) >= NEEDED, within_s=120, what="a raised floor", every_s=0.5)
        waiting.until(lambda: hpa_minimum(served) >= NEEDED, within_s=30, what="KEDA raises its HPA")
        served.await_ready(NEEDED, within_s=90)

        # A trigger that fails: nothing is lowered, though the load is gone.
        address = served.prometheus.url
        change(served, triggers(served, "http://127.0.0.1:9"))
        waiting.until(lambda: _failures(keda) > 0, within_s=60, what="KEDA's trigger fails", every_s=1)
        broken = audit.mark()
        served.load(CALM)
        stands(TUNING.hold_s + 3 * TUNING.slow_s + 15, served, floor(served))
        meanwhile = floors(audit.writes(since=broken, user=floorcast.user, resource="scaledobjects"))
        assert meanwhile == sorted(meanwhile)
        standing = floor(served)
        change(served, triggers(served, address))
        waiting.until(lambda: floor(served) < standing, within_s=180, what="a lower floor once it works", every_s=1)

        floorcast.process.stop()
        assert "released" in floorcast.release()
        assert floor(served) == served.workload.replicas
        assert {
            name for name in scaled_object(served)["metadata"].get("annotations", {}) if "floorcast" in name
        } <= LEFT

        waiting.until(lambda: hpa_minimum(served) == 2, within_s=30, what="the HPA has the original minimum")
        ours = audit.writes(since=since, user=floorcast.user, resource="scaledobjects")
        changes = len(floors(ours)) + 2  # and the two of the trigger
        assert 1 <= keda.loop_starts("keda-floor", "llm") - started <= changes
        check_conduct(audit.entries(since=since), floorcast.user)


def _failures(keda: keda_rig.Keda) -> float:
    return keda.metric("keda_scaler_detail_errors_total", namespace="keda-floor") or 0.0


def check_conduct(entries: list[audit_log.Entry], user: str) -> None:
    """We write the ScaledObject and nothing below it; nothing was refused for want of a permission."""
    writes = [entry for entry in entries if entry.verb in audit_log.WRITES]
    assert {e.resource for e in writes if e.user == user and e.verb != "create"} == {"scaledobjects"}
    assert {e.field_manager for e in writes if e.user == user and e.verb == "patch"} == {"floorcast"}
    hpa = ("keda-floor", "horizontalpodautoscalers", "keda-hpa-llm")
    made = [e for e in writes if (e.namespace, e.resource, e.name) == hpa]
    assert {e.user for e in made} == {"keda"}
    assert [e for e in entries if e.user == user and e.code == 403] == []


@pytest.mark.timeout(600, func_only=True)
def test_a_paused_scaled_object_is_left_alone_and_taken_up_when_the_pause_ends(
    keda: keda_rig.Keda, serve: Serve, audit: audit_log.AuditLog
) -> None:
    with scaled(serve, "keda-paused") as served:
        change(served, {"metadata": {"annotations": {PAUSED: "true"}}})
        waiting.until(lambda: hpa(served) is None, within_s=60, what="KEDA removes its HPA")
        assert keda.metric("keda_scaled_object_paused", namespace="keda-paused") == 1
        since = audit.mark()
        with Floorcast(served, TUNING) as floorcast:
            served.load(BUSY)
            waiting.until(
                lambda: any(f"paused by {PAUSED}" in line for line in floorcast.log()),
                within_s=90,
                what="the pause in the log",
                every_s=1,
            )
            stands(15, served, 2)
            assert floors(audit.writes(since=since, user=floorcast.user)) == []
            assert served.replicas() == 2

            change(served, {"metadata": {"annotations": {PAUSED: None}}})
            waiting.until(lambda: floor(served) >= NEEDED, within_s=120, what="a raised floor", every_s=1)
            waiting.until(lambda: hpa_minimum(served) >= NEEDED, within_s=60, what="the HPA is back, raised")


def is_idle(served: serving.Serving) -> bool:
    """Nothing runs for a while: what the last pods left waiting makes KEDA start two more for a moment."""
    return not any(served.replicas() or threading.Event().wait(1) for _ in range(10))


@pytest.mark.timeout(600, func_only=True)
def test_what_keda_has_brought_to_its_idle_count_of_zero_stays_there(
    keda: keda_rig.Keda, serve: Serve, audit: audit_log.AuditLog
) -> None:
    assert keda.metric("keda_build_info", version="2.21.0") == 1
    with scaled(serve, "keda-idle") as served:
        change(served, {"spec": {"idleReplicaCount": 0}})
        waiting.until(lambda: is_idle(served), within_s=120, what="KEDA scales to its idle count")
        since = audit.mark()
        with Floorcast(served, TUNING) as floorcast:
            stands(20, served, 2)
            assert served.replicas() == 0
            assert floors(audit.writes(since=since, user=floorcast.user)) == []
            scalers = audit.writes(since=since, resource="deployments/scale")
            assert {entry.user for entry in scalers} <= {"keda", HPA_CONTROLLER}
            ours = [entry for entry in audit.entries(since=since) if entry.user == floorcast.user]
            assert ours
            assert {entry.code for entry in ours} <= {200, 201}
