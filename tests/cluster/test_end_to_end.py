"""The service against a real HPA, a real Prometheus and the real API server; only the GPUs are simulated.

A season of 200 s has gone on for an hour when the service starts. A pod is Ready 20 s after it is asked for.
"""

import dataclasses
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster import audit as audit_log
from tests.cluster import graded, history, load, manifests, serving
from tests.cluster.conftest import Serve
from tests.cluster.floorcast import Floorcast, Tuning
from tests.servers import waiting

PERIOD = 200.0
HOUR = 3600.0
WARM_UP = 20.0
CALM, BUSY = 4.0, 20.0  # requests a second; at 2 s each that is 8 and 40 in flight, for 2 and 7 replicas at 6 each
RISE, FALL = 80.0, 120.0  # seconds into the period: calm for long enough to come down by steps before the next rise
SEASON = load.Season(PERIOD, ((0.0, CALM), (RISE, CALM), (RISE + 1, BUSY), (FALL, BUSY), (FALL + 1, CALM)))
LEFT = {"floorcast.dev/released"}  # all that a release leaves: since when the object is let alone
LATE = 8.0  # seconds after the rise for HPA, scheduler and kubelet on two busy cores; a reaction takes WARM_UP
NEEDED = 6  # replicas that hold 40 in flight at 8 slots each, with one to spare
ENOUGH, MOST = 5, 9  # replicas Ready that show the surge's pods come; the most that 40 in flight need at 6, and scatter
QUEUE = 80  # requests that wait before the first pod of a surge is Ready; counted as demand they would take 10 replicas
GRADED = 7  # forecasts that are scored before they are compared
FEW = 3  # forecasts that a jump, or the first readings of pods that have just started, may decide otherwise
HISTORY_STEP = 5.0  # of the service's configuration
HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"


def now() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)


@contextmanager
def service(
    serve: Serve, namespace: str, tuning: Tuning | None = None
) -> Iterator[tuple[serving.Serving, Floorcast, graded.Listener]]:
    """Starts in a calm part of the season: two replicas carry it, and nothing queues before all is there."""
    workload = manifests.Workload(namespace, replicas=2, max_replicas=12)
    past = history.Past(namespace, until_s=now(), span_s=HOUR, every_s=5, replicas=8)
    served = serve(load.steady(CALM), workload, history=history.text(past, SEASON))
    served.await_ready(2)
    with Floorcast(served, tuning) as running, graded.Listener(running) as heard:
        running.await_answer("/readyz")
        waiting.until(lambda: not RISE - WARM_UP <= now() % PERIOD <= FALL, within_s=PERIOD, what="calm", every_s=0.5)
        served.load(SEASON)
        yield served, running, heard


def wait_until(at: float) -> None:
    waiting.until(lambda: now() >= at, within_s=2 * PERIOD, what="that moment", every_s=0.5)


def next_rise(after: float) -> float:
    """When the load next goes up, at least `after` seconds from now."""
    return next(t for n in itertools.count(int(now() // PERIOD)) if (t := n * PERIOD + RISE) >= now() + after)


def floors(entries: list[audit_log.Entry]) -> list[tuple[float, int]]:
    """(Unix time, minReplicas) of each accepted write of a floor."""
    return [(e.at.timestamp(), e.body["spec"]["minReplicas"]) for e in entries if e.code == 200 and e.body.get("spec")]


def minimum(served: serving.Serving) -> int:
    return int(served.hpa()["spec"]["minReplicas"])


def ready_at(served: serving.Serving, moment: float) -> int:
    """How many of the pods there are now were Ready at that time."""
    pods = served.plane.kubectl.json("get", "pods", f"--namespace={served.workload.namespace}")["items"]
    return sum(1 for pod in pods if (since := _ready_since(pod)) is not None and since <= moment)


def _ready_since(pod: dict[str, Any]) -> float | None:
    import datetime as dt  # noqa: PLC0415

    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return dt.datetime.fromisoformat(condition["lastTransitionTime"]).timestamp()
    return None


@pytest.mark.timeout(900, func_only=True)
def test_a_recurring_load_is_met_by_pods_that_are_ready_when_it_comes(serve: Serve, audit: audit_log.AuditLog) -> None:
    since = audit.mark()
    with service(serve, "recurring") as (served, floorcast, heard):
        rise = next_rise(after=WARM_UP + 40)
        wait_until(rise + LATE)
        ours = audit.writes(since=since, user=floorcast.user)
        raised = [at for at, floor in floors(ours) if floor >= NEEDED]
        assert raised, f"no floor of {NEEDED} was written: {floors(ours)}"
        assert raised[0] <= rise - WARM_UP, f"asked for {rise - raised[0]:.0f} s ahead, a pod takes {WARM_UP} s"
        assert ready_at(served, rise + LATE) >= NEEDED
        arrivals = f'sum(rate(vllm:time_to_first_token_seconds_count{{namespace="{served.workload.namespace}"}}[10s]))'
        waiting.until(
            lambda: (served.prometheus.value(arrivals) or 0) > (CALM + BUSY) / 2, within_s=30, what="the load there"
        )

        wait_until(rise + (FALL - RISE))
        waiting.until(lambda: minimum(served) < NEEDED, within_s=PERIOD, what=f"a floor below {NEEDED}", every_s=1)
        down = [floor for at, floor in floors(audit.writes(since=since, user=floorcast.user)) if at > rise]
        assert all(a - b <= max(1, a // 5) for a, b in itertools.pairwise(down)), down  # a replica or a fifth a step

        for entry in audit.writes(since=since, resource="deployments/scale"):
            assert entry.user == HPA
        assert audit.writes(since=since, resource="deployments/scale"), "the HPA never moved the Deployment"

        check_grades(floorcast, heard)
        floorcast.process.stop()
        assert "released" in floorcast.release()
        assert minimum(served) == served.workload.replicas
        assert {name for name in served.hpa()["metadata"].get("annotations", {}) if "floorcast" in name} <= LEFT
        check_conduct(audit.entries(since=since), floorcast.user)


def check_grades(floorcast: Floorcast, heard: graded.Listener) -> None:
    """The service's metrics on its own forecasts are what a back-test of the same span finds.

    The service's newest points are means of what it read within a step, the back-test's are what Prometheus knew at the
    beginning of it: half a step apart. Where a Poisson load comes close to a bound, as it always does to the median,
    that decides whether it is missed, so it is left open there.
    """
    waiting.until(
        lambda: all(graded.told(floorcast, signal).scored >= GRADED for signal in graded.SIGNALS),
        within_s=90,
        what=f"{GRADED} forecasts scored",
        every_s=1,
    )
    due = {signal: heard.due(signal, every=graded.every(floorcast), step=HISTORY_STEP) for signal in graded.SIGNALS}
    said = {signal: graded.told(floorcast, signal) for signal in graded.SIGNALS}
    rows = graded.replayed(floorcast, heard, step=HISTORY_STEP)
    for signal, ours in said.items():
        found = graded.found(rows, signal, scored=ours.scored)
        assert abs(ours.scored - due[signal]) <= 1, (signal, ours, due)  # a tick may come between the two looks
        assert found.scored == ours.scored, signal
        assert ours.missed.keys() == found.most.keys()
        assert found.apart(ours) <= FEW, (signal, ours, found)


def check_conduct(entries: list[audit_log.Entry], user: str) -> None:
    """Every write is marked as ours, and nothing outside the permissions was asked for."""
    ours = [entry for entry in entries if entry.user == user]
    assert ours
    assert {
        e.field_manager for e in ours if e.verb in audit_log.WRITES and e.resource != "selfsubjectaccessreviews"
    } <= {"floorcast"}
    assert [e for e in ours if e.code == 403] == []
    assert {e.resource for e in ours if e.verb in ("patch", "update")} <= {"horizontalpodautoscalers"}


@pytest.mark.timeout(600, func_only=True)
def test_shadow_mode_decides_and_writes_nothing(serve: Serve, audit: audit_log.AuditLog) -> None:
    since = audit.mark()
    with service(serve, "shadow", Tuning(mode="shadow")) as (served, floorcast, _):
        target = served.workload.deployment
        waiting.until(
            lambda: (floorcast.metric("floorcast_floor_decided_replicas", target=target) or 0) >= NEEDED,
            within_s=PERIOD + 30,
            what=f"a decision for {NEEDED} replicas",
            every_s=1,
        )
        assert minimum(served) == served.workload.replicas
        ours = [e for e in audit.entries(since=since) if e.user == floorcast.user]
        assert ours
        written = [e for e in ours if e.verb in audit_log.WRITES]
        assert {e.resource for e in written} <= {"selfsubjectaccessreviews"}  # a question, not a change
        check_conduct(audit.entries(since=since), floorcast.user)


@pytest.mark.timeout(600, func_only=True)
def test_no_floor_falls_while_prometheus_is_away_and_the_loops_go_on_when_it_returns(
    serve: Serve, audit: audit_log.AuditLog
) -> None:
    since = audit.mark()
    with service(serve, "outage", dataclasses.replace(Tuning(), hold_s=5.0)) as (served, floorcast, _):
        target = served.workload.deployment
        waiting.until(lambda: minimum(served) >= NEEDED, within_s=PERIOD + 30, what="a raised floor", every_s=1)
        served.prometheus.stop()
        served.load(load.steady(1.0))
        gone = now()
        waiting.until(
            lambda: floorcast.metric("floorcast_signal_unknown", target=target, signal="in_flight") == 1,
            within_s=30,
            what="the unknown signal in /metrics",
        )
        wait_until(gone + 60)
        standing = minimum(served)
        assert standing >= NEEDED
        away = [(at, floor) for at, floor in floors(audit.writes(since=since, user=floorcast.user)) if at > gone + 5]
        assert all(b >= a for (_, a), (_, b) in itertools.pairwise(away)), away
        floorcast.await_answer("/healthz", within_s=1)

        served.prometheus.start()
        waiting.until(
            lambda: floorcast.metric("floorcast_signal_unknown", target=target, signal="in_flight") is None,
            within_s=60,
            what="the signal known again",
        )
        waiting.until(lambda: minimum(served) < standing, within_s=120, what="a lower floor", every_s=1)


@pytest.mark.timeout(600, func_only=True)
def test_a_surge_that_nothing_announced_is_asked_for_once(serve: Serve, audit: audit_log.AuditLog) -> None:
    """While its pods warm up the queue grows, and the HPA on that queue asks for all it may; the floor does not.

    At the median, since that is the reaction's part: what a forecast doubts after a jump is another matter.
    """
    since = audit.mark()
    workload = manifests.Workload("surge", replicas=2, max_replicas=24)
    past = history.Past("surge", until_s=now(), span_s=HOUR, every_s=5, replicas=8)
    served = serve(load.steady(CALM), workload, history=history.text(past, load.steady(CALM)))
    served.await_ready(2)
    with Floorcast(served, Tuning(raise_quantile=0.5)) as floorcast:
        floorcast.await_answer("/readyz")
        wait_until(now() + 30)
        served.load(load.steady(BUSY))
        began = now()
        waiting.until(lambda: served.ready() >= ENOUGH, within_s=WARM_UP + 60, what="pods for the surge", every_s=0.25)
        helped = now()
        queued = served.prometheus.value('max_over_time(sum(vllm:num_requests_waiting{namespace="surge"})[30s:1s])')
        owner = served.replicas()
        wait_until(helped + 30)
        asked = [(at, floor) for at, floor in floors(audit.writes(since=since, user=floorcast.user)) if at > began]
        warming = [floor for at, floor in asked if at < helped]
        assert queued is not None
        assert queued > QUEUE
        assert NEEDED <= max(warming) <= MOST, warming
        assert warming == sorted(warming)
        assert max(floor for _, floor in asked) < owner, (asked, owner)
