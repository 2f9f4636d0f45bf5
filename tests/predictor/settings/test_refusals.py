"""What is refused, through the real command: exit code 2, one clear line for each problem, no traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from predictor import cli
from predictor.settings import loading
from tests.predictor.settings.refused import CASES, TARGET

CHECKOUT = Path(__file__).resolve().parents[3]

Refused = Callable[..., list[str]]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs `floorcast run` on a file with this text and returns what it wrote to standard error, line by line."""

    def run(text: str | bytes, *arguments: str, **environment: str) -> list[str]:
        write(tmp_path / "config.yaml", text)
        monkeypatch.chdir(tmp_path)
        for name in [name for name in os.environ if name.startswith("FLOORCAST")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["floorcast", "run", "--config", "config.yaml", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        written = capsys.readouterr()
        assert written.out == ""
        return written.err.splitlines()

    return run


def write(path: Path, text: str | bytes) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("case", CASES)
def test_refuses(refused: Refused, case: str) -> None:
    text, line = CASES[case]
    lines = refused(text)
    assert len(lines) == 1
    assert lines[0].startswith(line)


@pytest.mark.parametrize("case", list(CASES)[::2])
def test_refuses_in_a_process_of_its_own(tmp_path: Path, case: str) -> None:
    text, line = CASES[case]
    write(tmp_path / "config.yaml", text)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FLOORCAST")}
    done = subprocess.run(
        [sys.executable, "-m", "predictor.cli", "run", "--config", "config.yaml"],
        cwd=tmp_path,
        env={**clean, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(line)


def test_every_problem_is_told_at_once(refused: Refused) -> None:
    lines = refused("mode: x\nloops: {slow: 0}\nserver: {port: 99999}\n")
    assert [line.split(": ")[1] for line in lines] == ["mode", "loops.slow", "server.port"]


def test_what_targets_took_from_faulty_defaults_is_told_once(refused: Refused) -> None:
    targets = "targets: [{namespace: a, name: b}, {namespace: a, name: c}]"
    assert len(refused(f"defaults: {{warm_up: 0, capacity: {{knee: 4}}}}\n{targets}")) == 1
    assert len(refused(f"defaults: {{minimum: 50, capacity: {{knee: 4}}}}\n{targets}")) == 1


def test_a_file_that_is_not_there(refused: Refused) -> None:
    assert refused("", "--config", "other.yaml") == [
        "other.yaml: no such file; name another with --config or FLOORCAST_CONFIG"
    ]


def test_a_folder_for_a_file(refused: Refused) -> None:
    assert refused("", "--config", ".") == [".: cannot be read: Is a directory"]


def test_a_variable_is_named(refused: Refused) -> None:
    lines = refused(TARGET, FLOORCAST__LOOPS__FAST="soon", FLOORCAST__LOOPS__SLOOW="5s")
    assert lines == [
        "FLOORCAST__LOOPS__FAST: 'soon' is no duration; write 30s, 5m, 1h30m, 14d or a number of seconds",
        "FLOORCAST__LOOPS__SLOOW: unknown key; did you mean slow?",
    ]


def test_a_variable_that_sets_nothing_is_named(refused: Refused) -> None:
    assert refused(TARGET, FLOORCAST__LOPS__FAST="5s") == [
        "FLOORCAST__LOPS__FAST: sets nothing; did you mean FLOORCAST__LOOPS?"
    ]


@pytest.mark.parametrize("variable", ["FLOORCAST_MODE", "FLOORCAST_LOOPS__SLOW", "floorcast_log__level"])
def test_a_variable_with_half_the_prefix_is_named(refused: Refused, variable: str) -> None:
    meant = variable.upper().replace("FLOORCAST_", "FLOORCAST__")
    assert refused(TARGET, **{variable: "control"}) == [f"{variable}: sets nothing; did you mean {meant}?"]


def test_what_kubernetes_sets_for_a_service_called_floorcast_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "config.yaml", TARGET)
    for name in ("SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_80_TCP", "PORT_80_TCP_ADDR", "SERVICE_PORT_HTTP"):
        monkeypatch.setenv(f"FLOORCAST_{name}", "tcp://10.0.0.1:80")
    assert loading.load(tmp_path / "config.yaml").targets


def test_a_variable_that_is_no_json_is_named(refused: Refused) -> None:
    assert refused(TARGET, FLOORCAST__TARGETS="[{") == ["FLOORCAST__TARGETS: '[{' is no JSON; write JSON here"]


def test_a_place_in_a_variable_with_json_is_named(refused: Refused) -> None:
    target = '[{"namespace": "a", "name": "b", "capacity": {"knee": -1}}]'
    (line,) = refused("", FLOORCAST__TARGETS=target)
    assert line == (
        "FLOORCAST__TARGETS: targets[0].capacity.knee: -1 is not greater than 0;"
        " set it to the highest load at which a load test met the objectives"
    )


def test_a_flag_is_named(refused: Refused) -> None:
    assert refused(TARGET, "--mode", "full", FLOORCAST__MODE="shadow") == [
        "--mode: 'full' is not one of 'shadow' or 'control'; start with shadow"
    ]
