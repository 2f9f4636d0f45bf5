import concurrent.futures
import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.signals import scrape, shelf
from predictor.targets import Target
from tests.fakes import cluster_objects, engines, exposition, prometheus_api
from tests.fakes.exposition import MODEL, Line, histogram, level

CATALOG = shelf.load()
SERIAL = scrape.ScrapeSettings(workers=1)
SAMPLES = Path(__file__).parents[4] / "shared" / "samples" / "metrics"


class Pods:
    """Pods by name, each with its lines; a pod may be broken in a way the fetch shows."""

    def __init__(self, **pods: Sequence[Line]) -> None:
        self.lines: dict[str, Sequence[Line]] = dict(pods)
        self.broken: dict[str, Callable[[], str]] = {}
        self.now = 0.0

    def pages(self, target: Target) -> list[scrape.Page]:
        del target
        return [scrape.Page(name, f"http://{name}/metrics") for name in self.lines]

    def fetch(self, url: str) -> str:
        name = url.split("/")[2]
        return self.broken[name]() if name in self.broken else exposition.page(self.lines[name], at=self.now)


class Watch:
    """A source over pods, read at given times."""

    def __init__(self, pods: Pods, target: Target | None = None, **settings: float) -> None:
        self.pods = pods
        self.target = target or cluster_objects.target(model=MODEL)
        changed = dataclasses.replace(SERIAL, **settings)  # type: ignore[arg-type]
        self.source = scrape.ScrapeSource(changed, CATALOG, pages=pods.pages, fetch=pods.fetch)

    def at(self, now: float) -> Mapping[Signal, Reading]:
        self.pods.now = now
        return self.source.read([self.target], now=now)[self.target.key]


def value(reading: Reading) -> float:
    assert isinstance(reading, Known), reading
    return reading.value


def cause(reading: Reading) -> Cause:
    assert isinstance(reading, Unknown), reading
    return reading.cause


def failing(error: Exception) -> Callable[[], str]:
    def fetch() -> str:
        raise error

    return fetch


def vllm(first_tokens: float, waiting: float = 0.0, running: float = 0.0) -> list[Line]:
    own = {"model_name": MODEL, "engine": "0"}
    return [
        level("vllm:num_requests_running", running, **own),
        level("vllm:num_requests_waiting", waiting, **own),
        level("vllm:kv_cache_usage_perc", 0.5, **own),
        *histogram("vllm:time_to_first_token_seconds", {"+Inf": 0.0}, **own)[:-2],
        level("vllm:time_to_first_token_seconds_count", first_tokens, **own),
    ]


@pytest.mark.parametrize(
    "namespace", ["vllm-new", "vllm-old", "sglang", "tgi", "lmdeploy", "trtllm", "llamacpp", "ray"]
)
def test_pages_give_the_same_signals_as_prometheus_does(namespace: str) -> None:
    shape = engines.shapes(at=60)[namespace]
    pods = Pods(a=shape.lines, b=shape.lines)
    watch = Watch(pods, cluster_objects.target(engine=shape.engine, model=shape.model))
    watch.at(0)
    watch.at(30)
    readings = watch.at(60)
    given = {signal: reading.value for signal, reading in readings.items() if isinstance(reading, Known)}
    assert given == pytest.approx(dict(shape.signals), rel=1e-9)
    assert all(reading.at == 60 for reading in readings.values() if isinstance(reading, Known))


def test_a_first_look_knows_levels_but_no_rates() -> None:
    readings = Watch(Pods(a=vllm(100, waiting=2, running=7))).at(0)
    assert value(readings[Signal.IN_FLIGHT]) == 7
    assert readings[Signal.ARRIVALS] == Unknown(Cause.EMPTY, "a first look: a rate lies between two")


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


def test_a_counter_that_appears_with_the_first_request_counts_from_zero() -> None:
    own = {"model_name": MODEL}
    gauges = [level("sglang:num_running_reqs", 0, **own), level("sglang:num_queue_reqs", 0, **own)]
    pods = Pods(a=gauges)
    watch = Watch(pods, cluster_objects.target(engine="sglang", model=MODEL))
    watch.at(0)
    pods.lines["a"] = [*gauges, level("sglang:num_requests_total", 3, **own)]
    assert value(watch.at(10)[Signal.ARRIVALS]) == pytest.approx(0.3)


def test_a_page_that_is_missing_makes_the_target_unknown_and_is_named() -> None:
    pods = Pods(a=vllm(0), b=vllm(0))
    pods.broken["b"] = failing(ConnectionError("connection refused"))
    reading = Watch(pods).at(0)[Signal.IN_FLIGHT]
    assert reading == Unknown(Cause.PARTIAL, "1 of 2 pages missing: b: ConnectionError: connection refused")


@pytest.mark.parametrize(
    "text", ["<html>\n</html>\n", "", "vllm:num_requests_running 3", "# TYPE other gauge\nother 1\n"]
)
def test_a_page_that_does_not_parse_counts_as_missing_and_the_rest_goes_on(text: str) -> None:
    pods = Pods(a=vllm(0), b=vllm(0))
    pods.broken["b"] = lambda: text
    other = cluster_objects.target("other", model=MODEL)
    source = scrape.ScrapeSource(
        SERIAL,
        CATALOG,
        pages=lambda target: pods.pages(target)[:1] if target is other else pods.pages(target),
        fetch=pods.fetch,
    )
    readings = source.read([cluster_objects.target(model=MODEL), other], now=0)
    assert cause(readings["llm/vllm"][Signal.IN_FLIGHT]) is Cause.PARTIAL
    assert value(readings[other.key][Signal.IN_FLIGHT]) == 0


def test_no_page_at_all_is_a_source_that_is_down() -> None:
    pods = Pods(a=vllm(0), b=vllm(0))
    pods.broken.update(dict.fromkeys(("a", "b"), failing(TimeoutError("slow"))))
    assert cause(Watch(pods).at(0)[Signal.IN_FLIGHT]) is Cause.SOURCE_DOWN


def test_no_pods_is_empty_and_not_zero() -> None:
    readings = Watch(Pods()).at(0)
    assert readings[Signal.IN_FLIGHT] == Unknown(Cause.EMPTY, "no pod that should have a page")
    assert set(readings) == set(Signal)


def test_a_gauge_that_only_some_pods_show_is_partial() -> None:
    pods = Pods(a=vllm(0, running=5), b=[line for line in vllm(0) if line.name != "vllm:num_requests_running"])
    reading = Watch(pods).at(0)[Signal.IN_FLIGHT]
    assert reading == Unknown(Cause.PARTIAL, "vllm:num_requests_running only on 1 of 2 pages")


def test_pods_before_and_after_a_rename_are_read_side_by_side() -> None:
    pods = Pods(old=engines.vllm(renamed=False), new=engines.vllm(renamed=True))
    assert value(Watch(pods).at(0)[Signal.KV_USAGE]) == 0.4375


def test_both_names_of_a_rename_on_one_page_count_once() -> None:
    own = {"model_name": MODEL, "engine": "0"}
    both = [*vllm(0), level("vllm:gpu_cache_usage_perc", 0.5, **own)]
    assert value(Watch(Pods(a=both)).at(0)[Signal.KV_USAGE]) == 0.5


def test_a_renamed_metric_is_empty_and_told_by_name() -> None:
    lines = [dataclasses.replace(line, name=line.name.replace("running", "active")) for line in vllm(0)]
    reading = Watch(Pods(a=lines)).at(0)[Signal.IN_FLIGHT]
    assert reading == Unknown(Cause.EMPTY, "no vllm:num_requests_running on 1 pages")


def test_the_ranks_of_data_parallel_engines_add_up_and_their_caches_are_averaged() -> None:
    ranks = [
        line
        for rank, usage in (("0", 0.2), ("1", 0.6))
        for line in (
            level("vllm:num_requests_running", 7, model_name=MODEL, engine=rank),
            level("vllm:kv_cache_usage_perc", usage, model_name=MODEL, engine=rank),
        )
    ]
    readings = Watch(Pods(a=ranks)).at(0)
    assert value(readings[Signal.IN_FLIGHT]) == 14
    assert value(readings[Signal.KV_USAGE]) == pytest.approx(0.4)


def test_tensor_parallel_ranks_repeat_the_same_requests() -> None:
    lines = [
        level("sglang:num_running_reqs", 7, model_name=MODEL, tp_rank=tensor, dp_rank=data)
        for tensor in ("0", "1")
        for data in ("0", "1")
    ]
    watch = Watch(Pods(a=lines), cluster_objects.target(engine="sglang", model=MODEL))
    assert value(watch.at(0)[Signal.IN_FLIGHT]) == 14


def test_pages_of_another_model_are_empty_and_name_it() -> None:
    watch = Watch(Pods(a=vllm(0)), cluster_objects.target(model="other/model"))
    assert watch.at(0)[Signal.IN_FLIGHT] == Unknown(Cause.EMPTY, f"the pages are those of model {MODEL}")


@pytest.mark.parametrize(
    ("shown", "expected"), [(math.nan, Cause.NOT_FINITE), (math.inf, Cause.NOT_FINITE), (-1.0, Cause.NEGATIVE)]
)
def test_a_gauge_that_cannot_be_is_unknown(shown: float, expected: Cause) -> None:
    assert cause(Watch(Pods(a=vllm(0, running=shown))).at(0)[Signal.IN_FLIGHT]) is expected


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


def test_a_quantile_beyond_the_last_bucket_is_the_largest_bound() -> None:
    own = {"model_name": MODEL, "engine": "0"}
    slow = histogram("vllm:time_to_first_token_seconds", {"1.0": 0.0, "2.5": 0.1, "+Inf": 1.0}, **own)
    watch = Watch(Pods(a=slow))
    watch.at(0)
    assert value(watch.at(10)[Signal.TTFT_P95]) == 2.5


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


def test_an_engine_without_recipes_is_not_asked_for() -> None:
    readings = Watch(Pods(a=[]), cluster_objects.target(engine="unheard-of")).at(0)
    assert {cause(reading) for reading in readings.values()} == {Cause.NOT_ASKED}


def test_signals_an_engine_does_not_show_are_not_asked_for_even_when_it_is_down() -> None:
    pods = Pods(a=[])
    pods.broken["a"] = failing(TimeoutError("slow"))
    readings = Watch(pods, cluster_objects.target(engine="llamacpp", model="")).at(0)
    assert cause(readings[Signal.ARRIVALS]) is Cause.NOT_ASKED
    assert cause(readings[Signal.IN_FLIGHT]) is Cause.SOURCE_DOWN


def test_there_is_no_history_in_pages() -> None:
    watch = Watch(Pods(a=vllm(0)))
    answers = watch.source.history([watch.target], Signal.ARRIVALS, since=0, until=100, step=10)
    assert answers == {watch.target.key: Unknown(Cause.EMPTY, "pages keep no history")}


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
    )
)
def test_whatever_pods_come_go_and_restart_arrivals_are_never_negative_nor_more_than_was_counted(
    steps: list[list[tuple[str, int, int]]],
) -> None:
    pods = Pods()
    watch = Watch(pods, window=1e6)
    counts: dict[str, int] = {}
    for number, step in enumerate(steps):
        shown = {pod: (more, waiting) for pod, more, waiting in step}
        counts = {pod: counts.get(pod, 0) + more for pod, (more, _) in shown.items()}
        pods.lines = {pod: vllm(counts[pod], waiting=shown[pod][1]) for pod in shown}
        reading = watch.at(10.0 * number)[Signal.ARRIVALS]
        if isinstance(reading, Known):
            most = sum(more + waiting for earlier in steps for _, more, waiting in earlier)
            assert 0 <= reading.value * 10 * number <= most + 1e-6


def engine_of(sample: Path) -> str:
    return sample.name.split("_")[0]


def read_sample(sample: Path) -> dict[Signal, float]:
    """Signals of a page and, ten seconds later, of the same with all counters doubled."""
    engine = CATALOG[engine_of(sample)]
    page = sample.read_text()
    models = [
        line.split(f'{engine.model}="')[1].split('"')[0] for line in page.splitlines() if f'{engine.model}="' in line
    ]
    target = cluster_objects.target(engine=engine.name, model=models[0] if engine.model else "")
    shown = [page]
    source = scrape.ScrapeSource(SERIAL, CATALOG, pages=lambda _: [scrape.Page("a", "a")], fetch=lambda _: shown[0])
    source.read([target], now=0)
    shown[0] = doubled(page)
    readings = source.read([target], now=10)[target.key]
    return {signal: reading.value for signal, reading in readings.items() if isinstance(reading, Known)}


def doubled(page: str) -> str:
    ends = ("_total", "_count", "_sum", "_bucket", "_success", "_failure")
    lines = []
    for line in page.splitlines():
        series, _, shown = line.rpartition(" ")
        counter = not line.startswith("#") and series.split("{")[0].endswith(ends)
        lines.append(f"{series} {2 * float(shown)}" if counter else line)
    return "\n".join([*lines, ""])


SAMPLE_FILES = sorted(
    path
    for pattern in ("vllm_*", "sglang_*", "tgi_*", "lmdeploy_*", "trtllm_*")
    for path in SAMPLES.glob(f"{pattern}.prom")
)


@pytest.mark.skipif(not SAMPLE_FILES, reason=f"no sample pages of the engines in {SAMPLES}")
@pytest.mark.parametrize("sample", SAMPLE_FILES, ids=lambda path: path.stem)
def test_the_page_of_every_version_yields_every_signal(sample: Path) -> None:
    signals = read_sample(sample)
    assert set(signals) == {*Signal} - {Signal.REPORTING}  # a missing page is told apart by itself
    assert signals[Signal.ARRIVALS] > 0
    assert 0 <= signals[Signal.KV_USAGE] <= 1
    if "real" not in sample.name:
        ranks = 2 if sample.stem.startswith("vllm_0.33.0_dp2") else 1
        assert signals[Signal.IN_FLIGHT] == (13 if ranks == 2 else 7)


def over_http(answer: prometheus_api.Answer, *, workers: int) -> Reading:
    """In flight, with one page as given and one that is healthy."""
    healthy = prometheus_api.Answer(exposition.page(vllm(0, running=7)).encode())
    with prometheus_api.PrometheusApi(lambda request: answer if request.path == "/b" else healthy) as pods:
        addresses = [scrape.Page(name, f"{pods.url}/{name}") for name in ("a", "b")]
        settings = scrape.ScrapeSettings(timeout=1.0, workers=workers)
        source = scrape.ScrapeSource(settings, CATALOG, pages=lambda _: addresses)
        target = cluster_objects.target(model=MODEL)
        reading = source.read([target], now=0)[target.key][Signal.IN_FLIGHT]
        source.close()
        return reading


@pytest.mark.parametrize("workers", [1, 4])
def test_pages_are_read_over_http(workers: int) -> None:
    answer = prometheus_api.Answer(exposition.page(vllm(0, running=5)).encode())
    assert over_http(answer, workers=workers) == Known(12.0, 0)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (prometheus_api.Answer(b"gone", status=404), "404 Client Error"),
        (prometheus_api.Answer(exposition.page(vllm(0)).encode(), cut=300), "IncompleteRead"),
        (prometheus_api.Answer(exposition.page(vllm(0)).encode(), status=500), "500 Server Error"),
        (prometheus_api.Answer(b"{}\n", headers={"Content-Type": "application/json"}), "none of the engine's series"),
    ],
)
def test_a_page_that_is_refused_or_cut_off_counts_as_missing(answer: prometheus_api.Answer, told: str) -> None:
    reading = over_http(answer, workers=4)
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.PARTIAL
    assert told in reading.detail


def test_a_pod_that_drips_its_page_is_given_up() -> None:
    slow = prometheus_api.Answer(exposition.page(vllm(0)).encode(), dripping=True)  # some 50 s in all
    start = time.monotonic()
    assert cause(over_http(slow, workers=4)) is Cause.PARTIAL
    assert time.monotonic() - start < 5.0
