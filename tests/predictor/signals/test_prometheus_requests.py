"""How a Prometheus is asked: how often, when, in which words and as whom."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from models.signals import Cause, Known, Signal, Unknown
from predictor.signals import catalog, prometheus
from tests.fakes import cluster_objects
from tests.fakes.prometheus_answers import AT, CATALOG, NOW, TARGET, healthy, read, settings
from tests.fakes.prometheus_api import PrometheusApi, result, row


@pytest.fixture
def api() -> Iterator[PrometheusApi]:
    with PrometheusApi(healthy) as served:
        yield served


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
