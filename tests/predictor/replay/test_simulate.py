"""`floorcast simulate`: workloads, runs, the report, and what is refused."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from models.fleet import profiles
from models.race.frontier import Point
from models.series import Series
from models.signals import Signal
from predictor import cli
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay import simulate, simulateload, simulatereport, simulateruns
from predictor.replay.recorded import Recorded
from predictor.replay.simulate import Asked
from predictor.replay.simulatepolicies import Chosen
from predictor.replay.simulateruns import Found, Question
from predictor.settings.root import Settings

SMALL = "rate=5,days=0.2,day=0,surge=20m:2:10m"


@pytest.fixture(scope="module")
def found() -> Found:
    load = simulateload.generated(SMALL, hours=0.75, seed=1)
    question = Question(
        profile=profiles.LLAMA_8B_RTX4090,
        warm_up=(120.0, 120.0),
        policies=tuple(map(Chosen, ("floorcast", "static", "oracle"))),
        sweep=1,
    )
    told: list[float] = []
    outcome = simulateruns.run(load, question, tell=lambda _, share: told.append(share))
    assert told == sorted(told)
    assert told[-1] <= 1
    return outcome


def test_every_policy_has_its_day_and_its_frontier(found: Found) -> None:
    assert [one.name for one in found.raced] == ["floorcast", "static", "oracle"]
    for one in found.raced:
        assert len(one.points) == 2
        assert one.points[0].hours == one.outcome.replica_hours
        arrived = np.nansum(one.timeline.demand[1:] * np.diff(one.timeline.times))
        assert arrived == pytest.approx(one.outcome.requests, rel=0.05)
        assert one.timeline.ready[0] == 0  # what is asked for first becomes ready in the same second
        assert one.timeline.ready[1] >= 1
    assert len({one.outcome.requests for one in found.raced}) == 1


def test_the_report_is_one_file_without_script_or_network(found: Found, tmp_path: Path) -> None:
    told = simulatereport.Told("floorcast simulate", "<b>mine</b>", found, 2.0, "€", 0.9, ())
    page, runs, served, course = simulatereport.write(told, tmp_path)
    text = page.read_text()
    assert "<script" not in text
    assert "http" not in text
    assert "&lt;b&gt;mine" in text
    assert text.count("<svg") == 1 + len(found.raced)
    rows = list(csv.DictReader(runs.read_text().splitlines()))
    assert len(rows) == sum(len(one.points) for one in found.raced)
    first = rows[0]
    assert float(first["cost"]) == pytest.approx(float(first["replica_hours"]) * 2.0, rel=1e-4)
    (ours, *_) = csv.DictReader(served.read_text().splitlines())
    assert ours["policy"] == "floorcast"
    assert float(ours["ttft_p50_s"]) <= float(ours["ttft_p99_s"]) < float(ours["e2e_p99_s"])
    assert 0 < float(ours["itl_p50_s"]) < 0.2
    assert int(ours["requests"]) >= int(ours["missed"]) >= int(ours["timed_out"])
    assert float(ours["hours_below_demand"]) < 0.75
    assert {row["policy"] for row in csv.DictReader(course.read_text().splitlines())} == {
        "floorcast",
        "static",
        "oracle",
    }


def test_warm_ups_between_two_are_planned_for_with_their_p90_and_said(found: Found, tmp_path: Path) -> None:
    question = Question(profile=profiles.LLAMA_8B_RTX4090, warm_up=(60.0, 160.0))
    assert question.planned == 150.0
    course = dataclasses.replace(found.course, warm_up=150.0, drawn=(60.0, 160.0), retries=2)
    told = simulatereport.Told("", "w", dataclasses.replace(found, course=course), 2.0, "$", 0.9, ())
    page, *_ = simulatereport.write(told, tmp_path)
    text = " ".join(page.read_text().split())
    assert "a warm-up of 1m to 160s (planned with: 150s)" in text
    assert "comes back, up to 2 times" in text


def test_the_headline_names_the_cheapest_and_who_never_gets_there(found: Found) -> None:
    points = {"floorcast": (10.0, 0.001), "static": (20.0, 0.001), "oracle": (5.0, 0.5)}
    raced = tuple(
        dataclasses.replace(one, points=(Point("1", *points[one.name], starts=0),)) for one in found.raced
    )  # fmt: skip
    told = simulatereport.Told("", "w", dataclasses.replace(found, raced=raced), 2.0, "$", 0.99, ())
    assert "floorcast is cheapest of what was run: at most $20.00 (static at most $40.00)" in told.headline
    assert (
        "Never there at the default setting, the only one that was run (--sweep 2 runs more): oracle" in told.headline
    )
    assert [told.tuned_shown(one) for one in raced] == ["≤ $20.00", "≤ $40.00", "never"]
    hopeless = dataclasses.replace(told, attainment=0.99999)
    assert "No policy that was run gets" in hopeless.headline


def test_settings_of_a_sweep_are_spread_evenly() -> None:
    assert simulateruns.chosen([1, 2, 3, 4, 5, 6], 4, 3) == [1, 3, 6]
    assert simulateruns.chosen([1, 2, 3], 2, 9) == [1, 3]
    assert simulateruns.chosen([1, 2, 3], 2, 0) == []


def test_a_recording_gives_requests_of_the_lengths_its_tokens_say() -> None:
    rate = Series(0.0, 60.0, np.full(120, 2.0))
    tokens = Series(0.0, 60.0, np.full(120, 800.0))
    recorded = Recorded({("a/b", Signal.ARRIVALS): rate, ("a/b", Signal.TOKENS_IN): tokens})
    load = simulateload.recorded(recorded, "a/b", hours=1.0, seed=1, tokens=(1000.0, 200.0))
    assert load.lengths.prompts.mean() == pytest.approx(400, rel=0.1)
    assert load.lengths.outputs.mean() == pytest.approx(200, rel=0.1)
    assert any("tokens_out" in note.where for note in load.notes)
    with pytest.raises(HistoryError, match="arrivals are not known"):
        simulateload.recorded(recorded, "other/one", hours=1.0, seed=1, tokens=(1.0, 1.0))


def test_the_command_writes_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [
        "floorcast", "simulate", "--generate", SMALL, "--hours", "0.5", "--profile", "llama-8b-rtx4090", "--warm-up",
        "2m", "--policy", "static", "--policy", "keda-load", "--sweep", "1", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert "keda-load" in capsys.readouterr().out
    assert (tmp_path / "out" / "simulation.html").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "0 sources are given"),
        ({"generate": "", "since": "9d"}, "2 sources are given"),
        ({"generate": "", "attainment": 1.0}, "--attainment: 1 must lie between 0 and 1"),
        ({"generate": "", "price": 0.0}, "--price: 0 must be a positive number"),
        ({"generate": "", "tokens": (0.0, 200.0)}, "--prompt: 0 must be at least 1 token"),
        ({"generate": "", "tokens": (9.0, float("nan"))}, "--output: nan must be at least 1 token"),
        ({"generate": "", "sweep": -1}, "--sweep: -1 must not be negative"),
        ({"generate": "rats=3"}, "rats=3.*write name=value with one of rate"),
        ({"generate": "rate=x"}, "rate='x': must be a number"),
        ({"generate": "rate=0"}, "rate=0: must be positive"),
        ({"generate": "surge=6h"}, "write AT:FACTOR:LASTS"),
        ({"generate": "", "profile": "a toaster"}, "--profile: 'a toaster' is unknown; use one of llama-8b-h100"),
        ({"generate": "", "warm_up": "soon"}, "--warm-up: 'soon'"),
        ({"generate": "", "warm_up": "8m..3m"}, "--warm-up: '8m..3m': the shorter one comes first, as 3m..8m"),
        ({"generate": "", "warm_up": "3m.."}, "--warm-up: ''"),
        ({"generate": "", "retries": 11}, "--retries: 11 must lie in 0..10"),
        (
            {"generate": SMALL, "hours": 0.5, "policies": ("luck",)},
            "--policy: 'luck' is not known; there are floorcast",
        ),
        ({"file": Path("nowhere.csv")}, "nowhere.csv: no such file"),
        ({"since": "9d"}, "--since: needs a configuration"),
        ({"since": "9", "settings": Settings()}, "--since: '9' is 9 s: ask for an hour at least"),
        ({"since": "9d", "settings": Settings(), "target": "a/b"}, "targets: the configuration names none"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_remedy(wrong: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        simulate.run(Asked(**wrong, out=tmp_path))  # type: ignore[arg-type]
