"""The condition on the object whose minimum is moved."""

import json
from typing import Any

import pytest

from models.policy.decision import Decision, Reason
from predictor.cluster import conditions, marks
from predictor.cluster.conditions import Condition, State
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Refused, Workload, Written
from predictor.targets import Mode
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, at, target

HPAS = "horizontalpodautoscalers"
PATCH = f"patch {HPAS}"


@pytest.fixture(autouse=True)
def _running(server: FakeApiServer) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    server.put(HPAS, objects.hpa(low=2, high=10))


def observed(workloads: ClusterWorkloads, *, after: float) -> Workload:
    state = workloads.observe([target()], now=NOW + after)["llm/vllm"]
    assert isinstance(state, Workload), state
    return state


def raised(workloads: ClusterWorkloads, replicas: int = 6, *, after: float = 0.0) -> Written | Refused:
    seen = observed(workloads, after=after)
    return workloads.write(target(), replicas, seen=seen, now=NOW + after)


def decided(workloads: ClusterWorkloads, reason: Reason, *, after: float, wanted: int | None = 6) -> None:
    """A decision that changes nothing, and the look of the next tick."""
    workloads.announce(target(), Decision(NOW + after, 6, 6, wanted, reason, "why"))
    observed(workloads, after=after + 10)


def condition(server: FakeApiServer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]["annotations"][marks.STATUS])
    return found


def test_a_write_says_that_the_floor_follows_the_plan(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    assert condition(server) == {
        "type": "FloorFollowsPlan",
        "status": "True",
        "reason": "Active",
        "lastTransitionTime": at(0),
        "floor": 6,
        "wanted": 6,
        "message": f"{at(0)} minReplicas 2 -> 6 by Floorcast; own minimum 2, at most 10",
    }


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        (Reason.HELD_UNKNOWN, "Held"),
        (Reason.HELD_ROLLOUT, "Held"),
        (Reason.DECAYED_ONE_STEP, "Held"),
        (Reason.CAPPED_AT_MAXIMUM, "Capped"),
    ],
)
def test_a_hold_is_told_though_nothing_is_written(
    server: FakeApiServer, workloads: ClusterWorkloads, reason: Reason, state: str
) -> None:
    raised(workloads)
    decided(workloads, reason, after=100, wanted=None)
    told = condition(server)
    assert (told["status"], told["reason"], told["lastTransitionTime"]) == ("False", state, at(110))
    assert (told["floor"], told["wanted"]) == (6, None)
    assert told["message"] == f"{at(100)} {reason}: stays 6: why"
    assert server.objects[HPAS, "llm", "vllm-hpa"]["spec"]["minReplicas"] == 6


def test_and_that_it_is_over(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    decided(workloads, Reason.HELD_UNKNOWN, after=100)
    decided(workloads, Reason.AT_PLAN, after=200)
    assert (condition(server)["reason"], condition(server)["lastTransitionTime"]) == ("Active", at(210))


def test_it_is_not_written_while_the_state_stays_the_same(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    for n, reason in enumerate((Reason.HELD_RECENT_NEED, Reason.AT_PLAN, Reason.HELD_STEP_PERIOD, Reason.HELD_LOADING)):
        decided(workloads, reason, after=100.0 * (n + 1))
    assert len(server.written(PATCH)) == 1
    for n, reason in enumerate((Reason.HELD_UNKNOWN, Reason.HELD_ROLLOUT, Reason.HELD_UNKNOWN)):
        decided(workloads, reason, after=1000.0 * (n + 1))
    assert len(server.written(PATCH)) == 2


def test_it_is_written_once_a_minute_at_most(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    for after in range(0, 300, 10):
        reason = Reason.HELD_UNKNOWN if after % 20 else Reason.AT_PLAN
        decided(workloads, reason, after=float(after))
    assert len(server.written(PATCH)) <= 1 + 5


def test_a_hold_within_that_minute_is_told_when_it_is_over(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    decided(workloads, Reason.HELD_UNKNOWN, after=5)
    assert condition(server)["reason"] == "Active"
    observed(workloads, after=59)
    observed(workloads, after=60)
    assert (condition(server)["reason"], condition(server)["lastTransitionTime"]) == ("Held", at(60))


def test_the_time_of_the_transition_outlives_further_writes(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    raised(workloads, 7, after=500)
    assert (condition(server)["floor"], condition(server)["lastTransitionTime"]) == (7, at(0))


def test_an_object_whose_number_was_never_moved_is_not_touched(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    observed(workloads, after=0)
    decided(workloads, Reason.HELD_UNKNOWN, after=100)
    assert server.asked(PATCH) == []


def test_a_refused_write_is_told(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    server.answer(PATCH, 422)
    assert isinstance(raised(workloads, 8, after=100), Refused)
    observed(workloads, after=110)
    told = condition(server)
    assert (told["status"], told["reason"], told["floor"], told["wanted"]) == ("False", "Refused", 6, 8)
    assert "Invalid: patch horizontalpodautoscalers vllm-hpa" in told["message"]


def test_a_refusal_that_passes_is_not(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    server.answer(PATCH, 409, times=3)
    assert isinstance(raised(workloads, 8, after=100), Refused)
    observed(workloads, after=110)
    assert condition(server)["reason"] == "Active"


def test_a_change_of_the_object_meanwhile_puts_it_off(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    server.before(PATCH, lambda: server.change(HPAS, "llm", "vllm-hpa", status={"currentReplicas": 4}))
    decided(workloads, Reason.HELD_UNKNOWN, after=100)
    assert condition(server)["reason"] == "Active"
    observed(workloads, after=120)
    assert condition(server)["reason"] == "Held"


def test_a_missing_permission_is_no_reason_to_ask_again_and_again(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    raised(workloads)
    server.denied.add(PATCH)
    decided(workloads, Reason.HELD_UNKNOWN, after=100)
    asked = len(server.asked(PATCH))
    for after in (200, 300):
        observed(workloads, after=after)
    assert len(server.asked(PATCH)) == asked


def test_it_goes_with_a_release(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    workloads.release(target())
    decided(workloads, Reason.HELD_UNKNOWN, after=100)
    assert (
        "annotations" not in server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]
        or not (server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]["annotations"])
    )


def test_shadow_mode_writes_none(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    raised(workloads)
    workloads.announce(target(), Decision(NOW + 100, 6, 6, 6, Reason.HELD_UNKNOWN, "why"))
    workloads.observe([target(mode=Mode.SHADOW)], now=NOW + 110)
    assert len(server.written(PATCH)) == 1


def test_a_workload_without_an_autoscaler_carries_none(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    """To annotate it would take a permission to change its image; its Events tell."""
    del server.objects[HPAS, "llm", "vllm-hpa"]
    raised(workloads)
    decided(workloads, Reason.HELD_UNKNOWN, after=100)
    assert {request.resource for request in server.requests if request.verb == "patch"} == {"deployments/scale"}


def test_a_pause_of_keda_is_told_for_as_long_as_it_lasts(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    del server.objects[HPAS, "llm", "vllm-hpa"]
    spec = {"scaleTargetRef": {"name": "vllm"}, "maxReplicaCount": 10, "minReplicaCount": 2}
    server.put("scaledobjects", {"metadata": objects.meta("so"), "spec": spec, "status": {}})
    raised(workloads)
    workloads.announce(target(), Decision(NOW, 2, 6, 6, Reason.RAISED_FOR_FORECAST, "why"))

    def reason(*, after: float) -> str:
        observed(workloads, after=after)
        annotations = server.objects["scaledobjects", "llm", "so"]["metadata"]["annotations"]
        return str(json.loads(annotations[marks.STATUS])["reason"])

    paused = {"autoscaling.keda.sh/paused": "true"}
    server.change("scaledobjects", "llm", "so", metadata={"annotations": paused})
    assert reason(after=100) == "Refused"
    server.change("scaledobjects", "llm", "so", metadata={"annotations": dict.fromkeys(paused)})
    assert reason(after=200) == "Active"


@pytest.mark.parametrize("before", ["", "2027-01-15T08:00:00Z a sentence", "[]", '{"reason": "Held"}'])
def test_what_stood_there_and_cannot_be_read_is_written_over(before: str) -> None:
    told = json.loads(Condition(State.HELD, "why", 3, None).written(before, now=NOW))
    assert told["lastTransitionTime"] == at(0)


def test_a_long_message_is_cut() -> None:
    told = json.loads(Condition(State.HELD, "x" * 5000, 3, None).written("", now=NOW))
    assert len(told["message"]) == conditions.LONGEST_MESSAGE
