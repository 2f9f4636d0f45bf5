"""Two replicas and one lease, walked by the clock: at most one of them may write at any moment."""

import dataclasses
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from predictor.cluster import errors, lease
from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.cluster.lease import Elector, Terms
from predictor.cluster.resources import HPAS, LEASES
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.world import FakeClock

TERMS = Terms("llm", "floorcast", "a")  # 15 s, 10 s, 2 s
LEASE = ("leases", "llm", "floorcast")


class Passed:
    """A replica's own clock: seconds since it booted, which says nothing to the other one."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


class Replica:
    """An elector whose process can be stopped."""

    def __init__(self, api: Api, identity: str, *, booted: float) -> None:
        self.clock = Passed(booted)
        terms = dataclasses.replace(TERMS, identity=identity)
        self.elector = Elector(api, terms, clock=FakeClock(), passed=self.clock)
        self.due = booted
        self.stopped = False

    def pass_time(self, seconds: float) -> None:
        """Time goes on; a process that runs steps when it is due."""
        self.clock.seconds += seconds
        if not self.stopped and self.clock.seconds >= self.due:
            self.elector.step()
            self.due = self.clock.seconds + self.elector.pause()

    @property
    def holds(self) -> bool:
        return self.elector.holds()


@pytest.fixture
def pair(api: Api) -> tuple[Replica, Replica]:
    return Replica(api, "a", booted=1000.0), Replica(api, "b", booted=77.0)


def walk(pair: tuple[Replica, ...], seconds: float, *, step: float = 0.5) -> list[str]:
    """Who may write, moment by moment; never two."""
    leaders = []
    for _ in range(round(seconds / step)):
        for replica in pair:
            replica.pass_time(step)
            held = [name for name, one in zip("ab", pair, strict=False) if one.holds]
            assert len(held) <= 1
            leaders.append("".join(held))
    return leaders


def spec(server: FakeApiServer) -> dict[str, object]:
    found: dict[str, object] = server.objects[LEASE]["spec"]
    return found


def test_one_of_two_leads_and_stays_the_leader(pair: tuple[Replica, Replica], server: FakeApiServer) -> None:
    walk(pair, 20)
    leaders = walk(pair, 120)
    assert set(leaders) == {leaders[0]}
    assert leaders[0] in ("a", "b")
    assert spec(server)["holderIdentity"] == leaders[0]
    assert spec(server)["leaseDurationSeconds"] == 15
    assert spec(server)["leaseTransitions"] == 1


def test_the_first_lease_waits_as_long_as_a_deleted_ones_holder_might_go_on(
    pair: tuple[Replica, Replica], server: FakeApiServer
) -> None:
    assert set(walk(pair, 14)) == {""}
    assert LEASE not in server.objects
    assert walk(pair, 3)[-1] in ("a", "b")


def lead(pair: tuple[Replica, Replica]) -> tuple[Replica, Replica]:
    """(leader, standby)."""
    name = walk(pair, 20)[-1]
    first, second = pair
    return (first, second) if name == "a" else (second, first)


def test_the_standby_takes_over_within_the_lease_of_a_leader_that_died(pair: tuple[Replica, Replica]) -> None:
    leader, standby = lead(pair)
    leader.stopped = True
    walk(pair, TERMS.duration + 2 * TERMS.retry)
    assert standby.holds
    assert not leader.holds


def test_a_leader_that_was_stopped_past_its_lease_finds_that_it_may_not_write_before_it_has_looked(
    pair: tuple[Replica, Replica],
) -> None:
    leader, standby = lead(pair)
    leader.stopped = True
    walk(pair, 60)
    leader.stopped = False
    assert not leader.holds  # nothing was asked of the API server since
    walk(pair, 60)
    assert standby.holds


def test_a_leader_that_was_stopped_for_a_moment_goes_on(pair: tuple[Replica, Replica]) -> None:
    leader, _ = lead(pair)
    leader.stopped = True
    walk(pair, 12)
    assert not leader.holds  # the renewal is overdue: it may not write, though nobody else may either
    leader.stopped = False
    walk(pair, 4)
    assert leader.holds


def test_a_leader_that_cannot_reach_the_api_server_stops_before_its_lease_can_be_taken(
    pair: tuple[Replica, Replica], server: FakeApiServer
) -> None:
    leader, standby = lead(pair)
    server.answer("update leases", 503, times=1_000_000)
    held = walk((leader, standby), 20)
    assert held[-1] == ""
    gone = held.index("") / 4  # two looks a step of half a second
    assert TERMS.renew - TERMS.retry <= gone <= TERMS.renew
    server.answer("update leases", 200, times=0)
    assert walk(pair, 20)[-1] != ""


def test_a_lease_that_is_given_back_is_taken_at_the_next_look(
    pair: tuple[Replica, Replica], server: FakeApiServer
) -> None:
    leader, standby = lead(pair)
    leader.stopped = True
    leader.elector.resign()
    assert not leader.holds
    assert spec(server)["holderIdentity"] == ""
    walk(pair, TERMS.retry + 0.5)
    assert standby.holds


def test_who_has_resigned_takes_part_no_more(pair: tuple[Replica, Replica]) -> None:
    leader, standby = lead(pair)
    leader.elector.resign()
    standby.stopped = True
    walk(pair, 60)
    assert not leader.holds


def test_a_standby_that_stops_leaves_the_lease_alone(pair: tuple[Replica, Replica], server: FakeApiServer) -> None:
    leader, standby = lead(pair)
    standby.elector.resign()
    walk(pair, 20)
    assert leader.holds
    assert spec(server)["holderIdentity"] != ""


def test_a_deleted_lease_makes_nobody_a_second_writer(pair: tuple[Replica, Replica], server: FakeApiServer) -> None:
    leader, _ = lead(pair)
    leader.stopped = True  # does not notice
    server.delete(*LEASE)
    walk(pair, 60)


def test_the_lease_of_another_configuration_is_respected_for_as_long_as_it_says(
    pair: tuple[Replica, Replica], server: FakeApiServer
) -> None:
    standing = {"holderIdentity": "c", "leaseDurationSeconds": 60, "leaseTransitions": 4}
    server.put("leases", {"metadata": {"namespace": "llm", "name": "floorcast"}, "spec": standing})
    assert set(walk(pair, 59)) == {""}
    assert walk(pair, 4)[-1] in ("a", "b")
    assert spec(server)["leaseTransitions"] == 5


def test_a_renewal_whose_answer_was_lost_does_not_cost_the_lease_for_long(
    pair: tuple[Replica, Replica], server: FakeApiServer
) -> None:
    leader, _ = lead(pair)
    server.put("leases", server.objects[LEASE])  # as if the last renewal had been taken and its answer not arrived
    walk(pair, 4 * TERMS.retry)
    assert leader.holds


def test_a_missing_permission_names_the_verb_and_makes_no_leader(
    pair: tuple[Replica, Replica], server: FakeApiServer
) -> None:
    server.denied |= {"get leases"}
    with capture_logs() as said:
        assert set(walk(pair, 40)) == {""}
    assert [one["event"] for one in said] == ["cannot reach the lease"] * 2  # once for each replica
    assert all('resources: ["leases"], verbs: ["get"]' in one["problem"] for one in said)


@pytest.mark.parametrize("verb", ["create", "update"])
def test_a_lease_that_is_over_and_cannot_be_had_is_tried_for_at_the_usual_distance_and_told_once(
    pair: tuple[Replica, Replica], server: FakeApiServer, verb: str
) -> None:
    if verb == "update":
        standing = {"holderIdentity": "c", "leaseDurationSeconds": 15, "leaseTransitions": 4}
        server.put("leases", {"metadata": {"namespace": "llm", "name": "floorcast"}, "spec": standing})
    server.denied |= {f"{verb} leases"}
    replica, _ = pair
    with capture_logs() as said:
        walk((replica,), 60, step=0.01)
    assert len(server.asked(f"{verb} leases")) <= 45 / TERMS.retry + 2
    assert [one["event"] for one in said if one["log_level"] == "info"] == [
        "standing by" if verb == "update" else "no lease yet: waiting, for it may have been deleted under its holder",
        "cannot reach the lease",
    ]
    assert f'verbs: ["{verb}"]' in said[-1]["problem"]


@pytest.mark.parametrize(("retry", "renew", "duration"), [(0, 10, 15), (10, 10, 15), (2, 15, 15), (2, 20, 15)])
def test_times_that_do_not_nest_are_refused(retry: float, renew: float, duration: float) -> None:
    with pytest.raises(ValueError, match="each must be below the next"):
        Terms("llm", "floorcast", "a", duration=duration, renew=renew, retry=retry)


def test_no_write_leaves_a_client_whose_lease_is_over(server: FakeApiServer, access: Access) -> None:
    allowed = True
    api = Api(access, may_write=lambda: allowed)
    server.put("horizontalpodautoscalers", objects.hpa())
    change = {"spec": {"minReplicas": 4}}
    api.patch(HPAS, change, namespace="llm", name="vllm-hpa")
    allowed = False
    with pytest.raises(errors.NotLeaderError, match="patch horizontalpodautoscalers vllm-hpa in namespace llm"):
        api.patch(HPAS, change, namespace="llm", name="vllm-hpa")
    with pytest.raises(errors.NotLeaderError):
        api.create(LEASES, {"metadata": {"namespace": "llm", "name": "x"}}, namespace="llm")
    assert api.get(HPAS, namespace="llm", name="vllm-hpa")["spec"]["minReplicas"] == 4
    assert len([request for request in server.requests if request.verb in ("patch", "create")]) == 1
    api.close()


def test_a_write_that_has_to_come_back_asks_again_whether_it_may(server: FakeApiServer, access: Access) -> None:
    answers = iter([True, False])
    api = Api(access, wait=lambda _: False, may_write=lambda: next(answers))
    server.put("horizontalpodautoscalers", objects.hpa())
    server.answer("patch horizontalpodautoscalers", 429, Retry_After="1")
    with pytest.raises(errors.NotLeaderError):
        api.patch(HPAS, {}, namespace="llm", name="vllm-hpa")
    assert len(server.asked("patch horizontalpodautoscalers")) == 1
    api.close()


def test_the_api_server_is_told_to_give_up_a_write_when_we_do(server: FakeApiServer, access: Access) -> None:
    api = Api(access, may_write=lambda: True)
    server.put("horizontalpodautoscalers", objects.hpa())
    api.patch(HPAS, {}, namespace="llm", name="vllm-hpa")
    assert server.asked("patch horizontalpodautoscalers")[0].query["timeout"] == "2s"
    api.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        yield fake


STRETCH = st.tuples(st.sampled_from(["run", "stop a", "stop b", "stop both", "api down"]), st.integers(1, 40))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=st.lists(STRETCH, min_size=2, max_size=6))
def test_there_are_never_two_whatever_stops_and_for_how_long(
    shared: FakeApiServer, tmp_path_factory: pytest.TempPathFactory, story: list[tuple[str, int]]
) -> None:
    token = tmp_path_factory.getbasetemp() / "token"
    token.write_text("t")
    shared.objects.clear()
    api = Api(Access(server=shared.url, token_file=token, timeout=2.0), monotonic=lambda: 0.0)
    pair = (Replica(api, "a", booted=5.0), Replica(api, "b", booted=1e6))
    for what, seconds in [*story, ("run", 40)]:
        pair[0].stopped, pair[1].stopped = what in ("stop a", "stop both"), what in ("stop b", "stop both")
        shared.answer("update leases", 503, times=1_000_000 if what == "api down" else 0)
        last = walk(pair, seconds, step=1.0)
    assert last[-1] != ""
    assert lease.Terms("n", "n", "i").renew < lease.Terms("n", "n", "i").duration
    api.close()


def test_renewals_are_spaced(pair: tuple[Replica, Replica], server: FakeApiServer) -> None:
    lead(pair)
    before = len(server.requests)
    walk(pair, 60)
    assert len(server.requests) - before <= 2 * 60 / TERMS.retry + 2  # two replicas
    assert not any(a.what == b.what == "create leases" for a, b in itertools.pairwise(server.requests))
