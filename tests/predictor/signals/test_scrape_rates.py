"""Rates from pages: a rate lies between two looks, whatever pods come, go and restart meanwhile."""

import concurrent.futures
import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.signals import Cause, Known, Signal
from predictor.signals import scrape
from tests.fakes import cluster_objects, exposition
from tests.fakes.exposition import MODEL, histogram, level
from tests.fakes.scraped import CATALOG, SERIAL, Pods, Watch, cause, failing, value, vllm


def test_arrivals_are_first_tokens_and_the_growth_of_the_queue() -> None:
    pods = Pods(a=vllm(100, waiting=2))
    watch = Watch(pods)
    watch.at(0)
    pods.lines["a"] = vllm(130, waiting=12)
    # 30 first tokens and 10 more waiting in 10 s
    assert value(watch.at(10)[Signal.ARRIVALS]) == 4.0
    assert watch.source.matched[watch.target.key, Signal.ARRIVALS] == "first_tokens"


def test_a_draining_queue_is_no_arrival() -> None:
    pods = Pods(a=vllm(100, waiting=50))
    watch = Watch(pods)
    watch.at(0)
    pods.lines["a"] = vllm(150, waiting=0)
    assert value(watch.at(10)[Signal.ARRIVALS]) == 0.0


def test_refusals_are_arrivals_too() -> None:
    refused = level("vllm:admission_rejections_total", 0, model_name=MODEL, reason="max_num_queued_reqs")
    pods = Pods(a=[*vllm(100), refused])
    watch = Watch(pods)
    watch.at(0)
    pods.lines["a"] = [*vllm(110), dataclasses.replace(refused, start=20.0)]
    assert value(watch.at(10)[Signal.ARRIVALS]) == 3.0


def test_a_restarted_pod_counts_from_zero_and_its_lost_queue_takes_nothing_back() -> None:
    pods = Pods(a=vllm(1000, waiting=40), b=vllm(500))
    watch = Watch(pods)
    watch.at(0)
    pods.lines.update(a=vllm(15, waiting=5), b=vllm(510))
    # a: 15 since its start and 5 waiting; b: 10
    assert value(watch.at(10)[Signal.ARRIVALS]) == 3.0


def test_a_vanished_pod_takes_nothing_back() -> None:
    pods = Pods(a=vllm(1000, waiting=40), b=vllm(500))
    watch = Watch(pods)
    watch.at(0)
    del pods.lines["a"]
    pods.lines["b"] = vllm(520)
    assert value(watch.at(10)[Signal.ARRIVALS]) == 2.0


def test_a_new_pod_counts_from_its_start() -> None:
    pods = Pods(a=vllm(1000))
    watch = Watch(pods)
    watch.at(0)
    pods.lines.update(a=vllm(1010), b=vllm(30, waiting=10))
    assert value(watch.at(10)[Signal.ARRIVALS]) == 5.0


@pytest.mark.parametrize("looks", [1, 60])
def test_a_pod_that_was_not_ready_for_a_while_goes_on_from_where_it_was(looks: int) -> None:
    """One that fails its probes is listed no more, and again once it passes them: that is no burst of all it served."""
    pods = Pods(a=vllm(1000), b=vllm(90_000))
    watch = Watch(pods)
    watch.at(0)
    kept = pods.lines.pop("b")
    for look in range(1, looks + 1):
        watch.at(10.0 * look)
    pods.lines["b"] = kept
    assert value(watch.at(10.0 * looks + 10)[Signal.ARRIVALS]) == 0.0
    pods.lines["b"] = vllm(90_060)
    assert value(watch.at(10.0 * looks + 20)[Signal.ARRIVALS]) == pytest.approx(60 / min(10.0 * looks + 20, 60))


def test_a_look_that_lists_no_pod_at_all_makes_none_of_them_new() -> None:
    pods = Pods(a=vllm(90_000))
    watch = Watch(pods)
    watch.at(0)
    kept, pods.lines = pods.lines, {}
    assert cause(watch.at(10)[Signal.ARRIVALS]) is Cause.EMPTY
    pods.lines = kept
    assert value(watch.at(20)[Signal.ARRIVALS]) == 0.0


def test_a_pod_of_the_same_name_that_comes_back_anew_counts_from_its_start() -> None:
    pods = Pods(a=vllm(1000), b=vllm(90_000))
    watch = Watch(pods)
    watch.at(0)
    del pods.lines["b"]
    watch.at(10)
    pods.lines["b"] = vllm(40)
    assert value(watch.at(20)[Signal.ARRIVALS]) == 2.0


def test_pods_that_are_gone_for_longer_than_a_day_are_forgotten() -> None:
    pods = Pods(a=vllm(1000))
    watch = Watch(pods)
    for hour in range(24 * 7):
        pods.lines = {"a": vllm(1000), f"surge-{hour}": vllm(10)}
        watch.at(3600.0 * hour)
    (counted,) = watch.source._tallies.values()
    assert len(counted._pods) <= 26


def test_an_old_pod_whose_page_shows_up_late_is_no_burst() -> None:
    pods = Pods(a=vllm(1000), b=vllm(90_000))
    pods.broken["b"] = failing(ConnectionError("refused"))
    watch = Watch(pods)
    watch.at(0)
    pods.broken.clear()
    watch.at(10)
    pods.lines.update(a=vllm(1020), b=vllm(90_020))
    assert value(watch.at(20)[Signal.ARRIVALS]) == 2.0


def test_a_missed_page_delays_its_counts_and_loses_none() -> None:
    pods = Pods(a=vllm(0), b=vllm(0))
    watch = Watch(pods)
    watch.at(0)
    pods.lines.update(a=vllm(10), b=vllm(10))
    pods.broken["b"] = failing(TimeoutError("slow"))
    assert cause(watch.at(10)[Signal.ARRIVALS]) is Cause.PARTIAL
    pods.broken.clear()
    pods.lines.update(a=vllm(20), b=vllm(20))
    assert value(watch.at(20)[Signal.ARRIVALS]) == 2.0


@pytest.mark.parametrize("away", [20, 50, 600, 4 * 3600])
@pytest.mark.parametrize("case", ["not ready", "not ready, restarted", "no page", "no page, restarted"])
def test_what_came_while_a_page_was_not_read_is_no_burst_of_one_look(away: int, case: str) -> None:
    """Two requests a second come to b all along, whether it is Ready for us and answers us or not."""
    gone, back = 100, 100 + away
    started = gone + 5 if case == "no page, restarted" else back - 10  # one that is not Ready serves nobody anew
    pods, seen = Pods(), {}
    watch = Watch(pods)
    for now in range(0, back + 150, 10):
        is_away = gone < now < back
        is_anew = case.endswith("restarted") and now > started
        pods.lines = {"a": vllm(500)}
        if case.startswith("no page") or not is_away:
            pods.lines["b"] = vllm(2 * (now - started) if is_anew else 90_000 + 2 * now)
        pods.broken = {"b": failing(TimeoutError("slow"))} if is_away else {}
        reading = watch.at(now)[Signal.ARRIVALS]
        if isinstance(reading, Known):
            seen[now] = reading.value
    assert max(seen.values()) <= 2.0 + 1e-9
    later = [rate for now, rate in seen.items() if now >= back + 60]
    assert later == pytest.approx([2.0] * len(later))


def test_a_counter_that_appears_with_the_first_request_counts_from_zero() -> None:
    own = {"model_name": MODEL}
    gauges = [level("sglang:num_running_reqs", 0, **own), level("sglang:num_queue_reqs", 0, **own)]
    pods = Pods(a=gauges)
    watch = Watch(pods, cluster_objects.target(engine="sglang", model=MODEL))
    watch.at(0)
    pods.lines["a"] = [*gauges, level("sglang:num_requests_total", 3, **own)]
    assert value(watch.at(10)[Signal.ARRIVALS]) == pytest.approx(0.3)


def test_a_counter_that_is_nan_once_does_not_poison_what_follows() -> None:
    pods = Pods(a=vllm(0))
    watch = Watch(pods, window=10.0)
    watch.at(0)
    pods.lines["a"] = vllm(math.nan)
    watch.at(10)
    pods.lines["a"] = vllm(100)
    watch.at(20)
    pods.lines["a"] = vllm(120)
    assert value(watch.at(30)[Signal.ARRIVALS]) == 2.0


def test_no_requests_is_a_known_rate_of_zero_and_an_unknown_duration() -> None:
    own = {"model_name": MODEL, "engine": "0"}
    idle = [*vllm(50), *histogram("vllm:e2e_request_latency_seconds", {"1.0": 0.0, "+Inf": 0.0}, **own)]
    watch = Watch(Pods(a=idle))
    watch.at(0)
    readings = watch.at(10)
    assert value(readings[Signal.ARRIVALS]) == 0.0
    assert cause(readings[Signal.DURATION_MEAN]) is Cause.NOT_FINITE


def test_rates_look_back_over_the_window_and_no_further() -> None:
    pods = Pods(a=vllm(0))
    watch = Watch(pods, window=20.0)
    for now, count in ((0, 0), (10, 1000), (20, 1010), (30, 1020), (40, 1030)):
        pods.lines["a"] = vllm(count)
        readings = watch.at(now)
    assert value(readings[Signal.ARRIVALS]) == 1.0


def test_a_clock_that_goes_back_starts_rates_afresh() -> None:
    pods = Pods(a=vllm(0))
    watch = Watch(pods)
    watch.at(1000)
    pods.lines["a"] = vllm(10)
    assert cause(watch.at(500)[Signal.ARRIVALS]) is Cause.EMPTY
    pods.lines["a"] = vllm(30)
    assert value(watch.at(510)[Signal.ARRIVALS]) == 2.0


def test_two_looks_at_nearly_the_same_time_in_the_wrong_order_do_no_harm() -> None:
    pods = Pods(a=vllm(0))
    watch = Watch(pods)
    watch.at(1000)
    pods.lines["a"] = vllm(10)
    watch.at(1010)
    pods.lines["a"] = vllm(12)
    assert value(watch.at(1009.5)[Signal.ARRIVALS]) == pytest.approx(1.2)
    pods.lines["a"] = vllm(20)
    assert value(watch.at(1020)[Signal.ARRIVALS]) == 1.0


def test_looks_from_two_threads_take_turns() -> None:
    counts = itertools.count()
    target = cluster_objects.target(model=MODEL)
    source = scrape.ScrapeSource(
        SERIAL,
        CATALOG,
        pages=lambda _: [scrape.Page("a", "a")],
        fetch=lambda _: exposition.page(vllm(next(counts))),
    )
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda now: source.read([target], now=now), (float(n) for n in range(200))))
    rates = [reading.value for answer in answers if isinstance(reading := answer[target.key][Signal.ARRIVALS], Known)]
    # A page counted after a later one would look like a restart and count thousands.
    assert max(rates) < 3


def test_targets_that_are_gone_are_forgotten() -> None:
    watch = Watch(Pods(a=vllm(0)))
    watch.at(0)
    watch.source.read([], now=10)
    assert cause(watch.at(20)[Signal.ARRIVALS]) is Cause.EMPTY


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 9)), max_size=3),
        min_size=2,
        max_size=8,
    ),
    st.booleans(),
)
def test_whatever_pods_come_go_and_restart_arrivals_are_never_negative_nor_more_than_was_counted(
    steps: list[list[tuple[str, int, int]]],
    anew: bool,  # noqa: FBT001  (drawn)
) -> None:
    pods = Pods()
    watch = Watch(pods, window=1e6)
    counts: dict[str, int] = {}
    for number, step in enumerate(steps):
        shown = {pod: (more, waiting) for pod, more, waiting in step}
        kept = {} if anew else counts  # a pod that went away begins again, or comes back as it was
        counts = kept | {pod: counts.get(pod, 0) + more for pod, (more, _) in shown.items()}
        pods.lines = {pod: vllm(counts[pod], waiting=shown[pod][1]) for pod in shown}
        reading = watch.at(10.0 * number)[Signal.ARRIVALS]
        if isinstance(reading, Known):
            most = sum(more + waiting for later in steps[1:] for _, more, waiting in later)  # a first look counts none
            assert 0 <= reading.value * 10 * number <= most + 1e-6
