import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import external_metrics
from tests.servers import http

BASE = "/apis/external.metrics.k8s.io/v1beta1"


def vector(*values: str) -> str:
    return json.dumps({"data": {"result": [{"metric": {}, "value": [1795967251.3, value]} for value in values]}})


@pytest.fixture
def prometheus() -> Iterator[dict[str, http.Answer]]:
    """Fill it with the answer."""
    said: dict[str, http.Answer] = {}
    with http.Server("127.0.0.1", 0, lambda _: said["answer"]) as server:
        said["url"] = http.Answer(f"http://127.0.0.1:{server.port}")
        yield said


@pytest.fixture
def metrics(tmp_path: Path, prometheus: dict[str, http.Answer]) -> external_metrics.Metrics:
    queries = external_metrics.Queries(tmp_path / "queries.json")
    queries.set("chat", "queue", prometheus=prometheus["url"].body, query="sum(waiting)")
    return external_metrics.Metrics(queries.path)


def test_answers_a_query_as_a_quantity(metrics: external_metrics.Metrics, prometheus: dict[str, http.Answer]) -> None:
    prometheus["answer"] = http.Answer(vector("1.2"))
    answer = metrics.answer(f"{BASE}/namespaces/chat/queue?labelSelector=")
    assert answer.status == 200
    (item,) = json.loads(answer.body)["items"]
    assert item == {"metricName": "queue", "metricLabels": {}, "timestamp": "2026-11-29T15:47:31Z", "value": "1200m"}


@pytest.mark.parametrize("values", [(), ("1", "2"), ("NaN",)])
def test_no_single_finite_sample_is_an_error_and_not_0(
    metrics: external_metrics.Metrics, prometheus: dict[str, http.Answer], values: tuple[str, ...]
) -> None:
    prometheus["answer"] = http.Answer(vector(*values))
    assert metrics.answer(f"{BASE}/namespaces/chat/queue").status == 503


def test_a_prometheus_in_trouble_is_an_error(
    metrics: external_metrics.Metrics, prometheus: dict[str, http.Answer]
) -> None:
    prometheus["answer"] = http.Answer("busy", 503)
    assert metrics.answer(f"{BASE}/namespaces/chat/queue").status == 503


def test_a_metric_belongs_to_its_namespace(metrics: external_metrics.Metrics) -> None:
    assert metrics.answer(f"{BASE}/namespaces/other/queue").status == 503


def test_says_what_it_is_and_nothing_about_other_paths(metrics: external_metrics.Metrics) -> None:
    assert json.loads(metrics.answer(BASE).body)["kind"] == "APIResourceList"
    assert metrics.answer("/openapi/v2").status == 404
