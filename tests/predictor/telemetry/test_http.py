"""The pages, through a real client on loopback."""

import math
import socket
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
import requests
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from predictor.errors import ListenError
from predictor.telemetry import http, pages
from predictor.telemetry.metrics import Metrics

Serve = Callable[..., str]


def nothing() -> Sequence[str]:
    return ()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves pages from these sources and returns the address."""
    servers: list[http.Server] = []

    def start(routes: Sequence[Route] = (), **sources: object) -> str:
        given = {"registry": Metrics().registry, "dead": nothing, "missing": nothing, "state": dict, **sources}
        application = pages.application(pages.Sources(**given), routes)  # type: ignore[arg-type]
        servers.append(http.Server(application, host="127.0.0.1", port=0))
        servers[-1].start()
        return servers[-1].url

    yield start
    for server in servers:
        server.stop()


def get(url: str, **headers: str) -> requests.Response:
    return requests.get(url, headers=headers, timeout=10)


def test_metrics_are_served_as_prometheus_asks_for_them(serve: Serve) -> None:
    url = serve()
    plain = get(f"{url}/metrics")
    assert plain.headers["Content-Type"].startswith("text/plain")
    assert "floorcast_build_info{version=" in plain.text
    assert "process_resident_memory_bytes" in plain.text
    newer = get(f"{url}/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert newer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert newer.text.endswith("# EOF\n")


def test_alive_until_a_loop_stands_still_and_then_503_says_why(serve: Serve) -> None:
    problems: list[str] = []
    url = serve(dead=lambda: problems)
    assert (get(f"{url}/healthz").status_code, get(f"{url}/healthz").json()) == (200, {"status": "alive"})
    problems.append("the slow loop last finished 200 s ago")
    answer = get(f"{url}/healthz")
    assert (answer.status_code, answer.json()) == (503, {"status": "dead", "problems": problems})


def test_ready_once_nothing_is_missing(serve: Serve) -> None:
    missing = ["the history has not been loaded yet"]
    url = serve(missing=lambda: missing)
    answer = get(f"{url}/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "missing", "problems": missing})
    missing.clear()
    assert (get(f"{url}/readyz").status_code, get(f"{url}/readyz").json()) == (200, {"status": "ready"})


def test_state_is_json_where_what_is_not_known_is_null(serve: Serve) -> None:
    state = {"series": [1.0, math.nan], "deep": {"limit": math.inf, 3: (True, None, "x")}}
    answer = get(f"{serve(state=lambda: state)}/api/state")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json() == {"series": [1.0, None], "deep": {"limit": None, "3": [True, None, "x"]}}


def test_further_pages_are_served_beside_ours(serve: Serve) -> None:
    def page(_request: Request) -> Response:
        return PlainTextResponse("hello")

    url = serve(routes=[Route("/", page)])
    assert get(f"{url}/").text == "hello"
    assert get(f"{url}/healthz").status_code == 200


def test_nothing_can_be_posted(serve: Serve) -> None:
    url = serve()
    assert requests.post(f"{url}/api/state", timeout=10).status_code == 405
    assert get(f"{url}/api/other").status_code == 404


def test_a_port_in_use_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = http.Server(pages.application(sources()), host="127.0.0.1", port=port)
        with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{port}: .*set server.port"):
            server.start()
        server.stop()


def test_a_host_that_is_not_ours_is_a_clear_error() -> None:
    with pytest.raises(ListenError, match="set server"):
        http.Server(pages.application(sources()), host="192.0.2.1", port=0).start()


def test_a_host_that_no_one_knows_is_a_clear_error() -> None:
    with pytest.raises(ListenError, match=r"cannot listen on nowhere\.invalid:0: .*set server"):
        http.Server(pages.application(sources()), host="nowhere.invalid", port=0).start()


def test_the_port_is_free_again_and_the_thread_gone_after_stop() -> None:
    with http.Server(pages.application(sources()), host="127.0.0.1", port=0) as server:
        assert get(f"{server.url}/healthz").status_code == 200
        port = server.port
    server.stop()  # a second time does no harm
    assert "http" not in {thread.name for thread in threading.enumerate()}
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_stopping_does_not_wait_for_a_client_that_keeps_its_connection() -> None:
    server = http.Server(pages.application(sources()), host="127.0.0.1", port=0)
    server.start()
    with requests.Session() as session:
        session.get(f"{server.url}/healthz", timeout=10)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        stopping.join(http.GRACE + 2)
        assert not stopping.is_alive()


def test_a_server_that_was_not_started_has_no_port() -> None:
    server = http.Server(pages.application(sources()), host="127.0.0.1", port=0)
    with pytest.raises(RuntimeError, match="not been started"):
        _ = server.port


def test_a_decision_is_explained_by_the_name_of_its_target(serve: Serve) -> None:
    url = serve(explain=lambda key: {"target": key} if key == "llm/chat" else None)
    assert get(f"{url}/api/explain/llm/chat").json() == {"target": "llm/chat"}
    missing = get(f"{url}/api/explain/llm/none")
    assert (missing.status_code, missing.json()) == (404, {"problem": "no decision has been made for llm/none"})


def sources() -> pages.Sources:
    return pages.Sources(registry=Metrics().registry, dead=nothing, missing=nothing, state=dict)
