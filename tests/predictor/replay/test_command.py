"""The command as people use it: files in, a sentence and a report out, or a complaint and an exit code."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rich.progress

from models.signals import Signal
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay import backtest as rolling
from predictor.replay import command, csvfiles, report, rivals
from predictor.replay.command import Asked
from predictor.settings import loading
from tests.predictor.replay import histories

CHECKOUT = Path(__file__).resolve().parents[3]


def recording(folder: Path, values: np.ndarray, name: str = "chat.csv") -> Path:
    rows = "".join(f"{i},{round(value * 60)}\n" for i, value in enumerate(values))
    (folder / name).write_text(f"minute,requests\n{rows}")
    return folder / name


def made(asked: Asked) -> report.Outcome:
    with rich.progress.Progress(disable=True) as bar:
        return command.made(asked, 1.8e9, bar)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> report.Outcome:
    folder = tmp_path_factory.mktemp("recorded")
    values = histories.steep(1.6)
    values[700:760] = np.nan
    rows = "".join(f"{i},{'' if np.isnan(v) else round(v * 60)}\n" for i, v in enumerate(values))
    (folder / "a<b.csv").write_text(f"minute,requests\n{rows}")
    return made(Asked(files=(folder / "a<b.csv",), throughput=1.0, warm_up="2m,5m", slow=False, arguments=("--x",)))


def test_a_configuration_that_does_not_know_the_recordings_target_is_refused_where_it_is_asked(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("targets: [{namespace: llm, name: chat, engine: vllm}]")
    settings = loading.load(tmp_path / "own.yaml")
    asked = Asked(files=(recording(tmp_path, histories.steep(0.2)),), settings=settings, slow=False)
    with pytest.raises(ConfigurationError, match=r"--config: has no target 'chat', .*; it has llm/chat: call it so"):
        made(asked)
    assert made(dataclasses.replace(asked, throughput=1.0, warm_up="5m")).verdicts


def test_the_report_is_one_page_that_needs_no_network(outcome: report.Outcome) -> None:
    page = report.html(outcome)
    ours = page.split("<script>")[0]  # what comes after is plotly's own script, which names hosts of maps
    assert not re.search(r"(src|href)=", ours)
    assert "Plotly.newPlot" in page
    assert len(page) < 8_000_000


def test_the_report_says_the_sentence_what_was_missing_and_how_to_make_it_again(outcome: report.Outcome) -> None:
    page = report.html(outcome)
    assert outcome.headline.split(":")[0] in page
    assert "60 of 2304 rows have no value: unknown, not zero" in page
    assert "1 gaps, 60 of 2304 points" in page
    assert "floorcast backtest --x" in page
    absent = "planner: Prophet is not compared: its package is not installed."
    assert (absent in page) is bool(rivals.missing())


def test_names_cannot_break_out_of_the_page(outcome: report.Outcome) -> None:
    page = report.html(outcome).split("<script>")[0]  # plotly's own script compares an a to a b
    assert "a<b" not in page
    assert "a&lt;b" in page


def test_the_table_has_a_row_for_each_forecast_and_empty_cells_for_what_is_unknown(
    outcome: report.Outcome, tmp_path: Path
) -> None:
    _, table = report.write(outcome, tmp_path / "new")
    rows = pd.read_csv(table)
    assert len(rows) == 2 * 2304 / 2  # two warm-ups, every second minute
    assert list(rows.columns[:7]) == ["target", "signal", "warm_up_s", "horizon_s", "issued_at", "quality", "level"]
    assert rows["came"].isna().any()
    assert rows[rows.scored & rows.came.notna()].eval("came <= p99").mean() > 0.95


def test_where_room_is_planned_for_the_page_says_how_often_and_the_table_by_how_much(outcome: report.Outcome) -> None:
    scores = outcome.scores[0]

    def with_room(more: float) -> report.Outcome:
        room = scores.replayed.bounds.copy()
        room[-288:] += more  # a quarter of the origins
        replayed = dataclasses.replace(scores.replayed, room=room)
        return dataclasses.replace(outcome, scores=[dataclasses.replace(scores, replayed=replayed)])

    roomy, followed = with_room(5.0), with_room(0.0)
    said = "of these moments a floor at p95 is planned for the dashed line"
    assert f"At 25.0% {said}" in report.html(roomy)
    rows = report.rows(roomy)
    assert rows["room_p95"][:-288].isna().all()
    np.testing.assert_allclose(rows["room_p95"][-288:], rows["p95"][-288:] + 5)
    assert said not in report.html(followed)
    assert report.rows(followed)["room_p95"].isna().all()


def test_a_replica_that_nobody_described_is_assumed_and_that_is_noted(tmp_path: Path) -> None:
    found = made(Asked(files=(recording(tmp_path, histories.daily(0.3)),), slow=False))
    assert any("assumed to carry" in note.what for note in found.notes)
    assert "It cannot be said yet" in found.headline


def test_csv_and_trace_file_of_the_same_load_are_forecast_alike(tmp_path: Path) -> None:
    values = histories.daily(0.2)
    rows = "".join(f"{60 * i},{round(value * 60)}\n" for i, value in enumerate(values))
    own = tmp_path / "own.csv"
    own.write_text(f"ts,n\n{rows}")
    asked = Asked(csv=own, columns="time=ts,requests=n", unit=csvfiles.Unit.COUNT, slow=False)
    ours, theirs = made(asked), made(Asked(files=(recording(tmp_path, values),), slow=False))
    np.testing.assert_allclose(ours.scores[0].replayed.bounds, theirs.scores[0].replayed.bounds, rtol=1e-9)
    assert ours.absolute
    assert not theirs.absolute


def test_in_flight_alone_is_enough_with_a_concurrency(tmp_path: Path) -> None:
    rows = "".join(f"{60 * i},{value:.3f}\n" for i, value in enumerate(histories.daily(0.2)))
    (tmp_path / "own.csv").write_text(f"ts,busy\n{rows}")
    found = made(Asked(csv=tmp_path / "own.csv", columns="time=ts,in_flight=busy", concurrency=2.0, slow=False))
    assert found.scores[0].replayed.key[1] is Signal.IN_FLIGHT
    np.testing.assert_allclose(np.nanmax(found.economics[0].need), histories.daily(0.2).max() / 2, rtol=1e-3)


@pytest.mark.parametrize(
    ("told", "peak", "words"),
    [
        ({"concurrency": 4.0}, 10.0, None),  # in flight says enough: nothing is assumed of arrivals
        ({"throughput": 0.5}, 8.0, "assumed to hold 5 in flight"),
        ({}, 10.0, "assumed to carry 0.4 requests/s and 4 in flight, so that the busiest time takes ten"),
        ({"throughput": 0.5, "concurrency": 4.0}, 10.0, None),
    ],
)
def test_each_signal_is_held_against_what_was_said_of_it(
    tmp_path: Path, told: dict[str, float], peak: float, words: str | None
) -> None:
    rows = "".join(f"{60 * i},{2 + 2 * (i % 2)},{20 + 20 * (i % 2)}\n" for i in range(90))
    (tmp_path / "own.csv").write_text(f"ts,rps,busy\n{rows}")
    columns = "time=ts,requests=rps,in_flight=busy"
    found = made(Asked(csv=tmp_path / "own.csv", columns=columns, every="10m", slow=False, **told))  # type: ignore[arg-type]
    assert np.nanmax(found.economics[0].need) == pytest.approx(peak)
    assumed = [note.what for note in found.notes if "assumed" in note.what]
    assert [words in one for one in assumed] == [True] if words else not assumed


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, "0 sources are given; give one of --file"),
        ({"since": "14d", "csv": Path("x.csv")}, "2 sources"),
        ({"csv": Path("x.csv")}, "--columns: is missing"),
        ({"since": "14d", "throughput": -1.0}, "--throughput: -1 must be a positive number"),
        ({"since": "14d", "throughput": float("inf")}, "--throughput: inf must be a positive number"),
        ({"since": "14d", "concurrency": float("nan")}, "--concurrency: nan must be a positive number"),
        ({"since": "14d", "objective": 99.0}, "--objective: 99 must lie between 0 and 1"),
    ],
)
def test_a_command_line_that_does_not_fit_together_is_refused(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        Asked(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"warm_up": "5m,soon"}, "--warm-up: 'soon' is no duration"),
        ({"warm_up": "0s"}, "--warm-up: '0s' must be longer than nothing"),
        ({"zone": "Mars"}, "--zone: 'Mars' is no known time zone"),
        ({"quantile": 0.93}, "--quantile: 0.93 is not forecast; use one of 0.8, 0.9"),
        (
            {"throughput": 1e-9},
            "would take .* replicas of 1e-09 each, more than 1,000,000: give what one replica carries",
        ),
        ({"since": "14d", "files": ()}, "--since: needs a configuration"),
        ({"since": "14", "files": ()}, "--since: '14' is 14 s: ask for an hour at least, better 14d"),
        ({"since": "9999999d", "files": ()}, "--since: '9999999d' is more than ten years: ask for less"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(tmp_path: Path, changes: dict[str, object], complaint: str) -> None:
    given = {"files": (recording(tmp_path, histories.daily(0.05)),), "slow": False, **changes}
    with pytest.raises(ConfigurationError, match=complaint):
        made(Asked(**given))  # type: ignore[arg-type]


def test_a_recording_too_short_to_replay_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="fewer than 10 points"):
        made(Asked(files=(recording(tmp_path, np.ones(5)),)))


def test_more_time_between_forecasts_than_there_is_history_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="its 72m hold no forecast every 10d: left out"):
        made(Asked(files=(recording(tmp_path, histories.daily(0.05)),), every="10d"))


def test_a_target_too_short_to_replay_is_left_out_and_told(tmp_path: Path) -> None:
    files = (recording(tmp_path, histories.daily(0.05)), recording(tmp_path, np.ones(5), "new.csv"))
    found = made(Asked(files=files, every="10m", slow=False))
    assert {one.replayed.key[0] for one in found.scores} == {"chat"}
    (told,) = [note for note in found.notes if note.where == "new: arrivals"]
    assert (told.what, told.doubtful) == ("5 points are known, fewer than 10: left out", True)


def test_a_warm_up_that_is_given_twice_is_replayed_once(tmp_path: Path) -> None:
    file = recording(tmp_path, histories.daily(0.05))
    found = made(Asked(files=(file,), warm_up="5m,300s,2m", every="10m", slow=False))
    assert [one.replayed.warm_up for one in found.scores] == [300, 120]


@pytest.mark.parametrize("out", ["file", "file/below", "/proc/none"])
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("")
    given = Asked(files=(recording(tmp_path, histories.daily(0.05)),), every="10m", slow=False, out=tmp_path / out)
    with pytest.raises(ConfigurationError, match=r"--out: .*; name a"):
        command.run(given)


def test_a_quantile_that_is_not_forecast_is_refused_before_anything_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rolling, "run", lambda *_, **__: pytest.fail("replayed"))
    with pytest.raises(ConfigurationError, match="--quantile"):
        made(Asked(files=(recording(tmp_path, histories.daily(0.05)),), quantile=95.0))


def backtest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, "-m", "predictor.cli", "backtest", *arguments],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT), "COLUMNS": "140", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_sentence_is_on_standard_output_and_progress_is_not(tmp_path: Path) -> None:
    recording(tmp_path, histories.daily(0.2))
    done = backtest("--file", "chat.csv", "--no-slow", "--out", "found", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "It cannot be said yet whether a floor pays" in done.stdout
    assert "forecasting" not in done.stdout
    assert "nan" not in done.stdout
    page = (tmp_path / "found" / "report.html").read_text()
    assert "floorcast backtest --file chat.csv --no-slow --out found" in page
    assert (tmp_path / "found" / "backtest.csv").exists()


def test_a_doubt_how_a_column_was_read_is_on_the_terminal_and_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{60 * i},{60 + i % 7}\n" for i in range(90))
    (tmp_path / "own.csv").write_text(f"ts,n\n{rows}")
    asked = Asked(csv=tmp_path / "own.csv", columns="time=ts,requests=n", every="10m", slow=False, out=tmp_path / "out")
    assert command.run(asked) == 0
    doubt = "all whole numbers, read as requests a second; --unit count reads them as requests a row"
    assert f"note: own.csv: n: {doubt}" in capsys.readouterr().out.splitlines()
    assert doubt in (tmp_path / "out" / "report.html").read_text()


def test_of_several_each_reason_is_on_the_terminal_and_the_last_sentence_is_about_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording(tmp_path, np.full(200, 3.0), "chat.csv")
    recording(tmp_path, np.zeros(2000), "idle.csv")
    files = (tmp_path / "chat.csv", tmp_path / "idle.csv")
    assert command.run(Asked(files=files, every="10m", slow=False, out=tmp_path / "out")) == 0
    chat, idle, last = (line for line in capsys.readouterr().out.splitlines() if "It cannot be said" in line)
    assert chat.startswith("chat (warm-up 5m): It cannot be said yet whether a floor pays: only")
    assert idle.startswith("idle (warm-up 5m): It cannot be said whether a floor pays: no load came")
    assert last == "It cannot be said for chat (warm-up 5m), for idle (warm-up 5m)."


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ((), 2, "0 sources are given"),
        (("--file", "none.csv"), 2, "none.csv: no such file"),
        (("--file", "bad.csv"), 1, "bad.csv: line 3, column requests: 'x' is no finite number"),
    ],
)
def test_exit_codes(tmp_path: Path, arguments: tuple[str, ...], code: int, complaint: str) -> None:
    (tmp_path / "bad.csv").write_text("minute,requests\n0,1\n1,x\n")
    done = backtest(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
