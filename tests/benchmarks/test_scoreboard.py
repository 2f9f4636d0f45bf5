"""The scoreboard's own maths, that it resumes, and a whole run on two tiny generated traces."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.scoreboard import __main__ as scoreboard
from benchmarks.scoreboard import contenders, plots, results, tables, traces, work
from benchmarks.scoreboard.results import Facts, Race
from benchmarks.scoreboard.store import Store
from benchmarks.scoreboard.traces import Limits
from models.policy import rules
from models.race.frontier import Point

TINY = Limits(hours=0.5, budget=4000)


def facts(name: str = "a", *, held_out: bool = False, lasts: float = 86400.0) -> Facts:
    return Facts(name, held_out, lasts, 0.0, 3600.0, 1000, "llama", 1.0, 2.0, 1.0, 10)


def points(*pairs: tuple[float, float]) -> tuple[Point, ...]:
    return tuple(Point(f"{i}", hours, missed, 10) for i, (hours, missed) in enumerate(pairs))


def race(ours: tuple[Point, ...], theirs: tuple[Point, ...], trace: Facts | None = None) -> Race:
    oracle = points((10, 0.1), (20, 0.001))  # .01 at 15
    return Race(trace or facts(), 300.0, {"oracle": oracle, "floorcast": ours, "hpa-queue": theirs})


def test_hours_are_divided_by_the_oracles_at_the_same_attainment() -> None:
    one = race(points((20, 0.1), (40, 0.001)), points((50, 0.5)))
    assert one.over_oracle("floorcast", 0.99) == pytest.approx(2.0)
    assert one.over_oracle("hpa-queue", 0.99) is None
    assert one.over_oracle("oracle", 0.99) == pytest.approx(1.0)


def test_a_policy_that_never_gets_there_counts_as_not_reached() -> None:
    good, bad = points((20, 0.1), (40, 0.001)), points((25, 0.05))
    found = results.summary("hpa-queue", [race(good, bad), race(good, points((15, 0.1), (30, 0.0001)))])
    assert (found.races, found.reached[0.99]) == (2, 1)
    assert found.ratios[0.99] == pytest.approx((15 + 15 / 3) / 15)
    # At Floorcast's 30 h: the first misses .05 for .01, the second 1e-4.
    assert found.misses == pytest.approx(np.sqrt(5 * 0.01))


def test_short_traces_are_not_averaged_and_halves_are_apart() -> None:
    good = points((20, 0.1), (40, 0.001))
    every = [race(good, good, facts("a")), race(good, good, facts("b", held_out=True)), race(good, good, facts("c", lasts=3600))]  # fmt: skip  # noqa: E501
    halves = results.halves(every)
    assert [[one.trace.name for one in halves[part]] for part in ("development", "held out", "all")] == [
        ["a"], ["b"], ["a", "b"],
    ]  # fmt: skip


def test_the_oracles_aims_are_one_frontier() -> None:
    run = {"requests": 100, "missed": 1, "replica_hours": 5.0, "starts": 2, "knob": 1.0}
    swept = [("a", 300.0, "oracle", [run]), ("a", 300.0, "oracle-99", [run, run])]
    (one,) = results.races({"a": facts()}, swept)
    assert len(one.points["oracle"]) == 3


def test_tables_keep_what_stands_around_their_markers(tmp_path: Path) -> None:
    file = tmp_path / "benchmarks.md"
    file.write_text("# Benchmarks\n\nmine\n")
    good = points((20, 0.1), (40, 0.001))
    text = tables.written([race(good, points((50, 0.5)))], {}, [facts()], ["a hpa at 5 min"])
    tables.place(file, text, tables.SCOREBOARD)
    tables.place(file, text, tables.SCOREBOARD)
    content = file.read_text()
    assert content.startswith("# Benchmarks\n\nmine\n")
    assert content.count(tables.SCOREBOARD[0]) == content.count("### Scoreboard") == 1
    assert "never" in content
    assert "Not complete" in content
    assert plots.picture([race(good, good)]).startswith("<svg")


def test_a_sweep_runs_the_default_both_ends_and_what_lies_around_a_target() -> None:
    asked = []

    def run(value: float) -> dict[str, Any]:
        asked.append(value)
        return {"missed": 10 ** -(value + 1), "requests": 1}  # .01 at 1, .001 at 2

    values = [x / 4 for x in range(13)]
    found = work.sought(values, 3.0, run, close=True)
    assert {0.0, 3.0, 1.0, 0.75} <= set(asked)
    assert len(asked) == len(set(asked)) < len(values)
    assert len(found) == len(asked)
    asked.clear()
    work.sought(values, 1.0, run, close=False)
    assert sorted(asked) == [0.0, 1.0, 3.0]


def test_hours_that_are_run() -> None:
    day = 86400.0
    assert traces.window(14 * day, 24) == (8 * day, 9 * day)
    assert traces.window(7 * day, 24) == (6 * day, 7 * day)
    assert traces.window(3600, 24) == (900, 3600)
    assert traces.window(14 * day, 3) == (8 * day, 8 * day + 3 * 3600)


def test_every_second_file_is_held_out(tmp_path: Path) -> None:
    for name in ("c.csv", "a.csv.gz", "b.csv"):
        (tmp_path / name).touch()
    assert [(path.name, held_out) for path, held_out in traces.files(tmp_path)] == [
        ("a.csv.gz", False), ("b.csv", True), ("c.csv", False),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> work.Trace:
    folder = scoreboard.smoke_traces(tmp_path_factory.mktemp("traces"))
    path, held_out = traces.files(folder)[1]
    return work.trace_of(path, TINY, held_out=held_out)


def test_a_prepared_trace_is_scaled_to_its_limits(trace: work.Trace, tmp_path: Path) -> None:
    found = work.prepare(trace, tmp_path)
    assert traces.LEAST <= found.peak <= traces.MOST
    assert found.knee.rate <= traces.CARRIES * 1.01
    assert found.tokens >= 1
    assert found.arrivals.values.sum() * 60 >= len(found.requests)
    assert found.requests.times[0] >= found.start
    assert found.requests.times[-1] < found.end


def test_what_was_run_before_is_not_run_again(
    trace: work.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = work.Job(trace, 300.0, contenders.STATIC, close=False)
    first = work.sweep(job, tmp_path)
    monkeypatch.setattr(work, "_run", lambda *_: pytest.fail("it was run again"))
    assert work.sweep(job, tmp_path) == first
    assert first[0]["requests"] > 0


def test_a_result_that_cannot_be_read_is_made_again(trace: work.Trace, tmp_path: Path) -> None:
    job = work.Job(trace, 300.0, contenders.STATIC, close=False)
    first = work.sweep(job, tmp_path)
    for path in (tmp_path / "runs").iterdir():
        path.write_text("{")
    assert work.sweep(job, tmp_path) == first
    assert Store(tmp_path).json("runs/none") is None


def test_a_policy_that_does_not_exist_has_no_points(trace: work.Trace, tmp_path: Path) -> None:
    assert work.sweep(work.Job(trace, 300.0, "nobody", close=False), tmp_path) == []


def test_a_whole_run_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(traces, "SAMPLE", 2000)
    folder, out = tmp_path / "traces", tmp_path / "points.json"
    folder.mkdir()
    rows = [f"{m},{30 + 20 * (m % 60 > 30)},{30000},{6000}" for m in range(60)]
    text = "\n".join(["minute,requests,prompt_tokens,output_tokens", *rows])
    (folder / "tiny.csv.gz").write_bytes(gzip.compress(text.encode()))
    docs = tmp_path / "docs" / "benchmarks.md"
    docs.parent.mkdir()
    code = scoreboard.main(
        ["--traces", str(folder), "--json", str(out), "--warm-ups", "2", "--policies", "static", "--processes", "1",
         "--cache", str(tmp_path / "cache"), "--docs", str(docs)]
    )  # fmt: skip
    assert code == 0
    assert "| tiny | short |" in capsys.readouterr().out
    (found,) = json.loads(out.read_text())
    assert set(found["points"]) == {"oracle", "floorcast", "static"}
    assert docs.read_text().count("frontiers-2min.svg") == 1
    assert (docs.parent / "scoreboard" / "frontiers-2min.svg").exists()


def test_a_folder_without_traces_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scoreboard.main(["--traces", str(tmp_path)]) == 2
    assert "no traces" in capsys.readouterr().err


def test_the_table_of_left_out_rules_names_each_and_stands_in_a_section_of_its_own(tmp_path: Path) -> None:
    good = points((20, 0.1), (40, 0.001))
    name = contenders.ablated()[0]
    one = Race(facts(), 300.0, {"oracle": points((10, 0.1), (20, 0.001)), "floorcast": good, name: good})
    text, file = tables.ablated([one]), tmp_path / "benchmarks.md"
    assert f"| {name} | 2.00 (1/1) | never (0/0) |" in text
    tables.place(file, "### Scoreboard", tables.SCOREBOARD)
    tables.place(file, text, tables.ABLATION)
    assert "### Scoreboard" in file.read_text(encoding="utf-8")
    assert text in file.read_text(encoding="utf-8")


def test_floorcast_without_a_rule_takes_part_under_the_rules_name() -> None:
    known = {rule.__name__ for rule in rules.RULES}
    assert set(contenders.RULES) <= known
