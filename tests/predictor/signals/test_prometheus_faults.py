"""What a Prometheus, or something that stands in its place, may do wrong: never an exception, never a number."""

import dataclasses
import json
import time
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from models.series import Series
from models.signals import Cause, Known, Signal, Unknown
from predictor.signals import prometheus, transport
from tests.fakes.prometheus_answers import (
    AT,
    CATALOG,
    LABELS,
    NOW,
    TARGET,
    always,
    healthy,
    only,
    read,
    settings,
    values,
)
from tests.fakes.prometheus_api import Answer, PrometheusApi, refusal, result, row


@pytest.fixture
def api() -> Iterator[PrometheusApi]:
    with PrometheusApi(healthy) as served:
        yield served


RUNNING = "max by (namespace, pod, model_name, engine) (vllm:num_requests_running"

FIRST_TOKENS = "rate(vllm:time_to_first_token_seconds_count"


def test_a_healthy_answer_is_known_at_the_time_of_its_sample(api: PrometheusApi) -> None:
    assert read(api)[Signal.IN_FLIGHT] == Known(7.0, AT - 5)


@pytest.mark.parametrize(
    ("value", "cause"),
    [("NaN", Cause.NOT_FINITE), ("+Inf", Cause.NOT_FINITE), ("-Inf", Cause.NOT_FINITE), ("-3", Cause.NEGATIVE)],
)
def test_a_value_that_cannot_be_is_not_a_number(api: PrometheusApi, value: str, cause: Cause) -> None:
    api.respond = only(RUNNING, values(value))
    readings = read(api)
    reading = readings[Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert reading.cause is cause
    assert isinstance(readings[Signal.WAITING], Known)


def test_a_null_value_is_not_zero(api: PrometheusApi) -> None:
    api.respond = only(RUNNING, result([{"metric": LABELS, "value": None}]))
    assert read(api)[Signal.IN_FLIGHT] == Unknown(Cause.NOT_FINITE, "nan")


def test_zero_is_known_to_be_zero(api: PrometheusApi) -> None:
    api.respond = only(RUNNING, values(0))
    assert read(api)[Signal.IN_FLIGHT] == Known(0.0, AT - 5)


def test_an_empty_vector_is_not_zero(api: PrometheusApi) -> None:
    api.respond = only(RUNNING, result([]))
    reading = read(api)[Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.EMPTY


def test_arrivals_just_below_zero_are_zero_for_a_delta_may_dip(api: PrometheusApi) -> None:
    api.respond = only("num_incoming", values(-0.02))
    assert read(api)[Signal.ARRIVALS] == Known(0.0, AT - 5)


def test_a_cache_usage_in_percent_becomes_a_share(api: PrometheusApi) -> None:
    api.respond = only("kv_cache_usage_perc", values(43.75))
    assert read(api)[Signal.KV_USAGE] == Known(0.4375, AT - 5)


def test_the_second_way_is_asked_where_the_first_knows_nothing(api: PrometheusApi) -> None:
    api.respond = lambda request: (
        values(3) if "request_success_total" in request.query
        else result([]) if FIRST_TOKENS in request.query or "num_incoming" in request.query
        else healthy(request)
    )  # fmt: skip
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    assert source.read([TARGET], now=NOW)[TARGET.key][Signal.ARRIVALS] == Known(3.0, AT - 5)
    assert source.matched[TARGET.key, Signal.ARRIVALS] == "completions"
    source.close()


def test_a_second_way_is_not_asked_because_the_first_failed(api: PrometheusApi) -> None:
    api.respond = only("num_incoming", refusal(422, "execution", "query timed out"))
    reading = read(api)[Signal.ARRIVALS]
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.SOURCE_DOWN
    assert not api.asked("delta(vllm:num_requests_running")


def test_warnings_mean_that_data_is_missing(api: PrometheusApi) -> None:
    partial = result([row(3, **LABELS)], warnings=["store 10.0.0.7 unavailable"])
    api.respond = only(RUNNING, partial)
    reading = read(api)[Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.PARTIAL
    assert "10.0.0.7" in reading.detail


def test_a_hint_about_the_query_is_no_warning(api: PrometheusApi) -> None:
    api.respond = only(RUNNING, result([row(3, **LABELS)], warnings=["PromQL info: metric might not be a counter"]))
    assert isinstance(read(api)[Signal.IN_FLIGHT], Known)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (refusal(500, "internal", "broken"), "HTTP 500: internal: broken"),
        (refusal(422, "execution", "too many samples"), "HTTP 422: execution: too many samples"),
        (refusal(200, "timeout", "query timed out"), "HTTP 200: timeout: query timed out"),
        (Answer(b"<html>Sign in</html>"), "no JSON of the query API: b'<html>"),
        (Answer(b"<html>Sign in</html>", status=302, headers={"Location": "/login"}), "HTTP 302"),
        (Answer(b'{"status":"success","data":{"result":[]}}', cut=20), "IncompleteRead"),
        (Answer(b'{"status":"success","data":{"resu'), "no JSON of the query API"),
        (Answer(b'{"status":"success"}'), "HTTP 200"),
        (Answer(b'{"status":"success","data":{"result":"7"}}'), "no list of series"),
        (Answer(b"[" * 100_000), "RecursionError"),
        (Answer(b"[1]"), "no JSON of the query API"),
        (Answer(b""), "no JSON of the query API"),
    ],
)
def test_an_answer_that_is_none_is_a_source_that_is_down(api: PrometheusApi, answer: Answer, told: str) -> None:
    api.respond = only(RUNNING, answer)
    readings = read(api)
    reading = readings[Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.SOURCE_DOWN
    assert told in reading.detail
    assert isinstance(readings[Signal.WAITING], Known)


def test_a_server_that_is_gone_leaves_every_signal_unknown(api: PrometheusApi) -> None:
    gone = dataclasses.replace(settings(api), url="http://127.0.0.1:1")
    source = prometheus.PrometheusSource(gone, CATALOG)
    readings = source.read([TARGET], now=NOW)[TARGET.key]
    causes = {reading.cause for reading in readings.values() if isinstance(reading, Unknown)}
    assert len(readings) == len(Signal)
    assert causes == {Cause.SOURCE_DOWN}
    reading = readings[Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert "no connection to http://127.0.0.1:1: Connection refused; see source.prometheus.url" in reading.detail
    source.close()


def test_a_server_that_hangs_costs_one_budget_and_no_more(api: PrometheusApi) -> None:
    api.hanging = True
    start = time.monotonic()
    readings = read(api, timeout=0.3, budget=1.0)
    assert time.monotonic() - start < 3.0
    assert {reading.cause for reading in readings.values() if isinstance(reading, Unknown)} == {Cause.SOURCE_DOWN}


def test_an_answer_that_drips_in_is_given_up(api: PrometheusApi) -> None:
    slow = dataclasses.replace(values(7), dripping=True)  # some 120 bytes at 20 a second
    api.respond = only(RUNNING, slow)
    start = time.monotonic()
    reading = read(api, timeout=0.5)[Signal.IN_FLIGHT]
    assert time.monotonic() - start < 3.0
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.SOURCE_DOWN


def test_a_passing_failure_is_tried_again_within_the_tick(api: PrometheusApi) -> None:
    failures = [refusal(503, "unavailable", "starting")]
    api.respond = lambda request: failures.pop() if RUNNING in request.query and failures else healthy(request)
    assert isinstance(read(api)[Signal.IN_FLIGHT], Known)


def test_a_lasting_failure_is_tried_a_few_times_and_a_refusal_once(api: PrometheusApi) -> None:
    api.respond = lambda request: (
        refusal(503, "unavailable", "down") if RUNNING in request.query
        else refusal(400, "bad_data", "no") if "kv_cache" in request.query
        else healthy(request)
    )  # fmt: skip
    read(api)
    assert len(api.asked(f"({RUNNING}")) == transport.ATTEMPTS
    assert len(api.asked("kv_cache")) == 1


def test_samples_older_than_two_scrapes_are_stale(api: PrometheusApi) -> None:
    api.respond = lambda request: (
        result([row(AT - 31, **LABELS)]) if "timestamp(" in request.query else healthy(request)
    )
    assert read(api)[Signal.IN_FLIGHT] == Unknown(Cause.STALE, "the newest sample was 31 s old, the limit is 30 s")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (refusal(422, "execution", "too many samples"), Cause.SOURCE_DOWN),
        (refusal(503, "unavailable", "shutting down"), Cause.SOURCE_DOWN),
        (Answer(b"<html>"), Cause.SOURCE_DOWN),
        (result([row(AT - 5, **LABELS)], warnings=["a store did not answer"]), Cause.PARTIAL),
    ],
)
def test_values_of_an_age_that_cannot_be_told_are_not_known(api: PrometheusApi, answer: Answer, cause: Cause) -> None:
    """A query looks back up to five minutes: without the age a pod that is gone still counts."""
    api.respond = lambda request: answer if "timestamp(" in request.query else healthy(request)
    readings = read(api)
    assert {reading.cause for reading in readings.values() if isinstance(reading, Unknown)} == {cause}
    assert not [reading for reading in readings.values() if isinstance(reading, Known)]


WORDS = ["status", "data", "result", "metric", "value", "values", "namespace", "model_name", "warnings", "error"]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("7"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)

ROWS = st.lists(
    st.fixed_dictionaries({"metric": st.just(LABELS) | JSON}, optional={"value": JSON, "values": JSON}), max_size=3
)


def success(rows: object) -> object:
    return {"status": "success", "data": {"result": rows}}


# One signal: every answer is read the same way, and each signal would cost some requests an example.
ONE = {
    name: dataclasses.replace(one, queries={Signal.IN_FLIGHT: one.queries[Signal.IN_FLIGHT]})
    for name, one in CATALOG.items()
}


@given(st.one_of(JSON.map(json.dumps), ROWS.map(lambda rows: json.dumps(success(rows)))))
@hypothesis.settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_server_says_it_becomes_a_reading_or_unknown(api: PrometheusApi, body: str) -> None:
    api.respond = always(Answer(body.encode()))
    source = prometheus.PrometheusSource(settings(api), ONE)
    readings = source.read([TARGET], now=NOW)[TARGET.key]
    past = source.history([TARGET], Signal.IN_FLIGHT, since=NOW - 600, until=NOW, step=30)[TARGET.key]
    source.close()
    assert all(isinstance(readings[signal], Known | Unknown) for signal in Signal)
    assert isinstance(past, Series | Unknown)
