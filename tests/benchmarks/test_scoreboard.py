"""The scoreboard's own maths, that it resumes, and a whole run on two tiny generated traces."""

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.scoreboard import __main__ as scoreboard
from benchmarks.scoreboard import contenders, mistaken, near, plots, results, sources, tables, traces, work
from benchmarks.scoreboard.results import Board, Effort, Facts, Race
from benchmarks.scoreboard.store import Store
from benchmarks.scoreboard.traces import Limits
from models.capacity import warmup
from models.policy import rules
from models.policy.context import Supply
from models.policy.protocol import Observation
from models.race.foresight import Foresight
from models.race.frontier import Point

TINY = Limits(hours=0.5, budget=4000)


def facts(name: str = "a", *, held_out: bool = False, lasts: float = 86400.0) -> Facts:
    return Facts(name, held_out, lasts, 0.0, 3600.0, 1000, "llama", 1.0, 2.0, 1.0, 10)


def points(*pairs: tuple[float, float]) -> tuple[Point, ...]:
    return tuple(Point(f"{i}", hours, missed, 10) for i, (hours, missed) in enumerate(pairs))


def race(ours: tuple[Point, ...], theirs: tuple[Point, ...], trace: Facts | None = None) -> Race:
    oracle = points((10, 0.1), (20, 0.001))  # .01 at 15
    return Race(trace or facts(), 300.0, {"oracle": oracle, "floorcast": ours, "hpa-queue": theirs})


def board(*races: Race, missing: tuple[str, ...] = (), effort: Effort | None = None) -> Board:
    known = {one.trace.name: one.trace for one in races}
    return Board(races, list(known.values()), missing, effort or Effort(90.0, 2, 1, 1200, 1190, 25.0))


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
    # The second gets to .01 at 20 h, where Floorcast misses .1; the first never does.
    assert (found.theirs, found.there) == (pytest.approx(0.1), 1)


def test_misses_are_compared_at_the_hours_of_a_policy_that_cannot_be_as_cheap() -> None:
    found = results.summary("hpa-queue", [race(points((20, 0.1), (40, 0.001)), points((40, 0.005), (50, 0.001)))])
    assert (found.misses, found.compared) == (None, 0)
    assert (found.theirs, found.there) == (pytest.approx(5.0), 1)


def test_the_best_in_hindsight_is_chosen_trace_by_trace_among_those_that_floorcast_serves() -> None:
    mine, other, bad = points((30, 0.01)), points((15, 0.01)), points((5, 0.5))
    told = [race(mine, other), race(other, mine), race(mine, bad), race(bad, other)]
    assert results.in_hindsight(told, 0.99) == pytest.approx([1.0, 1.0, 2.0])
    text = tables.written(board(*(dataclasses.replace(one, trace=facts(f"{i}")) for i, one in enumerate(told))), {})
    assert "| *best of all, in hindsight* | 1.26 (3/4) | never (0/0) | 1.26 (3/4) |" in text


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
    text = tables.written(board(race(good, points((50, 0.5))), missing=("a hpa at 5 min",)), {})
    tables.place(file, text, tables.SCOREBOARD)
    tables.place(file, text, tables.SCOREBOARD)
    content = file.read_text()
    assert content.startswith("# Benchmarks\n\nmine\n")
    assert content.count(tables.SCOREBOARD[0]) == content.count("### Scoreboard") == 1
    assert "never" in content
    assert "Not complete" in content
    assert plots.picture([race(good, good)]).startswith("<svg")


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
    assert work.sweep(job, tmp_path) == [{**point, "took": None} for point in first]
    assert all(point["took"] > 0 for point in first)
    assert first[0]["requests"] > 0


def test_a_result_that_cannot_be_read_is_made_again(trace: work.Trace, tmp_path: Path) -> None:
    job = work.Job(trace, 300.0, contenders.STATIC, close=False)
    first = work.sweep(job, tmp_path)
    for path in (tmp_path / "runs").iterdir():
        path.write_text("{")
    again = work.sweep(job, tmp_path)
    assert all(point["took"] for point in again)
    assert [{**point, "took": 0} for point in again] == [{**point, "took": 0} for point in first]
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


def test_a_trace_that_is_idle_in_the_hours_that_are_run_is_told_and_the_others_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(traces, "SAMPLE", 2000)
    head = "minute,requests,prompt_tokens,output_tokens"
    for name, late in (("early", 0), ("steady", 30)):
        rows = [f"{m},{30 if m < 12 else late},30000,6000" for m in range(60)]
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *rows]))
    arguments = ["--traces", str(tmp_path), "--warm-ups", "2", "--policies", "static", "--processes", "1", "--no-docs"]
    assert scoreboard.main([*arguments, "--cache", str(tmp_path / "cache")]) == 0
    told = capsys.readouterr().out
    assert "early: no requests from 0.2 to 1.0 h, which are run" in told
    assert "| steady | short |" in told
    assert "| early |" not in told


def test_a_folder_of_idle_traces_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["minute,requests,prompt_tokens,output_tokens", *(f"{minute},0,0,0" for minute in range(60))]
    (tmp_path / "idle.csv").write_text("\n".join(rows))
    arguments = ["--traces", str(tmp_path), "--processes", "1", "--no-docs", "--cache", str(tmp_path / "cache")]
    assert scoreboard.main(arguments) == 2
    told = capsys.readouterr()
    assert "nothing to run; idle: no requests from 0.2 to 1.0 h, which are run" in told.err
    assert "### Scoreboard" not in told.out


def test_both_knobs_of_a_schedule_are_run_where_it_is_asked_for_and_are_one_frontier() -> None:
    assert not contenders.names(("oracle",))("oracle-99.9")
    for asked in ((), ("keda-cron-day",)):
        assert all(map(contenders.names(asked), ("keda-cron-day", "keda-cron-day-share")))
    assert not contenders.names(("static",))("keda-cron-day-share")
    run = {"requests": 100, "missed": 1, "replica_hours": 5.0, "starts": 2, "knob": 1.0}
    (one,) = results.races({"a": facts()}, [("a", 300.0, f"keda-cron-day{knob}", [run]) for knob in ("", "-share")])
    assert len(one.points["keda-cron-day"]) == 2


def test_a_folder_without_traces_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scoreboard.main(["--traces", str(tmp_path)]) == 2
    assert "no traces" in capsys.readouterr().err


def test_the_table_of_left_out_rules_names_each_and_stands_in_a_section_of_its_own(tmp_path: Path) -> None:
    good = points((20, 0.1), (40, 0.001))
    name = contenders.ablated()[0]
    one = Race(facts(), 300.0, {"oracle": points((10, 0.1), (20, 0.001)), "floorcast": good, name: good})
    text, file = tables.ablated(board(one)), tmp_path / "benchmarks.md"
    assert f"| {name} | 2.00 (1/1) | never (0/0) |" in text
    tables.place(file, "### Scoreboard", tables.SCOREBOARD)
    tables.place(file, text, tables.ABLATION)
    assert "### Scoreboard" in file.read_text(encoding="utf-8")
    assert text in file.read_text(encoding="utf-8")


def wrongly_told(missed: float, hours: float) -> Race:
    """Each rule but the first costs as much as all of them under every mistake; the first misses twice as many."""
    found = {"oracle": points((10, 0.01)), "floorcast": points((20, 0.01))}
    for one in mistaken.every(contenders.RULES):
        worse = one.without == contenders.RULES[0]
        found[one.name] = points((hours * (0.5 if worse else 1.0), missed * (2 if worse else 1)))
    return Race(facts(), 300.0, found)


def test_the_table_of_mistakes_has_each_rule_beside_all_of_them() -> None:
    text = tables.ablated(board(wrongly_told(0.02, 10.0), wrongly_told(0.04, 90.0)))
    assert "#### When something is wrong, warm-up 5 min" in text
    assert f"| missed, hours, starts | {' | '.join(mistaken.MISTAKES)} |" in text
    assert f"| **all the rules** |{' 3.00 %, 1.00, 10 |' * len(mistaken.MISTAKES)}" in text
    assert f"| without {contenders.RULES[0]} |{' 6.00 %, 0.50, 10 |' * len(mistaken.MISTAKES)}" in text
    assert "mistaken:" not in text


def test_mistakes_are_run_when_rules_are_left_out_and_not_as_policies_of_the_scoreboard() -> None:
    names = set(mistaken.names(contenders.RULES))
    assert names <= set(contenders.foreseeing())
    assert not any(map(contenders.names(("all",)), names))
    assert not any(map(contenders.names(()), names))
    assert all(map(contenders.is_ours, names))


def test_each_mistake_is_in_what_floorcast_is_told(trace: work.Trace, tmp_path: Path) -> None:
    prepared = dataclasses.replace(work.prepare(trace, tmp_path), start=0.0)
    horizons, load = warmup.horizons(300.0, interval=30.0, signal_age=15.0), np.full((9, 2), 40.0 * prepared.knee.rate)
    foreseen = Foresight(0.0, 60.0, horizons, (0.5, 0.975), load, load)
    made = {mistake: mistaken.Mistaken(mistake).make(prepared, foreseen, 300.0) for mistake in mistaken.MISTAKES}
    seen = Observation(now=60.0, replicas=1, minimum=1, maximum=99, supply=Supply(1), readings={})
    wanted = {mistake: policy.decide(seen).wanted for mistake, policy in made.items()}
    whole = wanted[mistaken.AS_IT_IS]
    assert whole is not None
    assert wanted[mistaken.HALVED] == wanted[mistaken.OVERSTATED] == pytest.approx(whole / 2, abs=1)
    assert wanted[mistaken.SILENT] is None


def test_what_it_took_is_told_with_how_much_was_kept_from_earlier() -> None:
    good = points((20, 0.1), (40, 0.001))
    text = tables.written(board(race(good, good), effort=Effort(90.0, 4, 2, 1200, 1190, 25.0)), {}).replace("\n", " ")
    assert "Made in 1.5 min on 4 cores, 2 processes side by side: 1,200 runs, of which 1,190 were kept" in text
    assert "10 were made anew and took 2.5 s each." in text
    text = tables.written(board(race(good, good), effort=Effort(9.0, 4, 2, 12, 12, 0.0)), {})
    assert "0 were made anew." in text


def test_the_sources_of_the_traces_that_were_run_are_cited_and_no_others() -> None:
    good = points((20, 0.1), (40, 0.001))
    text = tables.written(board(race(good, good, facts("nab_elb")), race(good, good, facts("azure_2023_code"))), {})
    assert "Numenta Anomaly Benchmark, (c) 2014-2024 Numenta Inc. MIT, converted" in text
    assert "Splitwise (ISCA 2024); Stojkovic et al., DynamoLLM (HPCA 2025). CC-BY-4.0, converted" in text
    assert "ServeGen" not in text
    assert "#### Sources" not in tables.written(board(race(good, good, facts("my_own"))), {})


def test_every_supplied_trace_has_a_source() -> None:
    folder = scoreboard.ROOT.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("no traces beside the checkout")
    names = [traces.name_of(path) for path, _ in traces.files(folder)]
    assert sorted(name for _, mine in sources.of(names) for name in mine) == sorted(names)


def near_race(trace: str, ours: float | None, **hours: float) -> Race:
    """Everybody's hours at 99 %, the clairvoyant's being 10; None never gets there."""
    mine = points((5, 0.5)) if ours is None else points((ours, 0.01))
    others = {name.replace("_", "-"): points((each, 0.01)) for name, each in hours.items()}
    return Race(facts(trace), 300.0, {"oracle": points((10, 0.01)), "floorcast": mine, **others})


def test_rivals_that_are_near_are_told_cheapest_first_with_the_kind_of_load() -> None:
    told = [
        near_race("flat", 10.5, static=10.0, keda_load=12.0, hpa_queue=20.0, floorcast_reactive=10.0),
        near_race("daily", 12.0, static=30.0, keda_load=14.4),
        near_race("surging", 40.0, static=30.0),
        near_race("unseen", None, static=60.0),
        near_race("won", 11.0, static=30.0),
    ]
    assert list(near.rows(told)) == [
        ("trace", "kind of load", "5 min"),
        ("daily", near.IN_TIME, "keda-load 1.20"),
        ("flat", near.HARDLY_MOVES, "static 0.95, keda-load 1.14"),
        ("surging", near.UNANNOUNCED, "static 0.75"),
        ("unseen", near.UNANNOUNCED, "static alone"),
    ]


def test_where_not_even_the_clairvoyant_gets_there_the_load_is_not_called_surging() -> None:
    told = dataclasses.replace(
        near_race("long answers", 20.0, hpa_in_flight=10.0),
        points={"oracle": points((10, 0.5)), "floorcast": points((20, 0.01)), "hpa-in-flight": points((10, 0.01))},
    )
    assert near.kind([told]) == near.UNTOLD
    assert near.rivals(told) == [("hpa-in-flight", 0.5)]


def test_where_nobody_is_near_that_is_said() -> None:
    text = tables.written(board(near_race("won", 11.0, static=30.0)), {})
    assert "and why\n\nNowhere.\n" in text


def test_floorcast_without_a_rule_takes_part_under_the_rules_name() -> None:
    known = {rule.__name__ for rule in rules.RULES}
    assert set(contenders.RULES) <= known
