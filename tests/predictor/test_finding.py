"""Targets that come and go by their label."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import structlog

from predictor import app
from predictor.cluster import discovery, marks
from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.finding import Finding
from predictor.settings.root import Settings
from predictor.settings.sections import Discovery
from predictor.telemetry.metrics import Metrics
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.prometheus_api import PrometheusApi, result
from tests.servers import waiting

MARKS = {marks.ORIGINAL: "2", marks.LAST_WRITTEN: "5"}
LABEL = {discovery.LABEL: "true"}
ANNOTATIONS = {"floorcast.dev/model": "n", "floorcast.dev/concurrency": "8"}


def put(api: FakeApiServer, name: str, *, labels: dict[str, str] | None = None, **annotations: str) -> None:
    thing = objects.deployment(name)
    named = {**ANNOTATIONS, **{f"floorcast.dev/{key}": value for key, value in annotations.items()}}
    thing["metadata"] |= {"labels": LABEL if labels is None else labels, "annotations": named}
    api.put("deployments", thing)


def until(happened: Callable[[], bool]) -> None:
    waiting.until(happened, within_s=60, what="that", every_s=0.1)


@contextmanager
def running(folder: Path, api: FakeApiServer, source: PrometheusApi) -> Iterator[str]:
    """The service in a thread of this process; gives its address."""
    (folder / "token").write_text("t")
    given = {
        "mode": "control",
        "loops": {"slow": 1, "fast": 0.5},
        "kubernetes": {"server": api.url, "token_file": str(folder / "token")},
        "source": {"prometheus": {"url": source.url, "timeout": 1, "budget": 1}},
        "server": {"host": "127.0.0.1", "port": 0},
        "targets": [{"namespace": "llm", "name": "chat", "model": "m", "capacity": {"concurrency": 32}}],
        "discovery": {"enabled": True, "every": 1},
    }
    with structlog.testing.capture_logs() as logs:
        service = app.Service(Settings.model_validate(given))
        thread = threading.Thread(target=service.run, daemon=True)
        thread.start()
        until(lambda: any(line["event"] == "started" for line in logs))
        yield next(line["url"] for line in logs if line["event"] == "started")
        service.stop()
        thread.join(30)
        assert not thread.is_alive()


def minimum(api: FakeApiServer, name: str) -> int:
    return int(api.objects["horizontalpodautoscalers", "llm", name]["spec"]["minReplicas"])


@pytest.mark.timeout(240)
def test_the_running_service_takes_up_what_is_labelled_and_gives_back_what_no_longer_is(tmp_path: Path) -> None:
    with FakeApiServer() as api, PrometheusApi(lambda _: result([])) as source:
        api.put("deployments", objects.deployment("chat"))
        put(api, "found")
        put(api, "broken", concurrency="many")
        for name in ("chat", "found"):
            api.put("horizontalpodautoscalers", objects.hpa(name, low=5, aim=name, annotations=MARKS))
        with running(tmp_path, api, source) as url:

            def targets() -> dict[str, dict[str, object]]:
                return dict(requests.get(f"{url}/api/state", timeout=30).json()["targets"])

            until(lambda: set(targets()) == {"llm/chat", "llm/found"})
            until(lambda: targets()["llm/found"]["decision"] is not None)
            page = requests.get(f"{url}/metrics", timeout=30).text
            assert "floorcast_discovered_targets 1.0" in page
            assert 'floorcast_discovery_refused{workload="llm/broken"} 1.0' in page

            put(api, "found", labels={})
            until(lambda: set(targets()) == {"llm/chat"})
            until(lambda: minimum(api, "found") == 2)
            assert minimum(api, "chat") == 5
            assert 'target="llm/found"' not in requests.get(f"{url}/metrics", timeout=30).text


def test_what_was_found_stays_while_the_cluster_cannot_be_asked(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with FakeApiServer() as server:
        put(server, "found")
        api = Api(Access(server=server.url, token_file=tmp_path / "token"))
        asked = Discovery(enabled=True)
        finding = Finding(api, asked=lambda: asked, stop=threading.Event(), metrics=Metrics())
        finding.look()
        assert [one.key for one in finding.found] == ["llm/found"]
        server.denied.add("list deployments")
        finding.look()
        assert [one.key for one in finding.found] == ["llm/found"]
        asked = Discovery()
        finding.look()
        assert finding.found == ()
        api.close()
