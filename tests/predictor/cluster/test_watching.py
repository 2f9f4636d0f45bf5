"""The picture of the cluster kept by watches, against a server that ends, drops, forgets and falls silent."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from predictor.cluster import errors, picking, pods, troubles
from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.cluster.resources import HPAS, PODS, REPLICA_SETS
from predictor.cluster.watching import Cache, Pace, Report
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Refused, Workload, Written
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target
from tests.servers import waiting

QUICK = Pace(window=1.0, stale_after=4.0, resync=600.0, patience=5.0)


class Passed:
    """A clock that can be moved on beside the real one."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        import time  # noqa: PLC0415

        return time.monotonic() + self.ahead


@pytest.fixture
def passed() -> Passed:
    return Passed()


@pytest.fixture
def watched(access: Access) -> Iterator[Api]:
    api = Api(access)
    yield api
    api.close()


Making = Callable[[Pace], Cache]


@pytest.fixture
def making(watched: Api, passed: Passed, server: FakeApiServer) -> Iterator[Making]:
    made: list[Cache] = []

    def make(pace: Pace) -> Cache:
        made.append(Cache(watched, pace=pace, passed=passed))
        return made[-1]

    yield make
    server.watches.end()  # what waits for events ends
    for one in made:
        one.close()


@pytest.fixture
def cache(making: Making) -> Cache:
    return making(QUICK)


def names(cache: Cache) -> list[str]:
    return sorted(one["metadata"]["name"] for one in cache.list_all(PODS, namespace="llm"))


def await_names(cache: Cache, *expected: str) -> None:
    def there() -> bool:
        try:
            return names(cache) == sorted(expected)
        except errors.StaleError:
            return False

    waiting.until(there, within_s=10, what=f"{expected}", every_s=0.02)


def report(cache: Cache) -> Report:
    (one,) = cache.report()
    return one


def add(server: FakeApiServer, *called: str) -> None:
    for name in called:
        server.put("pods", objects.pod(name, created=0))


def test_one_list_and_then_changes_as_they_come(server: FakeApiServer, cache: Cache) -> None:
    add(server, "a", "b")
    assert names(cache) == ["a", "b"]
    add(server, "c")
    server.delete("pods", "llm", "a")
    await_names(cache, "b", "c")
    server.change("pods", "llm", "b", status={"phase": "Failed"})
    waiting.until(
        lambda: "Failed" in [one["status"]["phase"] for one in cache.list_all(PODS, namespace="llm")],
        within_s=5,
        what="the change",
        every_s=0.02,
    )
    assert len(server.asked("list pods")) == 1
    assert server.asked("watch pods")[0].query["allowWatchBookmarks"] == "true"


def test_the_next_watch_goes_on_where_the_last_one_ended(server: FakeApiServer, cache: Cache) -> None:
    add(server, "a")
    names(cache)
    server.bookmark()
    waiting.until(lambda: len(server.asked("watch pods")) >= 3, within_s=10, what="three watches")
    versions = [int(request.query["resourceVersion"]) for request in server.asked("watch pods")]
    assert versions == sorted(versions)
    assert versions[-1] > versions[0]  # the bookmark moved it on, nothing else happened
    assert len(server.asked("list pods")) == 1
    assert report(cache).age is not None


def test_a_version_that_is_no_longer_known_means_a_new_list(server: FakeApiServer, cache: Cache) -> None:
    add(server, "a", "b")
    names(cache)
    server.watches.oldest = 10**9
    with server._lock:  # something happens that no watcher is told of
        del server.objects["pods", "llm", "a"]
    waiting.until(lambda: len(server.asked("list pods")) >= 2, within_s=10, what="a second list")
    server.watches.oldest = 0
    await_names(cache, "b")


def test_a_watch_that_is_answered_with_410_at_once_means_a_new_list_too(server: FakeApiServer, cache: Cache) -> None:
    """As an answer to the request, not as an event of a watch that has begun: proxies and old API servers do so."""
    server.answer("watch pods", 410, times=2)
    add(server, "a")
    assert names(cache) == ["a"]
    waiting.until(lambda: len(server.asked("list pods")) >= 3, within_s=10, what="a list for each")
    add(server, "b")
    await_names(cache, "a", "b")
    watches = server.asked("watch pods")
    assert len(server.asked("list pods")) == 3
    assert len({one.query["resourceVersion"] for one in watches[:3]}) == 3  # each from the version of its own list


def test_a_410_to_every_watch_is_not_answered_without_a_pause(server: FakeApiServer, cache: Cache) -> None:
    server.answer("watch pods", 410, times=1_000_000)
    add(server, "a")
    names(cache)
    threading.Event().wait(3.0)
    assert 2 <= len(server.asked("list pods")) <= 8
    assert names(cache) == ["a"]


def test_a_version_that_is_never_known_is_not_asked_for_without_a_pause(server: FakeApiServer, cache: Cache) -> None:
    server.watches.oldest = 10**9
    add(server, "a")
    names(cache)
    threading.Event().wait(3.0)
    assert 2 <= len(server.asked("list pods")) <= 8


def test_a_connection_that_breaks_loses_nothing(server: FakeApiServer, cache: Cache) -> None:
    add(server, "a")
    names(cache)
    server.watches.drop(3)
    add(server, "b", "c", "d")
    await_names(cache, "a", "b", "c", "d")
    assert len(server.asked("list pods")) == 1


def test_watches_that_end_at_once_are_not_begun_again_without_a_pause(server: FakeApiServer, cache: Cache) -> None:
    server.answer("watch pods", 200, times=1_000_000, body=b'{"type": "BOOKMARK", "object": {}}\n')
    add(server, "a")
    names(cache)
    threading.Event().wait(3.0)
    assert 2 <= len(server.asked("watch pods")) <= 8


def test_a_picture_that_is_not_confirmed_is_not_given_out(
    server: FakeApiServer, making: Making, passed: Passed
) -> None:
    cache = making(Pace(window=300.0, stale_after=45.0, patience=5.0))
    add(server, "a")
    assert names(cache) == ["a"]
    passed.ahead = 40.0
    assert names(cache) == ["a"]
    passed.ahead = 50.0
    with pytest.raises(errors.StaleError, match="watch pods in namespace llm: last heard of 5"):
        names(cache)
    assert (report(cache).age or 0) > 45
    server.bookmark()
    await_names(cache, "a")


def test_who_looks_at_an_old_picture_refuses_the_target_and_says_why(
    server: FakeApiServer, watched: Api, making: Making, passed: Passed
) -> None:
    server.put("deployments", objects.deployment())
    cache = making(Pace(window=300.0, stale_after=45.0, patience=5.0))
    workloads = ClusterWorkloads(watched, lister=cache)
    assert isinstance(workloads.observe([target()], now=NOW)["llm/vllm"], Workload)
    passed.ahead = 60.0
    state = workloads.observe([target()], now=NOW)["llm/vllm"]
    assert isinstance(state, Refused)
    assert state.reason == "Stale"


def test_a_server_that_is_away_is_named_once_the_picture_is_old(
    server: FakeApiServer, cache: Cache, passed: Passed
) -> None:
    add(server, "a")
    names(cache)
    server.answer("watch pods", 503, times=1_000_000)
    threading.Event().wait(1.5)
    assert names(cache) == ["a"]  # still fresh
    passed.ahead = 10.0
    with pytest.raises(errors.ServerError, match="watch pods in namespace llm: 503"):
        names(cache)


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_a_missing_permission_is_told_at_once_with_its_rule(server: FakeApiServer, cache: Cache, verb: str) -> None:
    server.denied |= {f"{verb} pods"}
    add(server, "a")

    def told() -> str:
        try:
            names(cache)
        except errors.ForbiddenError as error:
            return str(error)
        return ""

    text = waiting.until(told, within_s=5, what="the missing rule", every_s=0.05)
    assert f'Role in namespace llm with apiGroups: [""], resources: ["pods"], verbs: ["{verb}"]' in text


def test_a_kind_that_the_cluster_does_not_have_is_not_found_and_asked_for_again_when_somebody_looks(
    server: FakeApiServer, cache: Cache
) -> None:
    server.answer("list pods", 404, times=1)
    with pytest.raises(errors.NotFoundError):
        names(cache)
    add(server, "a")
    await_names(cache, "a")


def test_a_look_after_a_write_of_ours_shows_it(server: FakeApiServer, watched: Api, making: Making) -> None:
    server.put("deployments", objects.deployment())
    server.put("horizontalpodautoscalers", objects.hpa())
    cache = making(QUICK)
    workloads = ClusterWorkloads(watched, lister=cache)
    for number in range(3, 9):
        state = workloads.observe([target()], now=NOW)["llm/vllm"]
        assert isinstance(state, Workload)
        assert workloads.write(target(), number, seen=state, now=NOW) == Written(number)
        after = workloads.observe([target()], now=NOW)["llm/vllm"]
        assert isinstance(after, Workload)
        assert (after.standing, after.base, after.adopted) == (number, 2, True)
    assert len(server.asked("list horizontalpodautoscalers")) == 1


def test_everything_is_listed_anew_from_time_to_time(server: FakeApiServer, making: Making) -> None:
    cache = making(Pace(window=1.0, stale_after=10.0, resync=1.5, patience=5.0))
    add(server, "a")
    names(cache)
    waiting.until(lambda: len(server.asked("list pods")) >= 2, within_s=10, what="a second list")


def test_what_nobody_asks_for_is_followed_no_longer(server: FakeApiServer, cache: Cache, passed: Passed) -> None:
    add(server, "a")
    names(cache)
    passed.ahead = 1000.0
    assert cache.report() == ()
    waiting.until(lambda: server.watches.open == 0, within_s=10, what="no watch", every_s=0.05)


def test_one_watch_covers_all_namespaces_where_that_is_wanted(server: FakeApiServer, watched: Api) -> None:
    elsewhere = objects.pod("b", created=0)
    elsewhere["metadata"]["namespace"] = "other"
    add(server, "a")
    server.put("pods", elsewhere)
    cache = Cache(watched, pace=QUICK, everywhere=True)
    assert names(cache) == ["a"]
    assert [one["metadata"]["name"] for one in cache.list_all(PODS, namespace="other")] == ["b"]
    assert {request.namespace for request in server.requests} == {""}
    assert len(server.asked("list pods")) == 1
    server.watches.end()
    cache.close()


def test_replica_sets_are_watched_for_their_metadata_only(server: FakeApiServer, cache: Cache) -> None:
    server.put("replicasets", objects.replica_set())
    (found,) = cache.list_all(REPLICA_SETS, namespace="llm", names_only=True)
    assert set(found) == {"metadata"}
    waiting.until(lambda: server.asked("watch replicasets"), within_s=5, what="a watch")
    assert "PartialObjectMetadata;" in server.asked("watch replicasets")[0].headers["accept"]


def test_ending_does_not_wait_for_the_next_event(server: FakeApiServer, watched: Api) -> None:
    cache = Cache(watched, pace=Pace(window=300.0))
    server.put("horizontalpodautoscalers", objects.hpa())
    cache.list_all(HPAS, namespace="llm")
    waiting.until(lambda: server.watches.open == 1, within_s=5, what="a watch", every_s=0.02)
    ended = threading.Thread(target=cache.close)
    ended.start()
    ended.join(3.0)
    assert not ended.is_alive()


RICH: list[dict[str, Any]] = [
    objects.pod("ready", created=-500, ready=-380),
    objects.pod("warming", created=-20),
    objects.pod("fallen", created=-500, ready=-400, fallen=-100),
    objects.pod("restarted", created=-500, ready=-380, restarts=2),
    objects.pod("over", created=-500, phase="Failed"),
    objects.pod("going", created=-500, ready=-380, deleted=-5),
]


@pytest.mark.parametrize("pod", RICH, ids=lambda pod: pod["metadata"]["name"])
def test_all_that_is_read_of_a_pod_is_kept(pod: dict[str, Any]) -> None:
    full = {**pod, "spec": {"containers": [{"name": "vllm", "image": "vllm", "env": [{"name": "X", "value": "y"}]}]}}
    full["metadata"] = {**full["metadata"], "managedFields": [{"manager": "kubelet"}], "labels": {"app": "vllm"}}
    kept = picking.picked(PODS, full, names_only=False)
    for read in (pods.is_ready, pods.fell, pods.started_at, pods.restarts, pods.start, troubles.of):
        assert read(kept) == read(full), read.__name__
    assert pods.serving([kept]) == pods.serving([full])
    assert pods.counted([kept]) == ((kept,) if pods.counted([full]) else ())
    assert "managedFields" not in kept["metadata"]
    assert "image" not in kept["spec"]["containers"][0]
