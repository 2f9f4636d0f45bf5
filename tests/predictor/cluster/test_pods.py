"""Supply and warm-ups from pods, by example; times are seconds from NOW."""

import dataclasses

import pytest

from models.capacity import warmup
from models.capacity.warmup import Start, Wait
from models.policy.context import Supply
from predictor.cluster import pods
from predictor.cluster.warmups import KEPT, KEPT_LEFT, SOON, Remembered, WarmUps
from tests.fakes.cluster_objects import NOW, Json, condition, pod

USUAL = warmup.usual([], now=NOW, default=100.0)  # so a pod is stuck after 300 s


def supply(*running: Json) -> Supply:
    found = pods.supply(running, now=NOW, usual=USUAL)
    assert len(found.ready_in) == found.warming
    return dataclasses.replace(found, ready_in=())


def watch(warm_ups: WarmUps, *running: Json, longest: float = 300.0) -> list[float]:
    starts = warm_ups.watch("llm/vllm", running, now=NOW, longest=longest)
    return [one.seconds for one in starts if one.seconds is not None]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (pod("serves", created=-500, ready=-400), Supply(1)),
        (pod("new", created=-10, phase="Pending"), Supply(0, 1)),
        (pod("still warming", created=-300), Supply(0, 1)),
        (pod("far too long", created=-301), Supply(0, 0, 1)),
        (pod("unschedulable for hours", created=-9999, phase="Pending"), Supply(0, 0, 1)),
        (pod("fell a moment ago", created=-9999, fallen=-20), Supply(0, 1)),
        (pod("fell long ago", created=-9999, fallen=-301), Supply(0, 0, 1)),
        (pod("on its way out", created=-500, ready=-400, deleted=-1), Supply(0)),
        (pod("evicted", created=-500, phase="Failed"), Supply(0)),
        (pod("done", created=-500, phase="Succeeded"), Supply(0)),
        (pod("ahead of our clock", created=30), Supply(0, 1)),
        ({"metadata": {"uid": "u"}}, Supply(0, 1)),
        ({}, Supply(0, 1)),
    ],
)
def test_a_pod_counts_as_what_it_can_do(one: Json, expected: Supply) -> None:
    assert supply(one) == expected


def test_old_and_surge_pods_both_serve_during_a_rollout() -> None:
    old, new = pod("old", created=-900, ready=-800), pod("new", created=-200, ready=-100, owner="vllm-2")
    assert supply(old, new, pod("next", created=-5, owner="vllm-2")) == Supply(2, 1)


def test_the_phases_of_a_warm_up_are_kept() -> None:
    measured = pods.start(pod("a", created=-200, ready=-80))
    assert measured == Start(NOW - 200, NOW - 200, NOW - 199, NOW - 80)
    assert measured.seconds == 120


def test_a_pod_without_a_node_has_not_been_scheduled() -> None:
    waiting = pod("a", created=-200)
    waiting["status"]["conditions"][0] = condition("PodScheduled", "False", since=-200, reason="Unschedulable")
    waiting["status"]["containerStatuses"] = []
    assert pods.start(waiting) == Start(NOW - 200)
    assert pods.start({}) is None


def test_a_warming_pod_is_expected_by_what_others_took_and_a_stuck_one_is_not() -> None:
    usual = warmup.of_seconds(100, 100, 120, 120)  # stuck after 360 s
    fresh, late, lost = pod("a", created=-10), pod("b", created=-110), pod("c", created=-400)
    assert pods.supply([fresh, late, lost], now=NOW, usual=usual) == Supply(0, 2, 1, (10, 90))


def test_a_pod_that_is_taken_away_while_it_warms_says_that_it_takes_longer() -> None:
    warm_ups = WarmUps()
    slow = [pod("slow", created=-500), pod("slower", created=-600)]
    watch(warm_ups, *(pod(f"p{k}", created=-200, ready=-100) for k in range(5)), *slow)
    usual = warm_ups.usual("llm/vllm", [], now=NOW, default=300.0)
    assert [wait for wait in usual.waits if not wait.over] == [Wait(300, over=False)] * 2  # three times 100
    assert usual.seconds == 300


def test_what_starts_say_is_worked_out_again_only_when_something_changed() -> None:
    warm_ups = WarmUps()
    ready, warming = pod("a", created=-200, ready=-100), pod("b", created=-10)
    first = warm_ups.usual("llm/vllm", [ready], now=NOW, default=100.0)
    assert warm_ups.usual("llm/vllm", [ready], now=NOW + 10, default=100.0) is first
    then = warm_ups.usual("llm/vllm", [ready, warming], now=NOW + 10, default=100.0)
    assert warm_ups.usual("llm/vllm", [ready, warming], now=NOW + 20, default=100.0) != then


def test_a_pod_is_measured_once_it_is_ready() -> None:
    warm_ups = WarmUps()
    assert watch(warm_ups, pod("a", created=-200)) == []
    assert watch(warm_ups, pod("a", created=-200, ready=-80)) == [120.0]
    assert watch(warm_ups, pod("a", created=-200, ready=-80)) == [120.0]


def test_the_first_ready_counts_whatever_comes_after() -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("a", created=-500, ready=-400))
    watch(warm_ups, pod("a", created=-500, fallen=-50))
    assert watch(warm_ups, pod("a", created=-500, ready=-10)) == [100.0]


def test_a_warm_up_that_was_watched_is_believed_however_long() -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("slow", created=-2000))
    assert watch(warm_ups, pod("slow", created=-2000, ready=-100)) == [1900.0]


def test_a_pod_found_ready_after_far_too_long_is_put_down_to_a_flap() -> None:
    assert watch(WarmUps(), pod("flapped", created=-9000, ready=-100), pod("fine", created=-9000, ready=-8900)) == [100]


def test_a_pod_found_fallen_is_never_measured() -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("a", created=-9000, fallen=-30))
    assert watch(warm_ups, pod("a", created=-9000, ready=-8950)) == []


def test_a_pod_whose_container_restarted_is_never_measured() -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("a", created=-200, restarts=1))
    assert watch(warm_ups, pod("a", created=-200, ready=-10, restarts=1)) == []


def test_pods_that_are_leaving_are_not_measured() -> None:
    assert watch(WarmUps(), pod("a", created=-200, ready=-100, deleted=-1)) == []


def test_the_newest_is_last_in_whatever_order_pods_are_listed() -> None:
    running = pod("b", created=-200, ready=-50), pod("a", created=-300, ready=-200), pod("c", created=-90, ready=-80)
    assert watch(WarmUps(), *running) == [100.0, 10.0, 150.0]


def again(warm_ups: WarmUps, *, ago: float = 0.0) -> WarmUps:
    """Those of a new process; the one before it looked for the last time so many seconds ago."""
    known = warm_ups.remembered("llm/vllm")
    assert known is not None
    fresh = WarmUps()
    fresh.recall("llm/vllm", dataclasses.replace(known, at=known.at - ago))
    return fresh


def test_another_process_goes_on_from_what_was_measured_and_measures_no_pod_twice() -> None:
    warm_ups = WarmUps()
    stands, warms = pod("stands", created=-900, ready=-800), pod("warms", created=-250)
    watch(warm_ups, pod("gone", created=-900, ready=-750), stands, warms)
    watch(warm_ups, stands, warms)
    assert watch(again(warm_ups), stands, warms) == [100.0, 150.0]
    assert watch(again(warm_ups), stands, pod("warms", created=-250, ready=-10)) == [100.0, 150.0, 240.0]
    fresh = again(warm_ups)
    assert fresh.remembered("llm/vllm") == warm_ups.remembered("llm/vllm")
    assert watch(fresh, pod("new", created=-70, ready=-30)) == [100.0, 150.0, 40.0]


def test_a_pod_that_went_away_while_nobody_looked_lasted_at_least_until_the_last_look() -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("slow", created=-500))
    starts = again(warm_ups, ago=100.0).watch("llm/vllm", [], now=NOW + 5000, longest=300.0)
    assert [one.left for one in starts] == [NOW - 100]
    starts = again(warm_ups, ago=-9000.0).watch("llm/vllm", [], now=NOW, longest=300.0)
    assert [one.left for one in starts] == [NOW]  # the clock was set back since


@pytest.mark.parametrize(("later", "measured"), [(SOON - 1, [1900 + SOON - 1]), (SOON + 1, [])])
def test_a_slow_pod_that_became_ready_unseen_is_believed_only_if_that_was_soon(
    later: float, measured: list[float]
) -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("slow", created=-1900))
    assert watch(again(warm_ups), pod("slow", created=-1900, ready=later)) == measured


def test_what_this_process_has_seen_itself_outweighs_what_another_knew() -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("a", created=-200, ready=-100))
    warm_ups.recall("llm/vllm", Remembered(NOW))
    assert watch(warm_ups, pod("a", created=-200, ready=-100)) == [100.0]
    assert warm_ups.remembered("llm/other") is None


def test_targets_are_measured_apart() -> None:
    warm_ups = WarmUps()
    watch(warm_ups, pod("a", created=-200, ready=-100))
    assert warm_ups.watch("llm/other", [], now=NOW, longest=300.0) == ()


def test_memory_is_bounded_by_what_is_kept_and_what_exists() -> None:
    warm_ups = WarmUps()
    for number in range(KEPT + 50):
        last = watch(warm_ups, pod(f"p{number}", created=-200, ready=-100), pod(f"q{number}", created=-1))
    register = warm_ups._registers["llm/vllm"]
    assert (len(last), len(register.settled), len(register.warming)) == (KEPT, 1, 1)
    assert len(register.left) == KEPT_LEFT


def test_a_ready_pod_without_times_is_no_measurement() -> None:
    bare = {"metadata": {"uid": "u"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert watch(WarmUps(), bare) == []


def test_the_pods_that_get_traffic_are_listed_with_their_addresses() -> None:
    running = [pod("a", created=-200, ready=-100), pod("b", created=-200, ready=-100), pod("warming", created=-20)]
    for one, address in zip(running, ("10.0.0.1", "fd00::2", "10.0.0.3"), strict=True):
        one["status"]["podIP"] = address
    nameless = pod("no address yet", created=-200, ready=-100)
    assert pods.serving([*running, nameless]) == (pods.Serving("a", "10.0.0.1"), pods.Serving("b", "[fd00::2]"))
