"""Every query of the catalogue, answered by a real Prometheus from a past written for the purpose."""

import math
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from models.capacity import mix
from models.series import Series
from models.signals import Cause, Known, Signal, Unknown
from predictor import recalling
from predictor.signals import catalog, prometheus, shelf
from predictor.targets import Target
from tests.fakes import cluster_objects, engines, exposition
from tests.servers import prometheus as servers

CATALOG = shelf.load()
INTERVAL = 15
NOW = math.floor(time.clock_gettime(time.CLOCK_REALTIME)) // 60 * 60 - 60
AT = NOW - INTERVAL  # when readings are taken
ZERO = AT - 600  # the lines' own time 0
SHAPES = engines.shapes(at=600)
TWICE = "-twice"  # namespaces whose pods two jobs scrape, at different moments


def target_in(namespace: str) -> Target:
    shape = SHAPES[namespace.removesuffix(TWICE)]
    return cluster_objects.target(namespace, namespace=namespace, engine=shape.engine, model=shape.model)


def labelled(lines: Sequence[exposition.Line], namespace: str, pod: str, job: str) -> list[exposition.Line]:
    scrape = {"namespace": namespace, "pod": pod, "job": job, "instance": f"{pod}:{job}"}
    return [line.labelled(**scrape) for line in lines]


def scraped(namespace: str, job: str) -> list[exposition.Line]:
    shape = SHAPES[namespace.removesuffix(TWICE)]
    pods = [line for pod in ("pod-0", "pod-1") for line in labelled(shape.lines, namespace, pod, job)]
    return pods + labelled(shape.others, namespace, "gateway-0", job)


def long_past() -> str:
    """Ten days of one gauge, a sample a minute, with a hole of two hours: value = minutes since the start."""
    start = NOW - 10 * 86400
    own = f'{{namespace="long",pod="pod-0",model_name="{exposition.MODEL}",engine="0"}}'
    minutes = [minute for minute in range(10 * 1440) if not 7200 <= minute < 7320]
    lines = [f"vllm:num_requests_running{own} {minute} {start + 60 * minute}" for minute in minutes]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.PrometheusServer]:
    try:
        made = servers.PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    except servers.UnavailableError as error:
        pytest.skip(str(error))
    once = [line for namespace in SHAPES for line in scraped(namespace, "pods")]
    twice = [line for namespace in SHAPES for line in scraped(namespace + TWICE, "pods")]
    again = [line for namespace in SHAPES for line in scraped(namespace + TWICE, "services")]
    made.backfill(exposition.past(once + twice, range(ZERO, AT + 1, INTERVAL), zero=ZERO))
    made.backfill(exposition.past(again, range(ZERO - 7, AT + 1, INTERVAL), zero=ZERO))
    made.backfill(long_past())
    with made:
        yield made


@pytest.fixture
def source(server: servers.PrometheusServer) -> Iterator[prometheus.PrometheusSource]:
    opened = prometheus.PrometheusSource(settings(server), CATALOG)
    yield opened
    opened.close()


def settings(server: servers.PrometheusServer, **changes: object) -> prometheus.PrometheusSettings:
    values = {"url": server.url, "scrape_interval": float(INTERVAL), "clock_tolerance": 1e9, "timeout": 30.0}
    return prometheus.PrometheusSettings(**{**values, "budget": 60.0, **changes})  # type: ignore[arg-type]


def test_every_query_parses(tmp_path: Path) -> None:
    queries = [
        engine.render(query, catalog.Asking(selector=selector))
        for selector in ("", 'cluster="a"')
        for engine in CATALOG.values()
        for query in (engine.fresh, engine.duplicates, *(way.query for ways in engine.queries.values() for way in ways))
    ]
    rules = [{"record": f"r{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "catalogue", "rules": rules}]}))
    checked = subprocess.run(  # noqa: S603  (the file above)
        [servers.ensure().promtool, "check", "rules", file], check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    assert f"{len(queries)} rules found" in checked.stdout


def expected_of(namespace: str) -> dict[Signal, float]:
    """What a shape says, and that both of its pods report where the engine's file asks for that."""
    shape = SHAPES[namespace]
    reporting = {Signal.REPORTING: 2.0} if Signal.REPORTING in CATALOG[shape.engine].queries else {}
    return {**shape.signals, **reporting}


@pytest.mark.parametrize("namespace", SHAPES)
def test_signals_are_correct_to_the_arithmetic(namespace: str, source: prometheus.PrometheusSource) -> None:
    target = target_in(namespace)
    readings = source.read([target], now=NOW)[target.key]
    unknown = {signal: reading for signal, reading in readings.items() if isinstance(reading, Unknown)}
    assert {reading.cause for reading in unknown.values()} <= {Cause.NOT_ASKED}, unknown
    given = {signal: reading.value for signal, reading in readings.items() if isinstance(reading, Known)}
    assert given == pytest.approx(expected_of(namespace), rel=1e-6)


@pytest.mark.parametrize("namespace", SHAPES)
def test_a_pod_scraped_by_two_jobs_counts_once(namespace: str, source: prometheus.PrometheusSource) -> None:
    target = target_in(namespace + TWICE)
    readings = source.read([target], now=NOW)[target.key]
    given = {signal: reading.value for signal, reading in readings.items() if isinstance(reading, Known)}
    expected = expected_of(namespace)
    # The second job's last sample of the rising queue is 7 s older: the larger one is taken.
    assert given == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("namespace", ["vllm-new", "vllm-old"])
def test_sizes_of_requests_are_known_from_the_past(namespace: str, source: prometheus.PrometheusSource) -> None:
    """Ten minutes of 800 prompt and 150 generated tokens a second, and .4 requests that end."""
    target = target_in(namespace)
    found = recalling.past(source, [target], now=NOW, lag=60)[target.key]
    assert isinstance(found, mix.Mix)
    assert mix.known(found)
    assert found.prompt / found.taken == pytest.approx(2000, rel=0.01)
    assert found.output / found.served == pytest.approx(375, rel=0.01)


def test_sizes_of_an_engine_that_counts_tokens_at_the_end_are_not_known(source: prometheus.PrometheusSource) -> None:
    target = target_in("tgi")
    assert recalling.past(source, [target], now=NOW, lag=60)[target.key] == Unknown(
        Cause.NOT_ASKED, "tgi has no query for it"
    )


def test_double_scraping_is_found_out(source: prometheus.PrometheusSource) -> None:
    targets = [target_in(namespace + suffix) for namespace in SHAPES for suffix in ("", TWICE)]
    found = source.scraped_twice(targets, now=NOW)
    assert found["vllm-new-twice/vllm-new-twice"] == 2  # pods
    assert set(found) == {target.key for target in targets if target.namespace.endswith(TWICE)}


def test_one_look_answers_for_all_targets_and_says_which_way_matched(source: prometheus.PrometheusSource) -> None:
    targets = [target_in(namespace) for namespace in SHAPES]
    readings = source.read(targets, now=NOW)
    assert set(readings) == {target.key for target in targets}
    assert all(set(of_one) == set(Signal) for of_one in readings.values())
    matched = {key.split("/")[0]: way for (key, signal), way in source.matched.items() if signal is Signal.ARRIVALS}
    assert matched["vllm-new"] == "first_tokens"
    assert matched["vllm-routed"] == "router"
    assert matched["sglang"] == "http_requests"
    assert matched["llm-d"] == matched["gateway"] == "picker"


def test_a_target_without_series_is_empty_and_not_zero(source: prometheus.PrometheusSource) -> None:
    absent = cluster_objects.target("absent", namespace="nowhere", model=exposition.MODEL)
    present = target_in("vllm-new")
    readings = source.read([absent, present], now=NOW)
    reading = readings[absent.key][Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.EMPTY
    assert "nowhere" in reading.detail
    assert isinstance(readings[present.key][Signal.IN_FLIGHT], Known)


def test_a_target_that_names_no_model_takes_the_only_one_of_its_namespace(source: prometheus.PrometheusSource) -> None:
    target = cluster_objects.target("any", namespace="vllm-new", model="")
    assert source.read([target], now=NOW)[target.key][Signal.IN_FLIGHT] == Known(14.0, AT)


def test_two_targets_of_one_model_and_namespace_are_told_apart_or_unknown(source: prometheus.PrometheusSource) -> None:
    one, other = (
        cluster_objects.target(name, namespace="vllm-new", model=exposition.MODEL) for name in ("one", "other")
    )
    reading = source.read([one, other], now=NOW)[one.key][Signal.ARRIVALS]
    assert isinstance(reading, Unknown)
    assert "vllm-new/one, vllm-new/other share their series" in reading.detail


def test_series_that_stopped_are_stale_although_the_server_still_shows_them(
    source: prometheus.PrometheusSource,
) -> None:
    target = target_in("vllm-new")
    # 60 s after the last sample an instant query still answers: it looks back for 5 minutes.
    reading = source.read([target], now=NOW + 60)[target.key][Signal.IN_FLIGHT]
    assert reading == Unknown(Cause.STALE, "the newest sample was 60 s old, the limit is 30 s")


def test_a_reading_carries_the_time_of_its_newest_sample(source: prometheus.PrometheusSource) -> None:
    target = target_in("vllm-new")
    reading = source.read([target], now=NOW + 9)[target.key][Signal.IN_FLIGHT]
    assert reading == Known(14.0, AT)


def test_an_own_query_replaces_those_of_the_catalogue(server: servers.PrometheusServer) -> None:
    own = {"vllm": {"in_flight": "sum by ($by) (2 * max by ($each) (vllm:num_requests_running{$sel}))"}}
    source = prometheus.PrometheusSource(settings(server), shelf.load(overrides=own))
    target = target_in("vllm-new")
    assert source.read([target], now=NOW)[target.key][Signal.IN_FLIGHT] == Known(28.0, AT)
    assert source.matched[target.key, Signal.IN_FLIGHT] == "override"
    source.close()


def test_a_query_the_server_cannot_parse_leaves_other_signals_alone(server: servers.PrometheusServer) -> None:
    own = {"vllm": {"in_flight": "sum by ($by) ("}}
    source = prometheus.PrometheusSource(settings(server), shelf.load(overrides=own))
    target = target_in("vllm-new")
    readings = source.read([target], now=NOW)[target.key]
    reading = readings[Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.SOURCE_DOWN
    assert "HTTP 400: bad_data" in reading.detail
    assert isinstance(readings[Signal.WAITING], Known)
    source.close()


def test_ten_days_come_in_pieces_below_the_servers_limit(server: servers.PrometheusServer) -> None:
    source = prometheus.PrometheusSource(settings(server, scrape_interval=60.0), CATALOG)
    target = cluster_objects.target("long", namespace="long", model=exposition.MODEL)
    since = NOW - 10 * 86400
    answer = source.history([target], Signal.IN_FLIGHT, since=since, until=NOW - 60, step=60.0)[target.key]
    assert isinstance(answer, Series)
    assert len(answer) == 14_400  # more than the 11 000 that one query may have
    assert answer.start == since
    assert answer.values[[0, 1, 7199, 7320, 14_399]].tolist() == [0, 1, 7199, 7320, 14_399]
    source.close()


def test_a_hole_stays_a_hole_although_the_server_fills_five_minutes_of_it(server: servers.PrometheusServer) -> None:
    source = prometheus.PrometheusSource(settings(server, scrape_interval=60.0), CATALOG)
    target = cluster_objects.target("long", namespace="long", model=exposition.MODEL)
    hole = NOW - 10 * 86400 + 7200 * 60
    answer = source.history([target], Signal.IN_FLIGHT, since=hole - 600, until=hole + 7800, step=60.0)[target.key]
    assert isinstance(answer, Series)
    # Two scrape intervals old is the limit: two points after the last sample hold it, the third does not.
    assert answer.values[9:13].tolist()[:2] == [7199, 7199]
    assert math.isnan(answer.values[12])
    assert math.isnan(answer.values[129])
    assert answer.values[130] == 7320
    source.close()


def test_history_from_before_the_first_sample_is_unknown_and_its_span_as_asked(
    server: servers.PrometheusServer,
) -> None:
    source = prometheus.PrometheusSource(settings(server, scrape_interval=60.0), CATALOG)
    target = cluster_objects.target("long", namespace="long", model=exposition.MODEL)
    since = NOW - 12 * 86400
    answer = source.history([target], Signal.IN_FLIGHT, since=since, until=NOW - 60, step=300.0)[target.key]
    assert isinstance(answer, Series)
    assert answer.start == math.ceil(since / 300) * 300
    assert answer.known == pytest.approx(10 * 288 - 24, abs=2)
    assert math.isnan(answer.values[0])
    source.close()


def test_history_of_what_was_never_there_is_empty(source: prometheus.PrometheusSource) -> None:
    target = cluster_objects.target("absent", namespace="nowhere", model=exposition.MODEL)
    answer = source.history([target], Signal.IN_FLIGHT, since=NOW - 3600, until=NOW, step=60.0)[target.key]
    assert isinstance(answer, Unknown)
    assert answer.cause is Cause.EMPTY


def test_history_goes_through_renames_for_all_targets_at_once(source: prometheus.PrometheusSource) -> None:
    targets = [target_in("vllm-old"), target_in("vllm-new"), target_in("tgi")]
    answers = source.history(targets, Signal.KV_USAGE, since=AT - 300, until=AT, step=30.0)
    values = {key: series.values[-1] for key, series in answers.items() if isinstance(series, Series)}
    assert values == {targets[0].key: 0.4375, targets[1].key: 0.4375, targets[2].key: 0.25}
