"""Stopping the real process, whatever hangs at that moment: within five seconds, with an exit code and a last line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.api_server import FakeApiServer
from tests.fakes.prometheus_api import PrometheusApi, result

PROMISED = 5.0  # seconds
SLACK = 2.0  # for a busy machine
CONFIGURATION = """
loops: {{slow: 1s, fast: 0.5s}}
kubernetes: {{server: "{api}", token_file: {token}}}
source: {{prometheus: {{url: "{prometheus}", timeout: 30s, budget: 30s}}}}
server: {{host: 127.0.0.1, port: 0}}
targets: [{{namespace: llm, name: chat, model: m, capacity: {{concurrency: 32}}}}]
journal: {{path: "{token}-kept"}}
release_on_exit: {release}
"""

Hang = Callable[[FakeApiServer, PrometheusApi], None]


def nothing(api: FakeApiServer, prometheus: PrometheusApi) -> None:
    """Everything answers."""


def prometheus_hangs(_api: FakeApiServer, prometheus: PrometheusApi) -> None:
    prometheus.hanging = True


LISTS = tuple(f"list {what}" for what in ("horizontalpodautoscalers", "pods", "deployments", "replicasets"))


def api_server_hangs(api: FakeApiServer, _prometheus: PrometheusApi) -> None:
    for what in LISTS:
        api.hang(what)


def questions_about_permissions_hang(api: FakeApiServer, _prometheus: PrometheusApi) -> None:
    api.hang("create selfsubjectaccessreviews")


@pytest.fixture
def world() -> Iterator[tuple[FakeApiServer, PrometheusApi]]:
    with FakeApiServer() as api, PrometheusApi(lambda _: result([])) as prometheus:
        yield api, prometheus


@pytest.mark.parametrize(
    ("hang", "release", "code"),
    [
        (nothing, "false", 0),
        (prometheus_hangs, "false", 1),
        (api_server_hangs, "false", 1),
        (api_server_hangs, "true", 1),
        (questions_about_permissions_hang, "false", 0),
    ],
)
@pytest.mark.timeout(120)
def test_the_process_is_gone_within_five_seconds_of_being_told(
    world: tuple[FakeApiServer, PrometheusApi], tmp_path: Path, hang: Hang, release: str, code: int
) -> None:
    api, prometheus = world
    hang(api, prometheus)
    (tmp_path / "token").write_text("t")
    where = {"api": api.url, "prometheus": prometheus.url, "token": tmp_path / "token"}
    (tmp_path / "c.yaml").write_text(CONFIGURATION.format(**where, release=release))
    with (tmp_path / "log").open("wb") as log:
        command = [sys.executable, "-m", "predictor.cli", "run", "--config", str(tmp_path / "c.yaml")]
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL)  # noqa: S603  (our own command)
    try:
        _wait_for(lambda: '"started"' in (tmp_path / "log").read_text())
        # Told before its first tick has asked for anything, it has nothing to leave behind, and time for a release.
        _wait_for(lambda: any(map(api.asked, LISTS)) and (bool(prometheus.requests) or hang is api_server_hangs))
        told = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PROMISED + SLACK) == code
        assert time.monotonic() - told < PROMISED + SLACK
    finally:
        process.kill()
        process.wait()
    lines = (tmp_path / "log").read_text().splitlines()
    assert json.loads(lines[-1])["event"] == "stopped"
    assert not [line for line in lines if "Traceback" in line]
    assert (tmp_path / "token-kept" / "learned.json").exists()


@pytest.mark.timeout(120)
def test_the_lease_is_given_back_on_the_way_out(world: tuple[FakeApiServer, PrometheusApi], tmp_path: Path) -> None:
    api, prometheus = world
    (tmp_path / "token").write_text("t")
    where = {"api": api.url, "prometheus": prometheus.url, "token": tmp_path / "token"}
    election = "leader_election: {enabled: true, namespace: floorcast, lease: 7s, renew: 1.5s, retry: 0.3s}\n"
    (tmp_path / "c.yaml").write_text(CONFIGURATION.format(**where, release="false") + election)
    with (tmp_path / "log").open("wb") as log:
        command = [sys.executable, "-m", "predictor.cli", "run", "--config", str(tmp_path / "c.yaml")]
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL)  # noqa: S603  (our own command)
    lease = ("leases", "floorcast", "floorcast")
    try:
        _wait_for(lambda: lease in api.objects)
        assert api.objects[lease]["spec"]["holderIdentity"]
        _wait_for(lambda: '"leading"' in (tmp_path / "log").read_text())
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PROMISED + SLACK) == 0
    finally:
        process.kill()
        process.wait()
    assert api.objects[lease]["spec"]["holderIdentity"] == ""
    assert "lease given back" in (tmp_path / "log").read_text()


def _wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)  # noqa: TID251  (waits for another process)
