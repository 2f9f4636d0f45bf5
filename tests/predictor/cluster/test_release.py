"""Giving the original minimum back."""

from typing import Any

import pytest

from predictor.cluster import errors, marks
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Refused, Workload, Written
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

HPAS = "horizontalpodautoscalers"
PATCH = f"patch {HPAS}"


def marked(original: object, last_written: object, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    left = {marks.ORIGINAL: str(original), marks.LAST_WRITTEN: str(last_written), "team": "llm"}
    return objects.hpa(annotations=left, **more)


def stored(server: FakeApiServer, name: str = "vllm-hpa") -> tuple[int, dict[str, str]]:
    hpa = server.objects[HPAS, "llm", name]
    return hpa["spec"]["minReplicas"], hpa["metadata"].get("annotations", {})


def test_the_original_minimum_comes_back_and_the_marks_go(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    server.put(HPAS, objects.hpa(low=2))
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Workload)
    workloads.write(target(), 6, seen=state, now=NOW)
    assert workloads.release(target()) == Written(2)
    assert stored(server) == (2, {})


def test_a_program_that_never_wrote_can_release_what_another_left(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    assert workloads.release(target()) == Written(3)
    assert stored(server) == (3, {"team": "llm"})


def test_a_release_may_be_repeated_and_then_writes_nothing(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    assert [workloads.release(target()) for _ in range(3)] == [Written(3)] * 3
    assert len(server.asked(PATCH)) == 1


def test_a_minimum_that_somebody_changed_stays_theirs(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=5))
    assert workloads.release(target()) == Written(5)
    assert stored(server) == (5, {"team": "llm"})


def test_marks_that_cannot_be_read_go_and_the_minimum_stays(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked("three", 8, low=8))
    assert workloads.release(target()) == Written(8)
    assert stored(server) == (8, {"team": "llm"})


def test_an_original_above_a_maximum_lowered_since_is_cut_to_it(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put(HPAS, marked(7, 4, low=4, high=5))
    assert workloads.release(target()) == Written(5)


def test_a_change_of_status_in_between_is_retried(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    server.before(PATCH, lambda: server.change(HPAS, "llm", "vllm-hpa", status={"currentReplicas": 4}))
    assert workloads.release(target()) == Written(3)


def test_a_minimum_changed_in_between_stays_theirs(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    server.before(PATCH, lambda: server.change(HPAS, "llm", "vllm-hpa", spec={"minReplicas": 6}))
    assert workloads.release(target()) == Written(6)
    assert stored(server) == (6, {"team": "llm"})


def test_three_conflicts_end_the_release(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    server.answer(PATCH, 409, times=9)
    outcome = workloads.release(target())
    assert isinstance(outcome, Refused)
    assert (outcome.reason, len(server.asked(PATCH))) == ("Conflict", 3)


def test_a_floor_written_again_at_once_is_noticed_when_reading_back(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    server.before(f"get {HPAS}", lambda: server.put(HPAS, marked(3, 8, low=8)))
    outcome = workloads.release(target())
    assert isinstance(outcome, Refused)
    assert outcome.reason == "NotReleased"
    assert "still running in control mode" in outcome.detail


def test_an_hpa_that_keda_took_over_is_still_cleaned(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8, **objects.owned_by("ScaledObject", "so")))
    assert workloads.release(target()) == Written(3)


def test_a_release_of_what_does_not_exist_is_refused(workloads: ClusterWorkloads) -> None:
    outcome = workloads.release(target())
    assert isinstance(outcome, Refused)
    assert outcome.reason == "NotFound"


def test_after_a_release_a_write_needs_a_new_look(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put("deployments", objects.deployment())
    server.put(HPAS, objects.hpa())
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Workload)
    workloads.release(target())
    outcome = workloads.write(target(), 6, seen=state, now=NOW)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "NotObserved"


def test_everything_marked_is_released_configured_or_not(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    server.put(HPAS, objects.hpa("untouched", low=4, aim="other"))
    elsewhere = marked(1, 5, low=5)
    elsewhere["metadata"] |= {"namespace": "staging", "uid": "uid-elsewhere"}
    server.put(HPAS, elsewhere)
    assert workloads.release_all() == {
        "HorizontalPodAutoscaler llm/vllm-hpa": Written(3),
        "HorizontalPodAutoscaler staging/vllm-hpa": Written(1),
    }
    assert workloads.release_all() == {}
    assert stored(server, "untouched") == (4, {})


def test_a_release_of_one_namespace_leaves_the_others(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8))
    assert workloads.release_all("staging") == {}
    assert workloads.release_all("llm") == {"HorizontalPodAutoscaler llm/vllm-hpa": Written(3)}


def test_one_that_cannot_be_released_does_not_stop_the_rest(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.put(HPAS, marked(3, 8, low=8, name="a"))
    server.put(HPAS, marked(3, 8, low=8, name="b"))
    server.answer(PATCH, 500, times=1)
    outcomes = workloads.release_all("llm")
    assert isinstance(outcomes["HorizontalPodAutoscaler llm/a"], Refused)
    assert outcomes["HorizontalPodAutoscaler llm/b"] == Written(3)


def test_what_cannot_be_listed_is_an_error(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    server.denied.add(f"list {HPAS}")
    with pytest.raises(errors.ForbiddenError, match="ClusterRole with"):
        workloads.release_all()
