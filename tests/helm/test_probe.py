"""What `helm test` runs, on the service's own pages: `files/test.py` with the address as its argument."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry

from predictor.telemetry import pages
from predictor.telemetry.http import Server

PROGRAM = (Path(__file__).parents[2] / "helm/floorcast/files/test.py").read_text()


def probe(*, missing: Sequence[str] = (), refused: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    told = pages.Sources(
        registry=CollectorRegistry(),
        dead=lambda: (),
        missing=lambda: missing,
        state=lambda: {"targets": {}, "configuration": {"refused": refused, "file": "c.yaml"}},
    )
    with Server(pages.application(told), host="127.0.0.1", port=0) as server:
        return run(server.url)


def run(url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, url]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603  (the chart's)


def test_a_service_that_has_all_it_needs_passes() -> None:
    ran = probe()
    assert ran.returncode == 0, ran.stderr
    assert "the configuration is the one in use" in ran.stdout


def test_what_is_missing_is_said() -> None:
    ran = probe(missing=["the history has not been loaded yet"])
    assert ran.returncode == 1
    assert "/readyz: 503" in ran.stderr
    assert "the history has not been loaded yet" in ran.stderr


def test_a_refused_configuration_fails_with_its_problems() -> None:
    ran = probe(refused=["c.yaml: modus: unknown key; did you mean mode?"])
    assert ran.returncode == 1
    assert "did you mean mode?" in ran.stderr


def test_a_service_that_does_not_answer_fails_with_its_address() -> None:
    ran = run("http://127.0.0.1:9")
    assert ran.returncode == 1
    assert "http://127.0.0.1:9/healthz: " in ran.stderr
