"""Decisions as Events on the object that is written."""

import pytest
import structlog

from models.policy.decision import Decision, Reason
from predictor.cluster.client import Api
from predictor.cluster.workloads import ClusterWorkloads
from predictor.targets import Mode
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

CREATE = "create events"


@pytest.fixture(autouse=True)
def _observed(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    server.put("horizontalpodautoscalers", objects.hpa())
    workloads.observe([target()], now=NOW)


def decision(
    reason: Reason = Reason.RAISED_FOR_FORECAST, *, before: int = 2, replicas: int = 5, after: float = 0.0
) -> Decision:
    return Decision(NOW + after, before, replicas, wanted=replicas, reason=reason, note="in_flight needs 5")


def held(reason: Reason = Reason.HELD_UNKNOWN, *, after: float = 0.0) -> Decision:
    return decision(reason, replicas=2, after=after)


def test_an_event_names_the_object_the_reason_and_the_figures(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    workloads.announce(target(), decision())
    event = server.asked(CREATE)[0].body
    assert event["involvedObject"] == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "namespace": "llm",
        "name": "vllm-hpa",
        "uid": "uid-vllm-hpa",
    }
    assert (event["type"], event["reason"]) == ("Normal", "RaisedForForecast")
    assert event["message"] == "2 -> 5: in_flight needs 5"
    assert (event["firstTimestamp"], event["count"]) == ("2027-01-15T08:00:00Z", 1)


def test_nothing_is_sent_where_events_are_off(server: FakeApiServer, api: Api) -> None:
    silent = ClusterWorkloads(api, events=False)
    silent.observe([target()], now=NOW)
    silent.announce(target(), decision())
    assert server.asked(CREATE) == []


def test_without_an_hpa_it_is_about_the_workload(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment("plain"))
    workloads.observe([target("plain")], now=NOW)
    workloads.announce(target("plain"), decision())
    assert server.asked(CREATE)[0].body["involvedObject"]["kind"] == "Deployment"


def test_every_change_of_the_number_is_told(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    workloads.announce(target(), decision())
    workloads.announce(target(), decision(before=5, replicas=6, after=10))
    assert len(server.asked(CREATE)) == 2


def test_a_hold_that_comes_and_goes_is_told_once_in_ten_minutes(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    for after in (0, 30, 300, 599, 600, 700):
        workloads.announce(target(), held(after=after))
    events = [request.body for request in server.asked(CREATE)]
    assert [event["firstTimestamp"][-6:-1] for event in events] == ["00:00", "10:00"]
    assert events[0]["type"] == "Warning"
    assert events[0]["message"] == "stays 2: in_flight needs 5"


def test_what_is_merely_steady_is_not_told(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    for reason in (Reason.AT_PLAN, Reason.HELD_RECENT_NEED, Reason.HELD_LOADING):
        workloads.announce(target(), held(reason))
    assert server.asked(CREATE) == []


def test_a_missing_permission_is_reported_once_and_blocks_nothing(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.denied.add(CREATE)
    with structlog.testing.capture_logs() as logs:
        for after in (0, 10, 20):
            workloads.announce(target(), decision(after=after))
    assert len(server.asked(CREATE)) == 3
    assert [(line["log_level"], line["reason"]) for line in logs] == [("warning", "Forbidden")]
    assert 'resources: ["events"], verbs: ["create"]' in logs[0]["detail"]


def test_shadow_mode_leaves_no_events(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    workloads.announce(target(mode=Mode.SHADOW), decision())
    assert server.asked(CREATE) == []


def test_a_target_that_was_never_seen_has_nothing_to_tell_it_to(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    workloads.announce(target("unseen"), decision())
    assert server.asked(CREATE) == []


def test_pods_that_do_not_get_ready_are_told_of_with_the_scheduler_s_reason(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    lost = objects.pod("vllm-x", created=-400)
    told = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."
    lost["status"]["conditions"] = [objects.condition("PodScheduled", "False", reason="Unschedulable", message=told)]
    server.put("replicasets", objects.replica_set())
    server.put("pods", lost)
    for after in (0, 10, 20):
        workloads.observe([target()], now=NOW + after)
    workloads.observe([target(mode=Mode.SHADOW)], now=NOW + 9999)
    events = [call.body for call in server.asked(CREATE)]
    assert [(event["type"], event["reason"]) for event in events] == [("Warning", "ReplicasStuck")]
    assert events[0]["message"] == (
        "1 replicas are stuck and do not count as supply; vllm-x has not been ready for 400 s: Unschedulable: " + told
    )
