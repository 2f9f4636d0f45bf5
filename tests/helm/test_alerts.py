"""Each alert of the chart, on a real promtool: when it fires, with which words, and when it does not."""

import dataclasses
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from predictor.telemetry import table
from tests.servers import prometheus

FILE = Path(__file__).parents[2] / "helm/floorcast/files/alerts.yaml"
RULES = {rule["alert"]: rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]}
WHO = 'job="floorcast",namespace="floorcast",instance="a"'
OTHER = WHO.replace('"a"', '"b"')
OF_TARGET = f'{WHO},target="llm/chat"'
AT = "3h"


@dataclasses.dataclass(frozen=True)
class Case:
    """Series (in promtool's notation, a point a minute), and the alert they are to raise, if any."""

    alert: str
    series: Mapping[str, str]
    labels: Mapping[str, str] | None = None
    summary: str = ""


TARGET = {"target": "llm/chat"}
LOOP = {"job": "floorcast", "namespace": "floorcast", "loop": "slow"}
SERVICE = {"job": "floorcast", "namespace": "floorcast"}
SCORED = {f'floorcast_forecast_scored_total{{{OF_TARGET},signal="arrivals"}}': "0+3x300"}
STEADY = "x300"
COVERAGE = f'floorcast_forecast_coverage_ratio{{{OF_TARGET},signal="arrivals",quantile="%s"}}'

CASES = (
    Case("FloorcastAbsent", {}, {}, "Floorcast is not scraped, or does not run."),
    Case("FloorcastAbsent", {f'floorcast_build_info{{{WHO},version="1"}}': f"1{STEADY}"}),
    Case(
        "FloorcastLoopLate",
        {f'floorcast_last_tick_timestamp_seconds{{{WHO},loop="slow"}}': f"7200{STEADY}"},
        LOOP,
        "The slow loop last finished 1h 0m 0s ago.",
    ),
    Case("FloorcastLoopLate", {f'floorcast_last_tick_timestamp_seconds{{{WHO},loop="slow"}}': "0+60x300"}),
    Case(
        "FloorcastTicksLeftOut",
        {f'floorcast_late_ticks_total{{{WHO},loop="slow"}}': "0+1x300"},
        LOOP,
        "The slow loop left out 30 ticks in half an hour.",
    ),
    Case("FloorcastTicksLeftOut", {f'floorcast_late_ticks_total{{{WHO},loop="slow"}}': f"5{STEADY}"}),
    Case(
        "FloorcastHistoryNotLoaded",
        {f"floorcast_history_loaded{{{WHO}}}": f"0{STEADY}"},
        SERVICE,
        "Floorcast has not loaded its history.",
    ),
    Case("FloorcastHistoryNotLoaded", {f"floorcast_history_loaded{{{WHO}}}": f"1{STEADY}"}),
    Case(
        "FloorcastConfigurationRefused",
        {f"floorcast_config_reload_successful{{{WHO}}}": f"0{STEADY}"},
        SERVICE,
        "A changed configuration of Floorcast was refused; the one before still counts.",
    ),
    Case("FloorcastConfigurationRefused", {f"floorcast_config_reload_successful{{{WHO}}}": f"1{STEADY}"}),
    Case(
        "FloorcastSignalUnknown",
        {f'floorcast_signal_unknown{{{OF_TARGET},signal="waiting",cause="stale"}}': f"1{STEADY}"},
        {**TARGET, "signal": "waiting", "cause": "stale"},
        "waiting of llm/chat is unknown: stale.",
    ),
    Case(
        "FloorcastSignalUnknown",
        {f'floorcast_signal_unknown{{{OF_TARGET},signal="waiting",cause="not_asked"}}': f"1{STEADY}"},
    ),
    Case(
        "FloorcastForecastCoverageLow",
        {COVERAGE % "0.95": f"0.8{STEADY}", COVERAGE % "0.5": f"0.1{STEADY}", **SCORED},
        {**SERVICE, **TARGET, "instance": "a", "signal": "arrivals", "quantile": "0.95"},
        "Forecasts of arrivals of llm/chat hold in 80% of the cases, p0.95 was promised.",
    ),
    Case("FloorcastForecastCoverageLow", {COVERAGE % "0.95": f"0.93{STEADY}", **SCORED}),
    Case("FloorcastForecastCoverageLow", {COVERAGE % "0.95": f"0.8{STEADY}"}),
    Case(
        "FloorcastCappedAtMaximum",
        {f"floorcast_floor_missing_replicas{{{OF_TARGET}}}": f"4{STEADY}"},
        TARGET,
        "llm/chat needs 4 replicas more than its maximum allows.",
    ),
    Case("FloorcastCappedAtMaximum", {f"floorcast_floor_missing_replicas{{{OF_TARGET}}}": f"0{STEADY}"}),
    Case(
        "FloorcastWriteRefused",
        {f'floorcast_writes_refused_total{{{OF_TARGET},reason="Forbidden"}}': "0+1x300"},
        {**TARGET, "reason": "Forbidden"},
        "Writing the floor of llm/chat is refused: Forbidden.",
    ),
    Case("FloorcastWriteRefused", {f'floorcast_writes_refused_total{{{OF_TARGET},reason="Conflict"}}': f"7{STEADY}"}),
    Case(
        "FloorcastTargetLeftAlone",
        {f'floorcast_workload_refused{{{OF_TARGET},reason="AmbiguousOwner"}}': f"1{STEADY}"},
        {**TARGET, "reason": "AmbiguousOwner"},
        "llm/chat is left alone: AmbiguousOwner.",
    ),
    Case("FloorcastTargetLeftAlone", {f"floorcast_replicas_asked{{{OF_TARGET}}}": f"1{STEADY}"}),
    Case(
        "FloorcastLeaderMissing",
        {f"floorcast_leader{{{WHO}}}": f"0{STEADY}", f"floorcast_leader{{{OTHER}}}": f"0{STEADY}"},
        SERVICE,
        "No replica of Floorcast may write.",
    ),
    Case(
        "FloorcastLeaderMissing",
        {f"floorcast_leader{{{WHO}}}": f"0{STEADY}", f"floorcast_leader{{{OTHER}}}": f"1{STEADY}"},
    ),
    Case(
        "FloorcastTwoWriters",
        {f"floorcast_leader{{{WHO}}}": f"1{STEADY}", f"floorcast_leader{{{OTHER}}}": f"1{STEADY}"},
        SERVICE,
        "2 replicas of Floorcast write at the same time.",
    ),
    Case("FloorcastTwoWriters", {f"floorcast_leader{{{WHO}}}": f"1{STEADY}"}),
    Case(
        "FloorcastFloorContested",
        {f'floorcast_floor_contested{{{OF_TARGET},manager="argocd-controller"}}': f"1{STEADY}"},
        {**TARGET, "manager": "argocd-controller"},
        "argocd-controller keeps changing the floor of llm/chat back.",
    ),
    Case("FloorcastFloorContested", {f"floorcast_floor_observed_replicas{{{OF_TARGET}}}": f"1{STEADY}"}),
    Case(
        "FloorcastEngineStalled",
        {f"floorcast_stalled_seconds{{{OF_TARGET}}}": f"90{STEADY}"},
        TARGET,
        "Requests of llm/chat run and none has ended for 1m 30s.",
    ),
    Case("FloorcastEngineStalled", {f"floorcast_stalled_seconds{{{OF_TARGET}}}": f"0{STEADY}"}),
    Case(
        "FloorcastLabelledTargetRefused",
        {f'floorcast_discovery_refused{{{WHO},workload="llm/new"}}': f"1{STEADY}"},
        {"workload": "llm/new"},
        "llm/new asks by label to be scaled, and cannot be.",
    ),
    Case("FloorcastLabelledTargetRefused", {f"floorcast_discovered_targets{{{WHO}}}": f"1{STEADY}"}),
    Case(
        "FloorcastJournalLosesRecords",
        {f"floorcast_journal_lost_records{{{WHO}}}": "0+1x300"},
        SERVICE,
        "The journal of Floorcast loses records.",
    ),
    Case("FloorcastJournalLosesRecords", {f"floorcast_journal_lost_records{{{WHO}}}": f"7{STEADY}"}),
    Case(
        "FloorcastReplicasStuck",
        {f'floorcast_replicas{{{OF_TARGET},state="stuck"}}': f"2{STEADY}"},
        TARGET,
        "2 replicas of llm/chat do not become Ready.",
    ),
    Case("FloorcastReplicasStuck", {f'floorcast_replicas{{{OF_TARGET},state="warming"}}': f"2{STEADY}"}),
)


def promtool(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(prometheus.ensure().promtool), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603  (our own words)


def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    ran = promtool("check", "rules", str(FILE), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr + ran.stdout


def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(examples(CASES)))
    ran = promtool("test", "rules", "tests.yaml", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_examples_would_notice_a_rule_that_never_fires(tmp_path: Path) -> None:
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(examples([dataclasses.replace(CASES[2], series={})])))
    assert promtool("test", "rules", "tests.yaml", cwd=tmp_path).returncode != 0


@pytest.mark.parametrize("alert", RULES)
def test_every_alert_has_an_example_of_firing_and_one_of_silence(alert: str) -> None:
    assert {case.labels is None for case in CASES if case.alert == alert} == {True, False}


@pytest.mark.parametrize("alert", RULES)
def test_every_metric_and_label_of_an_alert_is_in_the_table(alert: str) -> None:
    metrics = {metric.name: metric for metric in table.TABLE}
    for name, matchers in re.findall(r"(floorcast_\w+)(?:\{([^}]*)\})?", RULES[alert]["expr"]):
        assert name in metrics
        assert set(re.findall(r"(\w+)(?:=~|!=|=)", matchers)) <= set(metrics[name].labels)


def examples(cases: Sequence[Case]) -> dict[str, Any]:
    """A file for `promtool test rules`; it compares whole annotations, so the descriptions come from the rules."""
    return {"rule_files": [str(FILE)], "evaluation_interval": "5m", "tests": [_example(case) for case in cases]}


def _example(case: Case) -> dict[str, Any]:
    rule = RULES[case.alert]
    fired = {
        "exp_labels": {**rule["labels"], **(case.labels or {})},
        "exp_annotations": {**rule["annotations"], "summary": case.summary},
    }
    expected = {"eval_time": AT, "alertname": case.alert, "exp_alerts": [] if case.labels is None else [fired]}
    series = [{"series": name, "values": values} for name, values in case.series.items()]
    return {"interval": "1m", "input_series": series, "alert_rule_test": [expected]}
