"""Somebody else keeps changing the number back."""

import dataclasses
from collections.abc import Callable

import pytest

from models.policy.decision import Decision, Reason
from predictor.cluster import contest, marks
from predictor.cluster.contest import Contests, Look
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Refused, Workload, Written
from predictor.targets import Target
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target

HPAS = "horizontalpodautoscalers"
PATCH = f"patch {HPAS}"


@pytest.fixture(autouse=True)
def _running(server: FakeApiServer) -> None:
    server.put("deployments", objects.deployment(replicas=3))
    server.put(HPAS, objects.hpa(low=2))


def look(workloads: ClusterWorkloads, *, after: float = 0.0, aim: Target | None = None) -> Workload:
    state = workloads.observe([aim or target()], now=NOW + after)["llm/vllm"]
    assert isinstance(state, Workload), state
    return state


def tick(workloads: ClusterWorkloads, *, after: float, wanted: int = 6) -> Workload:
    """What the loops do: look, write what is wanted, and tell of it."""
    state = look(workloads, after=after)
    if state.advice is None and state.standing != wanted:
        assert workloads.write(target(), wanted, seen=state, now=NOW + after) == Written(wanted)
    told = Decision(NOW + after, state.standing, wanted, wanted=wanted, reason=Reason.RAISED_FOR_FORECAST, note="")
    workloads.announce(target(), told)
    return state


def revert(server: FakeApiServer, to: int = 2, by: str = "argocd-controller") -> None:
    owner = [{"manager": by, "time": objects.at(0), "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}]
    server.change(HPAS, "llm", "vllm-hpa", spec={"minReplicas": to}, metadata={"managedFields": owner})


def contested(server: FakeApiServer, workloads: ClusterWorkloads, *, by: str = "somebody") -> Workload:
    for after in (0, 10):
        tick(workloads, after=after)
        revert(server, by=by)
    return tick(workloads, after=20)


def test_the_second_change_back_makes_a_contest_and_names_the_manager(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    state = contested(server, workloads)
    assert state.advice is not None
    assert (state.advice.reason, state.rival) == ("Contested", "somebody")
    assert "somebody changed the number back 2 times" in state.advice.detail
    assert (state.standing, state.base) == (2, 2)


def test_a_contest_takes_three_writes_at_most(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    contested(server, workloads)
    for after in range(30, 600, 10):
        tick(workloads, after=after)
        revert(server)
    patches = server.written(PATCH)
    assert [patch.body.get("spec") for patch in patches] == [{"minReplicas": 6}, {"minReplicas": 6}, None]


def test_a_contest_is_told_on_the_object_and_by_one_event(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    contested(server, workloads)
    tick(workloads, after=30)
    annotations = server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]["annotations"]
    assert annotations == {marks.SHADOWED: "changed back by somebody until=2027-01-15T09:00:20Z"}
    events = [request.body for request in server.asked("create events") if request.body["reason"] == "Contested"]
    assert [event["type"] for event in events] == ["Warning"]
    assert "somebody changed the number back" in events[0]["message"]


def test_a_new_process_keeps_out_of_the_contest_and_knows_the_rival(
    server: FakeApiServer, workloads: ClusterWorkloads, api: object
) -> None:
    contested(server, workloads)
    state = look(ClusterWorkloads(api), after=60)  # type: ignore[arg-type]  # the fixture's own
    assert state.advice is not None
    assert (state.advice.reason, state.rival) == ("Contested", "somebody")


def test_an_hour_later_it_is_tried_again(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    contested(server, workloads)
    assert look(workloads, after=20 + contest.STAND_BACK - 1).advice is not None
    assert tick(workloads, after=20 + contest.STAND_BACK).advice is None
    assert server.objects[HPAS, "llm", "vllm-hpa"]["spec"]["minReplicas"] == 6
    assert marks.SHADOWED not in server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]["annotations"]


def test_whoever_removes_the_note_ends_it(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    contested(server, workloads)
    assert workloads.resume(target()) is None
    assert look(workloads, after=40).advice is None


def test_one_change_is_a_persons_right_and_becomes_the_base(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    tick(workloads, after=0)
    revert(server, to=4, by="kubectl-edit")
    state = look(workloads, after=10)
    assert (state.standing, state.base, state.advice) == (4, 4, None)


def test_two_changes_far_apart_are_no_contest(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    tick(workloads, after=0)
    revert(server, by="kubectl-edit")
    tick(workloads, after=10)
    tick(workloads, after=contest.WINDOW)
    revert(server, by="kubectl-edit")
    assert look(workloads, after=contest.WINDOW + 11).advice is None


def test_what_is_merely_read_late_is_no_change(server: FakeApiServer, api: object) -> None:
    """A cache may show the number of before our write; it is confirmed at the API server before it counts."""

    class Late:
        def __init__(self) -> None:
            self.frozen: list[dict[str, object]] | None = None

        def list_all(self, resource: object, **asked: object) -> list[dict[str, object]]:
            found: list[dict[str, object]] = api.list_all(resource, **asked)  # type: ignore[attr-defined]
            if getattr(resource, "plural", "") != HPAS:
                return found
            self.frozen = self.frozen or found
            return self.frozen

    workloads = ClusterWorkloads(api, lister=Late())  # type: ignore[arg-type]
    for after in (0, 10, 20):
        state = look(workloads, after=after)
        workloads.write(target(), 6, seen=state, now=NOW + after)
        assert state.advice is None
    assert server.objects[HPAS, "llm", "vllm-hpa"]["spec"]["minReplicas"] == 6


def test_a_number_that_a_gitops_tool_set_is_not_even_tried(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    for manager in ("argocd-controller", "kustomize-controller", "helm-controller"):
        revert(server, by=manager)
        state = look(workloads)
        assert state.advice is not None
        assert state.advice.reason == "OwnedByGitOps"
        assert f"set by {manager}" in state.advice.detail
    trusted = look(workloads, aim=dataclasses.replace(target(), gitops_ignored=True))
    assert trusted.advice is None


def test_a_tool_that_shares_the_field_with_somebody_else_would_set_it_too(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    """Who applies the same value owns it as well."""
    revert(server, by="argocd-controller")
    entries = server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]["managedFields"]
    shared = [*entries, {**entries[0], "manager": "zoe", "time": objects.at(60)}]
    server.change(HPAS, "llm", "vllm-hpa", metadata={"managedFields": shared})
    state = look(workloads)
    assert state.advice is not None
    assert "set by argocd-controller" in state.advice.detail


def test_scaled_counts_are_contested_too_and_no_note_is_left_on_a_workload(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    del server.objects[HPAS, "llm", "vllm-hpa"]
    for after in (0, 10):
        tick(workloads, after=after)
        server.change("deployments", "llm", "vllm", spec={"replicas": 3})
    state = tick(workloads, after=20)
    assert state.advice is not None
    assert state.advice.reason == "Contested"
    for after in range(30, 600, 10):  # with no note to be seen, it is in force all the same
        assert tick(workloads, after=after).advice is not None
    assert [request.resource for request in server.requests if request.verb == "patch"] == ["deployments/scale"] * 3


def told_of_five() -> Contests:
    contests = Contests()
    contests.wrote("a", "u", 5)
    return contests


def reads(number: int, by: str = "", *, noted: bool = False) -> Callable[[], Look]:
    return lambda: Look("u", number, noted=noted, manager=by)


def test_a_look_while_we_write_takes_our_own_number_for_nobody_elses() -> None:
    """The other loop sees the number that was sent, and nobody has said yet that it arrived."""
    contests = told_of_five()
    with contests.writing("a", "u"):
        contests.look("a", Look("u", 6), now=NOW, confirm=reads(6))
        contests.wrote("a", "u", 6)
    assert contests.rival("a") == ""
    contests.look("a", Look("u", 2), now=NOW, confirm=reads(2))
    assert contests.rival("a") == contest.NOBODY


def test_a_number_read_before_a_write_of_ours_and_compared_after_it_is_no_change_back() -> None:
    contests = told_of_five()

    def late() -> Look:
        with contests.writing("a", "u"):
            contests.wrote("a", "u", 6)
        return Look("u", 5)

    contests.look("a", Look("u", 4), now=NOW, confirm=late)
    assert contests.rival("a") == ""


def test_one_change_that_both_loops_see_at_once_is_one() -> None:
    """Else a single change by a person would have Floorcast stand back for an hour."""
    contests = told_of_five()

    def beside_the_other_loop() -> Look:
        contests.look("a", Look("u", 2), now=NOW, confirm=reads(2, "zoe"))
        return Look("u", 2, manager="zoe")

    assert contests.look("a", Look("u", 2), now=NOW, confirm=beside_the_other_loop) is None
    contests.wrote("a", "u", 5)
    assert contests.look("a", Look("u", 2), now=NOW + 1, confirm=reads(2, "zoe")) is not None  # the second


@pytest.mark.parametrize("manager", ["floorcast", "floorcast-original-2"])
def test_what_another_floorcast_wrote_while_it_led_is_no_change_back(manager: str) -> None:
    contests = told_of_five()
    contests.look("a", Look("u", 7), now=NOW, confirm=reads(7, manager))
    assert contests.rival("a") == ""

    def unasked() -> Look:
        raise AssertionError("it is known by now")

    contests.look("a", Look("u", 7), now=NOW, confirm=unasked)


def test_a_note_that_is_merely_not_seen_yet_is_not_taken_away() -> None:
    contests = told_of_five()
    contests.look("a", Look("u", 2), now=NOW, confirm=reads(2, "zoe"))
    contests.wrote("a", "u", 5)
    assert contests.look("a", Look("u", 2), now=NOW + 9, confirm=reads(2, "zoe")) is not None
    contests.told("a", noted=True)
    assert contests.look("a", Look("u", 2), now=NOW + 10, confirm=reads(2, noted=True)) is not None
    assert contests.look("a", Look("u", 2), now=NOW + 11, confirm=reads(2)) is None


def test_a_note_that_could_not_be_left_is_left_later_and_the_contest_stands(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    for after in (0, 10):
        tick(workloads, after=after)
        revert(server)
    server.answer(PATCH, 429)
    for after in (20, 30, 40):
        assert tick(workloads, after=after).advice is not None
        revert(server)
    assert marks.SHADOWED in server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]["annotations"]
    refused_first = [None, None]
    assert [patch.body.get("spec") for patch in server.written(PATCH)] == [{"minReplicas": 6}] * 2 + refused_first


def test_a_release_beside_the_service_is_no_change_back(workloads: ClusterWorkloads) -> None:
    tick(workloads, after=0)
    workloads.release(target(), note="since now by floorcast release")
    state = look(workloads, after=10)
    assert state.advice is not None
    assert (state.advice.reason, state.standing) == ("Released", 2)
    outcome = workloads.write(target(), 6, seen=state, now=NOW + 10)
    assert isinstance(outcome, Refused)
    assert workloads.resume(target()) is None
    assert look(workloads, after=20).advice is None


def test_a_note_with_an_end_counts_until_then(server: FakeApiServer, workloads: ClusterWorkloads) -> None:
    workloads.release(target(), note=marks.paused("by floorcast release", until=NOW + 600))
    assert look(workloads, after=599).advice is not None
    assert look(workloads, after=600).advice is None
    assert server.objects[HPAS, "llm", "vllm-hpa"]["metadata"]["annotations"][marks.RELEASED].endswith("08:10:00Z")
