"""The command line in a process of its own: exit codes, what it prints where, and that it starts quickly."""

import dataclasses
import inspect
import os
import socket
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from predictor.commands import demonstrating
from predictor.demo.options import DemoOptions, Rival
from predictor.ports import Owner
from predictor.settings import reference

NOISE = 3  # seconds a busy machine may add to a promise
CHECKOUT = Path(__file__).resolve().parents[2]
TARGETS = "targets: [{namespace: llm, name: chat, capacity: {concurrency: 40}, mode: control}]\n"


def floorcast(*arguments: str, cwd: Path = CHECKOUT, program: str = "") -> subprocess.CompletedProcess[str]:
    with started(*arguments, cwd=cwd, program=program) as process:
        printed, said = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, printed, said)


def started(*arguments: str, cwd: Path = CHECKOUT, program: str = "") -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FLOORCAST")}
    how = ["-c", program] if program else ["-m", "predictor.cli"]
    return subprocess.Popen(  # noqa: S603  (our own command)
        [sys.executable, *how, *arguments],
        cwd=cwd,
        env={**clean, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "120", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_help_names_every_command_and_the_exit_codes() -> None:
    done = floorcast("--help")
    assert done.returncode == 0
    for word in ("run", "demo", "release", "config", "version", "Exit codes: 0"):
        assert word in done.stdout


def test_config_validate_doubts_what_is_mostly_not_meant(tmp_path: Path) -> None:
    given = "{namespace: llm, name: sure, capacity: {knee: 40}}"
    (tmp_path / "config.yaml").write_text(f"targets: [{given}, {{namespace: llm, name: guess, mode: shadow}}]\n")
    done = floorcast("config", "validate", "--config", "config.yaml", cwd=tmp_path)
    assert "Note: llm/guess: no capacity is given: 8 in flight a replica is a cautious guess" in done.stdout
    assert "llm/sure:" not in done.stdout
    assert "Note: journal.path is not set: " in done.stdout
    assert "a restart loses the capacity that was observed" in done.stdout
    (tmp_path / "config.yaml").write_text(TARGETS + "\njournal: {path: kept}\n")
    done = floorcast("config", "validate", "--config", "config.yaml", cwd=tmp_path)
    assert "Note: llm/chat: mode: control takes effect once" in done.stdout
    assert "journal.path" not in done.stdout
    assert "whole points" not in done.stdout
    (tmp_path / "config.yaml").write_text(TARGETS + "\nhistory: {step: 5m}\n")
    done = floorcast("config", "validate", "--config", "config.yaml", cwd=tmp_path)
    assert "Note: llm/chat: points of the history lie 300 s apart" in done.stdout


def test_help_and_a_refused_configuration_import_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("mode: x")
    program = """
import atexit, sys
from predictor import cli
atexit.register(lambda: print(sorted({name.split(".")[0] for name in sys.modules})))
cli.main()
"""
    for arguments in (["--help"], ["run", "--config", "bad.yaml"]):
        modules = floorcast(*arguments, cwd=tmp_path, program=program).stdout.splitlines()[-1]
        assert "'predictor'" in modules
        for heavy in ("statsforecast", "pandas", "kubernetes", "prometheus_api_client", "numba", "starlette"):
            assert f"'{heavy}'" not in modules


@pytest.mark.parametrize(
    "arguments", [["run", "--speed", "9"], ["walk"], ["demo", "--seed", "many"], ["demo", "--owner", "nobody"]]
)
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str]) -> None:
    done = floorcast(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_the_choices_of_the_demo_are_those_it_knows() -> None:
    parameters = inspect.signature(demonstrating.demo).parameters
    for name, known in (("owner", (Owner.HPA, Owner.SCALE)), ("rival", Rival)):
        choices = typing.get_args(typing.get_args(parameters[name].annotation)[0])
        assert choices == tuple(known)


def test_the_defaults_of_the_demo_are_its_own() -> None:
    ours = {name: one.default for name, one in inspect.signature(demonstrating.demo).parameters.items()}
    own = {one.name: one.default for one in dataclasses.fields(DemoOptions) if one.name != "output"}
    assert {name: ours[name] for name in own} == own


def test_version_is_one_line() -> None:
    done = floorcast("version")
    assert done.returncode == 0
    assert done.stdout.startswith("floorcast ")


def test_config_reference_prints_a_file_that_is_valid(tmp_path: Path) -> None:
    (tmp_path / "reference.yaml").write_text(floorcast("config", "reference").stdout)
    assert (tmp_path / "reference.yaml").read_text() == reference.yaml_file()
    done = floorcast("config", "validate", "--config", "reference.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "nothing will be scaled" in done.stdout


def test_config_schema_prints_the_schema() -> None:
    assert floorcast("config", "schema").stdout == reference.json_schema()


def test_config_validate_shows_the_mode_a_target_really_has(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(TARGETS)  # the target says control, but the mode at the top is shadow
    done = floorcast("config", "validate", "--config", "config.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "llm/chat" in done.stdout
    assert "shadow" in done.stdout
    assert "control" not in done.stdout.partition("Note:")[0]


def test_release_refuses_what_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(TARGETS)
    done = floorcast("release", "llm/chta", "--config", "config.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "TARGETS: 'llm/chta' is no target of the configuration; the targets are llm/chat\n"


@pytest.mark.parametrize("also", ["", "discovery: {enabled: true}\n"])
@pytest.mark.parametrize("command", [["release"], ["release", "--all-namespaces"], ["release", "llm/chat"], ["resume"]])
def test_what_an_unreachable_api_server_kept_undone_is_said_in_lines_and_exit_code_1(
    tmp_path: Path, command: list[str], also: str
) -> None:
    (tmp_path / "token").write_text("t")
    server = "kubernetes: {server: 'http://127.0.0.1:1', token_file: token}\n"
    (tmp_path / "config.yaml").write_text(f"{TARGETS}{server}{also}")
    done = floorcast(*command, "--config", "config.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "Unreachable" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_release_without_targets_says_that_nothing_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    server = "kubernetes: {server: 'http://127.0.0.1:1', token_file: token}\n"
    (tmp_path / "config.yaml").write_text(f"targets: []\n{server}")
    done = floorcast("release", "--config", "config.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert "the configuration has no targets: nothing was looked for" in done.stderr
    assert "--all-namespaces" in done.stderr


def test_a_port_in_use_is_exit_code_1_with_the_remedy(tmp_path: Path) -> None:
    program = """
import socket, sys
from predictor import cli
from predictor.telemetry import http
from starlette.applications import Starlette
taken = socket.create_server(("127.0.0.1", 0))
import predictor.settings.loading as loading
loading.Watch = lambda *_: http.Server(Starlette(), host="127.0.0.1", port=taken.getsockname()[1]).start()
cli.main()
"""
    done = floorcast("config", "validate", cwd=tmp_path, program=program)
    assert done.returncode == 1
    assert "Address already in use; another program uses it; set server.port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "release"])
def test_a_kubeconfig_that_is_not_there_is_exit_code_2(tmp_path: Path, command: str) -> None:
    (tmp_path / "config.yaml").write_text(TARGETS)
    done = floorcast(command, "--config", "config.yaml", "--kubeconfig", "missing.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "missing.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_sigterm_ends_the_service_within_five_seconds_while_prometheus_hangs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never answers
        (tmp_path / "token").write_text("t")
        (tmp_path / "config.yaml").write_text(
            f"{TARGETS}"
            "server: {host: 127.0.0.1, port: 0}\n"
            "kubernetes: {server: 'http://127.0.0.1:1', token_file: token}\n"
            f"source: {{prometheus: {{url: 'http://127.0.0.1:{silent.getsockname()[1]}'}}}}\n"
        )
        with started("run", "--config", "config.yaml", cwd=tmp_path) as service:
            silent.settimeout(30)
            asking, _ = silent.accept()  # the first tick asks, and would wait for 15 s
            with asking:
                service.terminate()
                _, said = service.communicate(timeout=5 + NOISE)
    assert service.returncode == 1
    assert "left behind" in said
    assert "Traceback" not in said
