"""Levels from pages: what is there, what is missing, and what is not a number."""

import dataclasses
import math

import pytest

from models.signals import Cause, Known, Signal, Unknown
from predictor.signals import scrape
from tests.fakes import cluster_objects, engines
from tests.fakes.exposition import MODEL, histogram, level
from tests.fakes.scraped import CATALOG, SERIAL, Pods, Watch, cause, failing, value, vllm


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
    shown = {signal: value for signal, value in shape.signals.items() if signal in CATALOG[shape.engine].pages}
    assert {*shape.signals} - {*shown} <= {Signal.COMPLETIONS}  # SGLang's pages do not tell live tokens from others
    assert given == pytest.approx(shown, rel=1e-9)
    assert all(reading.at == 60 for reading in readings.values() if isinstance(reading, Known))


def test_a_first_look_knows_levels_but_no_rates() -> None:
    readings = Watch(Pods(a=vllm(100, waiting=2, running=7))).at(0)
    assert value(readings[Signal.IN_FLIGHT]) == 7
    assert readings[Signal.ARRIVALS] == Unknown(Cause.EMPTY, "a first look: a rate lies between two")


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
    assert set(readings) == {*Signal} - {Signal.REPORTING}  # a page that is missing tells itself


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


def test_a_quantile_beyond_the_last_bucket_is_the_largest_bound() -> None:
    own = {"model_name": MODEL, "engine": "0"}
    slow = histogram("vllm:time_to_first_token_seconds", {"1.0": 0.0, "2.5": 0.1, "+Inf": 1.0}, **own)
    watch = Watch(Pods(a=slow))
    watch.at(0)
    assert value(watch.at(10)[Signal.TTFT_P95]) == 2.5


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
