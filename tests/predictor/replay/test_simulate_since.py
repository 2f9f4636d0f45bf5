"""`floorcast simulate --since` as a user runs it: a configuration, and what a real Prometheus remembers."""

import csv
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from models.signals import Signal
from predictor.replay import asked
from predictor.settings import convert, loading
from tests.fakes import exposition
from tests.servers import prometheus as servers

CHECKOUT = Path(__file__).resolve().parents[3]
MINUTES = 6 * 60
ENDED = 10 * 60  # seconds ago: longer than a Prometheus goes on showing a series that has stopped
RATE, PROMPT, OUTPUT = 3, 400, 100  # requests a second, mean tokens

CONFIGURATION = """
source:
  prometheus: {{url: "{url}", scrape_interval: 60s}}
history: {{step: 1m}}
targets:
  - {{namespace: llm, name: chat, engine: vllm, model: {model}, capacity: {{knee: 40}}}}
  - {{namespace: other, name: quiet, engine: vllm, model: {model}, capacity: {{knee: 40}}}}
"""


def now() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)


def six_hours(until: int) -> str:
    """Counters of one replica that finishes the same number of requests each minute, to `until`."""
    counters = {
        "vllm:request_success_total": (RATE * 60, 'finished_reason="stop",'),
        "vllm:prompt_tokens_total": (RATE * 60 * PROMPT, ""),
        "vllm:generation_tokens_total": (RATE * 60 * OUTPUT, ""),
    }
    lines = []
    for name, (each, label) in counters.items():
        labels = f'{{{label}namespace="llm",pod="chat-0",model_name="{exposition.MODEL}",engine="0"}}'
        lines.append(f"# TYPE {name.removesuffix('_total')} counter")
        lines += [f"{name}{labels} {each * k} {until - 60 * (MINUTES - k)}" for k in range(MINUTES + 1)]
    for name, value in (("vllm:num_requests_running", 5), ("vllm:num_requests_waiting", 0)):
        labels = f'{{namespace="llm",pod="chat-0",model_name="{exposition.MODEL}",engine="0"}}'
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{labels} {value} {until - 60 * (MINUTES - k)}" for k in range(MINUTES + 1)]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.PrometheusServer]:
    try:
        made = servers.PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    except servers.UnavailableError as error:
        pytest.skip(str(error))
    made.backfill(six_hours(math.floor(now()) // 60 * 60 - ENDED))
    with made:
        yield made


def simulated(folder: Path, *asking: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, "-m", "predictor.cli", "simulate", "--config", "own.yaml", *asking],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_what_a_prometheus_remembers_is_served_under_each_policy(
    server: servers.PrometheusServer, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(CONFIGURATION.format(url=server.url, model=exposition.MODEL))
    asking = ["--since", "6h", "--hours", "1", "--target", "llm/chat", "--sweep", "0"]
    done = simulated(tmp_path, *asking, "--policy", "floorcast", "--policy", "static")
    assert done.returncode == 0, done.stderr
    ours, static = csv.DictReader((tmp_path / "simulation" / "policies.csv").read_text().splitlines())
    assert (ours["policy"], static["policy"]) == ("floorcast", "static")
    assert int(ours["requests"]) == int(static["requests"])
    # On a busy machine it is some minutes further by now; minutes that nothing is known of are served as the last one.
    assert 0.7 * RATE * 3600 < int(ours["requests"]) < 1.05 * RATE * 3600
    page = (tmp_path / "simulation" / "simulation.html").read_text()
    assert "llm/chat" in page
    assert "tokens on average" not in page  # the lengths are those that the Prometheus remembers
    assert "between the first and the last" not in page  # it knows all up to where it ends


def test_what_has_stopped_is_unknown_from_there_on_and_not_a_rate_that_falls(
    server: servers.PrometheusServer, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(CONFIGURATION.format(url=server.url, model=exposition.MODEL))
    settings = loading.load(tmp_path / "own.yaml")
    chat = next(target for target in convert.targets(settings) if target.key == "llm/chat")
    span = asked.Span(now() - MINUTES * 60, now(), 60.0)
    series = asked.remembered(settings, [chat], (Signal.ARRIVALS,), span).series["llm/chat", Signal.ARRIVALS]
    known = np.flatnonzero(~np.isnan(series.values))
    assert len(known) == known[-1] + 1 - known[0]
    ended = now() - ENDED - 60
    assert series.times[known[-1]] < ended + 4 * 60  # two scrapes missed, and the minutes both ends fall in
    np.testing.assert_allclose(series.values[known[:-2]], RATE, rtol=1e-6)


def test_a_target_that_nothing_is_known_of_and_one_that_is_not_named_are_errors_with_a_remedy(
    server: servers.PrometheusServer, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(CONFIGURATION.format(url=server.url, model=exposition.MODEL))
    unnamed = simulated(tmp_path, "--since", "6h")
    assert (unnamed.returncode, "use one of llm/chat, other/quiet" in unnamed.stderr) == (2, True)
    empty = simulated(tmp_path, "--since", "6h", "--target", "other/quiet")
    assert (empty.returncode, "no history of any target" in empty.stderr) == (1, True)
