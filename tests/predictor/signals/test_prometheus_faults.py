"""What a Prometheus, or something that stands in its place, may do wrong: never an exception, never a number."""

import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from models.series import Series
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.signals import catalog, prometheus, shelf, transport
from predictor.targets import Target
from tests.fakes import cluster_objects
from tests.fakes.prometheus_api import Answer, PrometheusApi, Request, refusal, result, row

NOW = 1_800_000_000.0
AT = NOW - 15
CATALOG = shelf.load()
TARGET = cluster_objects.target(model="org/llama")
LABELS = {"namespace": "llm", "model_name": "org/llama"}


def healthy(request: Request) -> Answer:
    if request.query == "time()":
        return Answer(f'{{"status":"success","data":{{"resultType":"scalar","result":[{NOW},"{NOW}"]}}}}'.encode())
    if "timestamp(" in request.query:
        return result([row(AT - 5, **LABELS)])
    return result([row(7, **LABELS)])


@pytest.fixture
def api() -> Iterator[PrometheusApi]:
    with PrometheusApi(healthy) as served:
        yield served


def settings(api: PrometheusApi, **changes: object) -> prometheus.PrometheusSettings:
    values: dict[str, object] = {"url": api.url, "timeout": 5.0, "budget": 5.0, **changes}
    return prometheus.PrometheusSettings(**values)  # type: ignore[arg-type]


def read(api: PrometheusApi, target: Target = TARGET, **changes: object) -> dict[Signal, Reading]:
    source = prometheus.PrometheusSource(settings(api, **changes), CATALOG)
    try:
        return dict(source.read([target], now=NOW)[target.key])
    finally:
        source.close()


def only(part: str, answer: Answer) -> Callable[[Request], Answer]:
    """Gives `answer` to queries that contain the text and are not about the age of samples."""
    return lambda request: answer if part in request.query and "timestamp(" not in request.query else healthy(request)


def always(answer: Answer) -> Callable[[Request], Answer]:
    return lambda _: answer


def values(signal_value: object) -> Answer:
    return result([row(signal_value, **LABELS)])


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
    assert not api.asked("request_success_total")


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


def test_all_queries_of_a_tick_are_for_the_same_whole_second(api: PrometheusApi) -> None:
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    source.read([TARGET], now=NOW + 0.123456)
    source.close()
    assert {request.form["time"] for request in api.requests if request.query != "time()"} == {str(int(AT))}


def test_queries_travel_in_the_body_so_that_their_length_does_not_matter(api: PrometheusApi) -> None:
    read(api)
    assert {(request.method, request.in_url) for request in api.requests} == {("POST", "")}


def test_queries_travel_in_the_address_where_nothing_else_is_let_through(api: PrometheusApi) -> None:
    assert isinstance(read(api, method="GET")[Signal.IN_FLIGHT], Known)
    assert {request.method for request in api.requests} == {"GET"}


def test_the_number_of_queries_does_not_depend_on_the_number_of_targets(api: PrometheusApi) -> None:
    targets = [cluster_objects.target(f"t{n}", namespace=f"ns{n}", model="org/llama") for n in range(200)]
    rows = [row(n, namespace=f"ns{n}", model_name="org/llama") for n in range(200)]
    api.respond = lambda request: healthy(request) if request.query == "time()" else result(rows)
    source = prometheus.PrometheusSource(settings(api, clock_tolerance=1e12, scrape_interval=1e9), CATALOG)
    readings = source.read(targets, now=NOW)
    source.close()
    assert len(api.requests) == 1 + 1 + len(Signal)  # the clock, the age, and one a signal
    assert readings[targets[7].key][Signal.WAITING] == Known(7.0, pytest.approx(7, abs=1e10))


def test_clocks_that_differ_are_noticed_and_the_servers_is_used(api: PrometheusApi) -> None:
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    ours = NOW + 3600  # this machine is an hour ahead
    readings = source.read([TARGET], now=ours)[TARGET.key]
    source.close()
    assert {request.form["time"] for request in api.asked("num_requests_running")} == {str(int(AT))}
    assert readings[Signal.IN_FLIGHT] == Known(7.0, AT - 5 + 3600)  # told in our own time again


def test_clocks_that_differ_by_less_than_half_a_scrape_are_left_alone(api: PrometheusApi) -> None:
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    source.read([TARGET], now=NOW + 5)
    source.close()
    assert {request.form["time"] for request in api.asked("num_requests_running")} == {str(int(AT + 5))}


def test_a_token_file_is_read_again_for_each_request(api: PrometheusApi, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    source = prometheus.PrometheusSource(settings(api, bearer_token_file=token), CATALOG)
    source.read([TARGET], now=NOW)
    assert {request.headers["Authorization"] for request in api.requests} == {"Bearer first"}
    api.requests.clear()
    token.write_text("second\n")
    source.read([TARGET], now=NOW + 15)
    source.close()
    assert {request.headers["Authorization"] for request in api.requests} == {"Bearer second"}


def test_a_token_file_that_is_missing_is_told_by_name(api: PrometheusApi, tmp_path: Path) -> None:
    reading = read(api, bearer_token_file=tmp_path / "none")[Signal.IN_FLIGHT]
    assert isinstance(reading, Unknown)
    assert str(tmp_path / "none") in reading.detail
    assert not api.requests


def test_basic_authentication_and_own_headers_are_sent(api: PrometheusApi, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    read(api, username="me", password_file=password, headers={"X-Scope-OrgID": "team"})
    assert api.requests[0].headers["Authorization"] == "Basic bWU6c2VjcmV0"
    assert api.requests[0].headers["X-Scope-OrgID"] == "team"


def test_label_names_and_more_matchers_are_configurable(api: PrometheusApi) -> None:
    labels = catalog.Labels(namespace="kubernetes_namespace", pod="kubernetes_pod_name")
    api.respond = lambda request: (
        healthy(request)
        if request.query == "time()" or "timestamp(" in request.query
        else result([row(7, kubernetes_namespace="llm", model_name="org/llama")])
    )
    readings = read(api, labels=labels, selector='cluster="prod"')
    assert isinstance(readings[Signal.IN_FLIGHT], Known)
    query = api.asked("num_requests_running{")[0].query
    assert 'vllm:num_requests_running{server="",cluster="prod"}' in query
    assert "kubernetes_namespace, kubernetes_pod_name, model_name, engine" in query or "timestamp(" in query


def test_an_engine_that_is_not_in_the_catalogue_is_not_asked_for(api: PrometheusApi) -> None:
    readings = read(api, cluster_objects.target(engine="unheard-of"))
    assert set(readings) == set(Signal)
    assert {reading.cause for reading in readings.values() if isinstance(reading, Unknown)} == {Cause.NOT_ASKED}


def grid_answer(request: Request, *, limit: int = 11_000) -> Answer:
    """As a Prometheus answers range queries: as many points as asked, no more than the limit."""
    if "timestamp(" in request.query:
        return result([], kind="matrix")
    start, end, step = (int(request.form[name]) for name in ("start", "end", "step"))
    if (end - start) // step + 1 > limit:
        return refusal(400, "bad_data", f"exceeded maximum resolution of {limit} points per timeseries")
    points = [[time, str(time % 1000)] for time in range(start, end + 1, step)]
    return result([{"metric": LABELS, "values": points}], kind="matrix")


def history(api: PrometheusApi, *, since: float, until: float, step: float) -> Series | Unknown:
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    try:
        return source.history([TARGET], Signal.IN_FLIGHT, since=since, until=until, step=step)[TARGET.key]
    finally:
        source.close()


def test_history_comes_in_pieces_without_seams(api: PrometheusApi) -> None:
    api.respond = grid_answer
    answer = history(api, since=NOW - 86400 * 8, until=NOW, step=30)
    assert isinstance(answer, Series)
    assert len(answer) == 8 * 2880 + 1
    np.testing.assert_array_equal(answer.values, answer.times % 1000)
    pieces = [request for request in api.requests if "timestamp(" not in request.query]
    assert len(pieces) == 3
    assert all(
        value.isdigit() for request in pieces for value in map(request.form.get, ("start", "end", "step")) if value
    )


def test_history_is_asked_in_smaller_pieces_where_the_server_allows_fewer_points(api: PrometheusApi) -> None:
    api.respond = lambda request: grid_answer(request, limit=1500)
    answer = history(api, since=NOW - 86400 * 2, until=NOW, step=30)
    assert isinstance(answer, Series)
    assert answer.known == len(answer) == 5761


def test_history_that_is_too_much_even_in_the_smallest_pieces_is_empty_and_not_zero(api: PrometheusApi) -> None:
    api.respond = always(refusal(422, "execution", "query processing would load too many samples"))
    answer = history(api, since=NOW - 3600, until=NOW, step=30)
    assert isinstance(answer, Unknown)


def test_history_with_a_piece_that_cannot_be_had_has_a_hole_there(api: PrometheusApi) -> None:
    bad = NOW - 7200

    def respond(request: Request) -> Answer:
        inside = int(request.form["start"]) <= bad <= int(request.form["end"])
        return refusal(422, "execution", "corrupt block") if inside else grid_answer(request)

    api.respond = respond
    answer = history(api, since=NOW - 86400, until=NOW, step=30)
    assert isinstance(answer, Series)
    holes = np.isnan(answer.values)
    assert 1 <= holes.sum() <= 20
    assert holes[np.searchsorted(answer.times, bad)]


def test_history_of_a_server_that_is_down_is_unknown_so_that_it_is_asked_again(api: PrometheusApi) -> None:
    api.respond = always(refusal(503, "unavailable", "starting"))
    answer = history(api, since=NOW - 3600, until=NOW, step=30)
    assert isinstance(answer, Unknown)
    assert answer.cause is Cause.SOURCE_DOWN


def test_history_with_missing_parts_is_partial(api: PrometheusApi) -> None:
    api.respond = always(result([], kind="matrix", warnings=["store gone"]))
    answer = history(api, since=NOW - 3600, until=NOW, step=30)
    assert isinstance(answer, Unknown)
    assert answer.cause is Cause.PARTIAL


def test_what_is_no_number_in_the_history_is_a_hole(api: PrometheusApi) -> None:
    points = [[NOW - 60, "NaN"], [NOW - 30, "-1"], [NOW, "+Inf"], [NOW - 90, "4"]]
    api.respond = lambda request: (
        result([], kind="matrix")
        if "timestamp(" in request.query
        else result([{"metric": LABELS, "values": points}], kind="matrix")
    )
    answer = history(api, since=NOW - 90, until=NOW, step=30)
    assert isinstance(answer, Series)
    assert answer.values[0] == 4
    assert np.isnan(answer.values[1:]).all()


def test_a_step_with_a_fraction_is_asked_in_whole_seconds(api: PrometheusApi) -> None:
    api.respond = grid_answer
    answer = history(api, since=NOW - 30, until=NOW, step=2.5)
    assert isinstance(answer, Series)
    assert (answer.start, answer.step, len(answer)) == (NOW - 30, 2.5, 13)
    assert {request.form["step"] for request in api.requests} == {"2"}
    # Whole even seconds are asked: 2.5 shows what was at 2, 5 what was at 4.
    assert answer.values[:3].tolist() == [970, 972, 974]


def test_history_backwards_is_a_mistake_of_the_caller(api: PrometheusApi) -> None:
    with pytest.raises(ValueError, match="since before until"):
        history(api, since=NOW, until=NOW - 60, step=30)
    with pytest.raises(ValueError, match="step must be positive"):
        history(api, since=NOW - 60, until=NOW, step=math.nan)


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


@given(st.one_of(JSON.map(json.dumps), ROWS.map(lambda rows: json.dumps(success(rows)))))
@hypothesis.settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_server_says_it_becomes_a_reading_or_unknown(api: PrometheusApi, body: str) -> None:
    api.respond = always(Answer(body.encode()))
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    readings = source.read([TARGET], now=NOW)[TARGET.key]
    past = source.history([TARGET], Signal.IN_FLIGHT, since=NOW - 600, until=NOW, step=30)[TARGET.key]
    source.close()
    assert all(isinstance(readings[signal], Known | Unknown) for signal in Signal)
    assert isinstance(past, Series | Unknown)
