# ruff: noqa: E501  (the lines are what a person reads)
"""What is refused, through the real command: exit code 2, one clear line for each problem, no traceback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from predictor import cli
from predictor.settings import loading

CHECKOUT = Path(__file__).resolve().parents[3]

TARGET = "targets: [{namespace: llm, name: chat, capacity: {concurrency: 40}}]\n"
TESTS = (
    "["
    + ", ".join(
        f"{{prompt: {p}, output: {o}, throughput: {x}, concurrency: {c}}}"
        for p, o, x, c in ((1800, 300, 1.4, 48), (900, 300, 2.4, 80), (1800, 150, 2.2, 60))
    )
    + "]"
)


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


CASES: dict[str, tuple[str | bytes, str]] = {
    "a number out of bounds": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 0}}]",
        (
            "config.yaml: targets[0].capacity.concurrency: 0 is not greater than 0;"
            " set it to the requests one replica serves at once"
        ),
    ),
    "tokens a second of which nobody could ask": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 4, tokens_in: -5}}]",
        (
            "config.yaml: targets[0].capacity.tokens_in: -5 is not greater than 0; set it to the prompt tokens a second"
            " at the highest load at which a load test met the objectives"
        ),
    ),
    "generated tokens that are no number": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 4, tokens_out: many}}]",
        "config.yaml: targets[0].capacity.tokens_out: 'many' is not a number; set it to the generated tokens a second",
    ),
    "a lease that could be taken while its holder still writes": (
        "leader_election: {enabled: true, renew: 12s}\n" + TARGET,
        (
            "config.yaml: leader_election.renew: 12s and kubernetes.request_timeout, 5s, are together longer than lease,"
            " 15s: a write could still be under way when another replica begins; shorten one or lengthen lease"
        ),
    ),
    "a lease that is over before it is renewed": (
        "leader_election: {enabled: true, retry: 10s}\n" + TARGET,
        (
            "config.yaml: leader_election.retry: 10s is not below renew, 10s: the lease would be over before it is"
            " renewed; a fifth of renew suits"
        ),
    ),
    "one port for two": (
        "external_scaler: {enabled: true, port: 8080}\n" + TARGET,
        "config.yaml: external_scaler.port: 8080 is server.port too; give one of them another",
    ),
    "a lease without a namespace outside a pod": (
        "leader_election: {enabled: true}\nkubernetes: {server: http://127.0.0.1:1, token_file: config.yaml}\n"
        + TARGET,
        (
            "leader_election.namespace: is not set, and this is no pod that has a namespace of its own; set it to where"
            " the Lease is to be"
        ),
    ),
    "a text for a number": (
        "defaults: {maximum: many}",
        "config.yaml: defaults.maximum: 'many' is not a whole number; leave it out for the default, 10",
    ),
    "yes for a number": (
        "defaults: {minimum: yes}",
        "config.yaml: defaults.minimum: true is no number; leave it out for the default, 1",
    ),
    "infinity": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: .inf}}]",
        (
            "config.yaml: targets[0].capacity.concurrency: inf is not a finite number;"
            " set it to the requests one replica serves at once"
        ),
    ),
    "a word that is none of the choices": (
        "mode: on",
        "config.yaml: mode: true is not one of 'shadow' or 'control'; start with shadow",
    ),
    "a duration in prose": (
        "loops: {slow: half a minute}",
        "config.yaml: loops.slow: 'half a minute' is no duration; write 30s, 5m, 1h30m, 14d or a number of seconds",
    ),
    "a duration out of bounds": (
        "loops: {slow: 2h}",
        "config.yaml: loops.slow: 2h is not at most 10m; 30s to 1m suits most fleets",
    ),
    "an unknown key": ("loops: {fsat: 5s}", "config.yaml: loops.fsat: unknown key; did you mean fast?"),
    "an unknown key like no other": (
        "log: {colour: red}",
        "config.yaml: log.colour: unknown key; known here: format, level",
    ),
    "an unknown section": ("servr: {port: 80}", "config.yaml: servr: unknown key; did you mean server?"),
    "a missing key": (
        "targets: [{name: chat, capacity: {concurrency: 4}}]",
        "config.yaml: targets[0].namespace: is missing; name its namespace: lower-case letters, digits and -",
    ),
    "no capacity": (
        "mode: control\ntargets: [{namespace: llm, name: chat}]",
        (
            "config.yaml: targets[0].capacity.concurrency: is missing; set it, here or in defaults, to the requests one"
            " replica serves at once"
        ),
    ),
    "two capacities": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 40, knee: 48}}]",
        (
            "config.yaml: targets[0].capacity: concurrency 40 and knee 48 are both given; give one: concurrency is"
            " knee / (1 + headroom)"
        ),
    ),
    "load tests beside a knee": (
        f"targets: [{{namespace: llm, name: chat, capacity: {{knee: 48, load_tests: {TESTS}}}}}]",
        ("config.yaml: targets[0].capacity.knee: 48 is given beside load_tests, which say it too; keep one of them"),
    ),
    "one load test": (
        (
            "targets: [{namespace: a, name: b, capacity: {load_tests: [{prompt: 1, output: 1, throughput: 2,"
            " concurrency: 9}]}}]"
        ),
        (
            "config.yaml: targets[0].capacity.load_tests: 1 load tests: it takes 3, at two lengths of prompts and two"
            " of outputs; add such tests, or give knee and throughput instead"
        ),
    ),
    "load tests that tell nothing of outputs": (
        "targets: [{namespace: a, name: b, capacity: {load_tests: ["
        + ", ".join(f"{{prompt: {p}, output: 100, throughput: 2, concurrency: 9}}" for p in (500, 1000, 2000))
        + "]}}]",
        (
            "config.yaml: targets[0].capacity.load_tests: prompts of 500, 1000, 2000 and outputs of 100, 100, 100"
            " tokens: test longer prompts with the outputs as they are, and the other way round, each at least 1.5"
            " times as long; add such tests, or give knee and throughput instead"
        ),
    ),
    "a load test without output": (
        (
            "targets: [{namespace: a, name: b, capacity: {load_tests: [{prompt: 1, output: 0, throughput: 2,"
            " concurrency: 9}]}}]"
        ),
        (
            "config.yaml: targets[0].capacity.load_tests[0].output: 0 is not greater than 0; write the mean"
            " output length of the test"
        ),
    ),
    "half a price": (
        "targets: [{namespace: a, name: b, capacity: {knee: 4}, quantiles: {miss_cost: 60}}]",
        (
            "config.yaml: targets[0].quantiles.miss_cost: 60 needs quantiles.idle_cost, which is not set; set both or"
            " neither"
        ),
    ),
    "a quantile beside its price": (
        "targets: [{namespace: a, name: b, capacity: {knee: 4}, quantiles: {raise: .9, miss_cost: 60, idle_cost: 3}}]",
        (
            "config.yaml: targets[0].quantiles.raise: 0.9 is given beside miss_cost and idle_cost, which say 0.952;"
            " keep one"
        ),
    ),
    "a pool that is none": (
        "gpu_pools: {h100: 16}\ntargets: [{namespace: a, name: b, capacity: {knee: 4}, gpus: {pool: h200}}]",
        "config.yaml: targets[0].gpus.pool: 'h200' is no entry of gpu_pools; add it there, known: h100",
    ),
    "the same target twice": (
        "targets: [{namespace: a, name: b, capacity: {knee: 4}}, {namespace: a, name: b, capacity: {knee: 4}}]",
        "config.yaml: targets[1].name: 'a/b' is targets[0] already; name each workload once",
    ),
    "two workloads whose series are one": (
        (
            "targets: [{namespace: a, name: b, model: m, capacity: {knee: 4}}, {namespace: a, name: c, model: m,"
            " capacity: {knee: 4}}]"
        ),
        (
            "config.yaml: targets[1].model: 'm' is served by a/b in the same namespace too, and Prometheus cannot tell their"
            " series apart; give one another served model name, or set source.kind to scrape"
        ),
    ),
    "queries that nobody asks": (
        'source: {kind: scrape}\nsignals: {vllm: {in_flight: "sum by (namespace) (x)"}}',
        (
            "config.yaml: signals: queries for vllm have no effect while source.kind is scrape; remove them or set it to"
            " prometheus"
        ),
    ),
    "a name that Kubernetes has not": (
        "targets: [{namespace: llm, name: Chat_1, capacity: {concurrency: 4}}]",
        (
            "config.yaml: targets[0].name: 'Chat_1' does not match ^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$; name the object"
            " to scale: lower-case letters, digits, - and ."
        ),
    ),
    "quantiles the wrong way round": (
        "defaults: {quantiles: {raise: 0.8, lower: 0.9}}",
        (
            "config.yaml: defaults.quantiles.lower: 0.9 is above quantiles.raise, 0.8; the floor would be raised and never"
            " lowered again"
        ),
    ),
    "a quantile that is not forecast": (
        "forecast: {quantiles: [0.5, 0.9]}",
        (
            "config.yaml: defaults.quantiles.raise: 0.975 is above the highest of forecast.quantiles, 0.9; add it there or"
            " lower it"
        ),
    ),
    "quantiles that do not grow": (
        "forecast: {quantiles: [0.5, 0.99, 0.9]}",
        "config.yaml: forecast.quantiles: [0.5, 0.99, 0.9] does not grow; sort it, each value once",
    ),
    "a minimum of zero, which nobody would be woken from": (
        "defaults: {minimum: 0}",
        "config.yaml: defaults.minimum: 0 is not at least 1; leave it out for the default, 1",
    ),
    "a minimum above the maximum": (
        "defaults: {minimum: 5, maximum: 4}",
        "config.yaml: defaults.minimum: 5 is above maximum, 4; lower it or raise maximum",
    ),
    "a fast loop slower than the slow one": (
        "loops: {fast: 1m, slow: 30s}",
        "config.yaml: loops.fast: 1m is longer than loops.slow, 30s; shorten it or lengthen loops.slow",
    ),
    "gaps filled for longer than is looked at": (
        "history: {carry: 30m}\nforecast: {level_window: 20m}",
        (
            "config.yaml: history.carry: 30m is longer than forecast.level_window, 20m; shorten it or lengthen"
            " forecast.level_window"
        ),
    ),
    "a season longer than the history": (
        "history: {span: 2d}\nforecast: {seasons: [1d, 1w]}",
        "config.yaml: forecast.seasons[1]: 1w does not fit history.span, 2d; drop it or raise history.span above it",
    ),
    "an address that is none": (
        "source: {prometheus: {url: 'prometheus:9090'}}",
        (
            "config.yaml: source.prometheus.url: 'prometheus:9090' is no http or https address; write one like"
            " http://prometheus:9090"
        ),
    ),
    "a password in an address": (
        "source: {prometheus: {url: 'http://me:hunter2@p:9090'}}",
        "config.yaml: source.prometheus.url: the address carries credentials; put them in files, see source.prometheus",
    ),
    "an address of a query": (
        "source: {prometheus: {url: 'http://p:9090/?x=1'}}",
        (
            "config.yaml: source.prometheus.url: 'http://p:9090/?x=1' has a query; write the address up to the path, like"
            " http://prometheus:9090"
        ),
    ),
    "two ways into Prometheus": (
        "source: {prometheus: {bearer_token_file: /t, username: me, password_file: /p}}",
        "config.yaml: source.prometheus.bearer_token_file: '/t' is given beside username; keep one of the two",
    ),
    "an engine that is none": (
        "targets: [{namespace: llm, name: chat, capacity: {concurrency: 4}, engine: vlm}]",
        "config.yaml: targets[0].engine: 'vlm' is no engine of the signal catalogue; did you mean vllm?",
    ),
    "an address with the path that is added": (
        "source: {prometheus: {url: 'http://p:9090/api/v1/'}}\n" + TARGET,
        "config.yaml: source.prometheus.url: 'http://p:9090/api/v1/' ends in /api/v1, which is added to it; leave that out",
    ),
    "a query for an engine that is none": (
        "signals: {vlm: {arrivals: up}}",
        "config.yaml: signals.vlm: no such engine;",
    ),
    "a query that loses the targets": (
        "signals: {vllm: {arrivals: sum(up)}}",
        "config.yaml: signals.vllm.arrivals: lacks $by;",
    ),
    "half a credential": (
        "kubernetes: {server: 'https://k:6443'}",
        (
            "config.yaml: kubernetes.server: 'https://k:6443' needs kubernetes.token_file, which is not set; set both or"
            " neither"
        ),
    ),
    "half a certificate": (
        "external_scaler: {enabled: true, cert_file: /tls.crt}",
        (
            "config.yaml: external_scaler.cert_file: '/tls.crt' needs external_scaler.key_file, which is not set; set both"
            " or neither"
        ),
    ),
    "an authority of clients without encryption": (
        "external_scaler: {enabled: true, client_ca_file: /ca.crt}",
        "config.yaml: external_scaler.client_ca_file: '/ca.crt' needs external_scaler.cert_file, which is not set;",
    ),
    "two ways into the cluster": (
        "kubernetes: {server: 'https://k:6443', token_file: /t, kubeconfig: /k}",
        (
            "config.yaml: kubernetes.server: 'https://k:6443' is given beside a kubeconfig or context; keep one of the two"
            " ways"
        ),
    ),
    "a time zone that is none": (
        "forecast: {zone: Mars/Olympus}",
        "config.yaml: forecast.zone: 'Mars/Olympus' is no known time zone; write one like Europe/Berlin or UTC",
    ),
    "a section that is no mapping": (
        "targets: [{namespace: llm, name: chat, capacity: 40}]",
        "config.yaml: targets[0].capacity: 40 is not a mapping of keys; put its keys under it, indented",
    ),
    "a mapping for a list": (
        "targets: {namespace: llm}",
        "config.yaml: targets: this mapping is not a list; leave it out for the default, []",
    ),
    "a list for the whole": (
        "- mode: shadow",
        "config.yaml: is a list, not a mapping; begin with keys like `mode:` and `targets:`",
    ),
    "broken YAML": (
        "mode: shadow\nloops: {fast: 5s\n",
        "config.yaml:3:1: expected ',' or '}', but got '<stream end>' while parsing a flow mapping; correct the YAML there",
    ),
    "a tab": (
        "loops:\n\tfast: 5s\n",
        (
            "config.yaml:2:1: found character '\\t' that cannot start any token while scanning for the next token;"
            " correct the YAML there"
        ),
    ),
    "a number for a key": (
        "1: 2",
        "config.yaml:1:1: the key 1 is no text; put a key in quotes; correct the YAML there",
    ),
    "yes for a key": (
        "loops:\n  on: 30s",
        "config.yaml:2:3: the key on is no text; put a key in quotes; correct the YAML there",
    ),
    "a list for a key": (
        "? [a, b]\n: 3",
        (
            "config.yaml:1:3: the key that is itself a list or a mapping is no text; put a key in quotes;"
            " correct the YAML there"
        ),
    ),
    "a mapping for a key": (
        "log:\n  ? {a: b}\n  : 3",
        (
            "config.yaml:2:5: the key that is itself a list or a mapping is no text; put a key in quotes;"
            " correct the YAML there"
        ),
    ),
    "a number of five thousand digits": (
        f"server: {{port: {'9' * 5000}}}",
        (
            f"config.yaml:1:16: {'9' * 40}... cannot be read: Exceeds the limit (4300 digits) for integer string"
            " conversion: value has 5000 digits; correct the YAML there"
        ),
    ),
    "a day that does not exist": (
        "loops: {slow: 2025-13-45}",
        "config.yaml:1:15: 2025-13-45 cannot be read: month must be in 1..12; correct the YAML there",
    ),
    "a key twice": (
        "mode: shadow\nlog: {}\nmode: control\n",
        "config.yaml:3:1: the key 'mode' is given twice; keep one of them; correct the YAML there",
    ),
    "bytes that are no text": (b"mode: \xff\xfe", "config.yaml: byte 6 is not UTF-8; save the file as UTF-8"),
    "a query for a signal that is none": (
        "signals: {vllm: {arrival: up}}",
        "config.yaml: signals.vllm.arrival: 'arrival' is no signal; did you mean arrivals?",
    ),
}


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
