import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import pytest
import requests
from prometheus_client import parser

from models.fleet import entry
from predictor.demo import live, pages
from predictor.demo import stage as stages
from predictor.demo.options import DemoOptions
from predictor.demo.stage import Stage
from predictor.errors import ListenError


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The page of a demo that plays a quarter of an hour as fast as it can, and is then over."""
    options = DemoOptions(hours=0.25, minutes=0.01, port=0, days=1)
    entry.run()  # compiled, if it was not: that may take longer than this test waits
    stage, stop, told = Stage(options), threading.Event(), []
    with live.serving(stage, options) as server:
        source = pages.over_http(stage, base=server.url)
        player = threading.Thread(target=live.play, args=(stage, source), kwargs={"stop": stop, "tell": told.append})
        player.start()
        player.join(60)
        assert not player.is_alive()
        assert told[0].startswith("Preparing: compiling the simulated fleet")
        assert told[1].startswith("First decision: 1 -> ")
        yield server.url
    source.close()


def get(url: str) -> requests.Response:
    answer = requests.get(url, timeout=5)
    answer.raise_for_status()
    return answer


def test_the_page_and_all_it_needs_come_from_the_demo_itself(address: str) -> None:
    page = get(f"{address}/").text
    links = re.findall(r'(?:href|src)="([^"#]+)"', page)
    assert {"style.css", "app.js"} <= set(links)
    for link in links:
        assert link.startswith("data:") or get(f"{address}/{link.lstrip('/')}").content
    assert "charts.js" in get(f"{address}/app.js").text
    scripts = page + get(f"{address}/app.js").text + get(f"{address}/charts.js").text + get(f"{address}/style.css").text
    assert not re.findall(r"(?:src|href)=\"https?:|import\(?['\"]https?:|url\(['\"]?https?:", scripts)


def test_all_that_the_script_fills_in_is_on_the_page(address: str) -> None:
    filled = set(re.findall(r'\bat\("([^"]+)"\)', get(f"{address}/app.js").text))
    assert "room-legend" in filled
    assert filled <= set(re.findall(r'id="([^"]+)"', get(f"{address}/").text))


def test_the_state_has_both_fleets_the_band_and_the_last_decision(address: str) -> None:
    state = get(f"{address}/api/state").json()
    assert (state["over"], state["preparing"]) == (True, "")
    assert state["decision"]["reason"]
    assert state["changes"][-1]["before"] == 1
    assert len(state["news"]) == state["frames"] == 16  # one a minute, and midnight
    last = state["news"][-1]
    assert last["t"] == 900
    assert last["band"]["0.5"] <= last["band"]["0.95"]
    assert last["room"] is None  # a day of scores tells whether room serves better
    assert last["floorcast"]["requests"] == last["hpa"]["requests"]
    assert {replica["state"] for replica in state["floorcast"]} <= {"ready", "warming", "draining", "pending"}


def test_before_the_fleet_is_compiled_the_page_is_there_and_says_what_is_waited_for() -> None:
    options = DemoOptions(port=0)
    with live.serving(Stage(options), options) as server:
        assert "preparing" in get(f"{server.url}/").text
        state = get(f"{server.url}/api/state").json()
        assert state["preparing"] == stages.PREPARING
        assert (state["t"], state["frames"], state["decision"]) == (0, 0, None)
        assert [replica["state"] for replica in state["hpa"]] == ["warming"] * 2
        assert get(f"{server.url}/api/result").json()["floorcast"]["requests"] == 0


def test_only_what_is_new_is_sent(address: str) -> None:
    assert len(get(f"{address}/api/state?since=14").json()["news"]) == 2
    assert get(f"{address}/api/state?since=nonsense").json()["frames"] == 16


def test_the_scenario_and_the_result_are_told(address: str) -> None:
    scene = get(f"{address}/api/scenario").json()
    assert (scene["rival"], scene["owner"], scene["days_before"]) == ("queue", "hpa", 1)
    assert get(f"{address}/api/result").json()["simulated_seconds"] == 900


def test_each_ready_replica_has_a_metrics_page(address: str) -> None:
    ready = [r["name"] for r in get(f"{address}/api/state").json()["floorcast"] if r["state"] == "ready"]
    assert ready
    text = get(f"{address}/replicas/{ready[0]}/metrics").text
    assert "vllm:num_requests_running" in {family.name for family in parser.text_string_to_metric_families(text)}
    assert requests.get(f"{address}/replicas/nobody/metrics", timeout=5).status_code == 404


def test_a_port_that_is_taken_is_an_error_that_names_the_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = DemoOptions(port=taken.getsockname()[1])
        with pytest.raises(ListenError, match="--port"), live.serving(Stage(options), options):
            pass


def test_without_a_port_a_taken_usual_one_gives_way_to_a_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        monkeypatch.setattr(live, "USUAL_PORT", usual)
        options = DemoOptions()
        with live.serving(Stage(options), options) as server:
            assert server.port != usual
            assert get(f"{server.url}/").ok


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly_after_the_first_decision(number: signal.Signals) -> None:
    command = "from predictor import demo; raise SystemExit(demo.run(demo.DemoOptions(port=0, days=1)))"
    with subprocess.Popen(  # noqa: S603  (our own interpreter and command)
        [sys.executable, "-c", command], stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"}
    ) as process:
        assert process.stderr is not None
        said = ""
        while "First decision" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        assert re.search(r"http://127\.0\.0\.1:\d+", said)
        process.send_signal(number)
        rest = process.stderr.read()
        assert process.wait(10) == 0
    assert "Traceback" not in rest
    assert "replica-hours" in rest


def test_a_signal_stops_it_while_it_prepares_as_well() -> None:
    command = "from predictor import demo; raise SystemExit(demo.run(demo.DemoOptions(port=0, days=1)))"
    with (
        tempfile.TemporaryDirectory() as empty,  # nothing is kept there: the fleet is compiled, which takes a while
        subprocess.Popen(  # noqa: S603  (our own interpreter and command)
            [sys.executable, "-c", command], stderr=subprocess.PIPE, text=True,
            env=os.environ | {"COLUMNS": "200", "NUMBA_CACHE_DIR": empty},
        ) as process,
    ):  # fmt: skip
        assert process.stderr is not None
        while "Preparing" not in (line := process.stderr.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(10) == 0
    assert rest.endswith("Stopped before the first decision.\n")
    assert "Traceback" not in rest
