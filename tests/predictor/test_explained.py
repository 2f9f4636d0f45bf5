"""`floorcast explain`: asked of the service and of the journal, told to a person and to a machine."""

import dataclasses
import datetime as dt
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import rich.console
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from models.signals import Cause, Signal, Unknown
from predictor import asked_for, explained, explaining
from predictor.board import Entry
from predictor.diary import DECISION, SEEN, Diary
from predictor.errors import ConfigurationError
from predictor.explained import Asked, UnexplainedError
from predictor.journal import DAY, Bounds, Journal, read
from predictor.ports import Refused
from predictor.settings import sections
from predictor.settings.root import Settings
from predictor.telemetry import pages
from predictor.telemetry.http import Server
from tests.predictor.decided import NOW, row
from tests.predictor.telemetry import examples

# ---------------------------------------------------------------------------------------------------------- the diary


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal of two hours in which the floor rose at half past two and went back at half past three."""
    book = Journal(tmp_path, Bounds(seconds=7 * DAY, size=10_000_000))
    diary = Diary(book)
    for number in range(726):
        now = NOW - 3600 + number * 10
        high = NOW <= now < NOW + 3600
        entry = row(waiting=240.0 if high else 0.0, now=now)
        diary.note(entry, now=now)
    book.close()
    return tmp_path


def settings(folder: Path | None) -> Settings:
    return Settings(journal=sections.Journal(path=folder), server=sections.Server(port=1))


def ask(folder: Path | None, **asked: object) -> str:
    out = io.StringIO()
    console = rich.console.Console(file=out, width=140, color_system=None)
    given = Asked(**{"target": "llm/chat", **asked})  # type: ignore[arg-type]
    assert explained.run(given, settings(folder), now=NOW + 3600, console=console) == 0
    return out.getvalue()


def test_the_journal_has_a_line_a_minute_and_each_change(folder: Path) -> None:
    records = list(read(folder))
    assert sum(one["kind"] == SEEN for one in records) == 121
    decisions = [(one["at"] - NOW, one["decision"]["replicas"]) for one in records if one["kind"] == DECISION]
    told = [at for at, replicas in decisions if replicas == 8]
    assert told[0] == 0
    assert all(675 <= after - before <= 1130 for before, after in itertools.pairwise(told))
    assert len(told) >= 3
    seen = next(one for one in records if one["kind"] == SEEN)
    assert seen["signals"] == {"in_flight": 60.0, "waiting": 0.0}
    assert (seen["ready"], seen["asked"], seen["floor"], seen["concurrency"]) == (2, 2, 6, 40)


def test_a_row_that_is_not_known_leaves_no_line(tmp_path: Path) -> None:
    book = Journal(tmp_path, Bounds(seconds=DAY, size=1_000_000))
    entry = Entry(examples.target(), workload=Refused("NotFound", ""))
    Diary(book).note(entry, now=NOW)
    book.close()
    assert list(read(tmp_path)) == []


def test_the_decision_of_a_time_is_found_in_the_journal(folder: Path) -> None:
    text = ask(folder, at="2026-03-01T14:40")
    assert text.startswith("llm/chat  2 -> 8  RaisedForBacklog  (shadow)\n2026-03-01 14:30:00 UTC: ")
    for part in (
        "in_flight",
        "12 s old",
        "seasoned",
        "(binding)",
        "cover the backlog",
        "without the backlog",
        "at most",
    ):
        assert part in text


def test_without_a_running_service_the_last_one_is_shown(folder: Path) -> None:
    assert "2026-03-01 15:30:00 UTC" in ask(folder)


def test_the_changes_of_a_span_are_a_table(folder: Path) -> None:
    lines = ask(folder, since="3h").splitlines()
    assert [line.split()[1:5] for line in lines[1:]] == [
        ["13:30:00", "2", "6", "6"],
        ["14:30:00", "2", "8", "8"],
        ["15:30:00", "2", "6", "6"],
    ]


def test_json_is_for_machines(folder: Path) -> None:
    assert json.loads(ask(folder, as_json=True))["decision"]["replicas"] == 6
    assert len(json.loads(ask(folder, as_json=True, since="2h"))) > 3


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"target": "llm/none"}, UnexplainedError, "knows llm/chat only"),
        (
            {"at": "2001-01-01"},
            UnexplainedError,
            "has none at that time, but from 2026-03-01 13:30 to 2026-03-01 15:30",
        ),
        ({"target": "chat"}, ConfigurationError, "'chat' is no target: write namespace/name"),
        ({"target": "llm/chat/x"}, ConfigurationError, "'llm/chat/x' is no target: write namespace/name"),
        ({"at": "noon"}, ConfigurationError, "--at: 'noon' is no time"),
        ({"since": "long"}, ConfigurationError, "--since: 'long' is no duration"),
        (
            {"url": "http://127.0.0.1:1"},
            UnexplainedError,
            "--url: http://127.0.0.1:1/api/explain/llm/chat does not answer: [Errno 111] Connection refused",
        ),
    ],
)
def test_what_cannot_be_answered_says_why(
    folder: Path, asked: dict[str, object], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=r".") as caught:
        ask(folder, **asked)
    assert told in str(caught.value)


def test_without_service_and_journal_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnexplainedError, match=r"set journal\.path"):
        ask(None)
    (tmp_path / "journal-000000000001000.jsonl").mkdir()
    with pytest.raises(UnexplainedError, match="Is a directory"):
        ask(tmp_path)


def test_both_the_service_and_the_journal_are_named_when_neither_answers(tmp_path: Path) -> None:
    refused = "  the service at http://127.0.0.1:1: [Errno 111] Connection refused; start it, or name it with --url"
    for folder, told in (
        (None, "  no journal is kept: set journal.path"),
        (tmp_path, f"  the journal at {tmp_path}: is empty"),
        (tmp_path / "none", f"  the journal at {tmp_path / 'none'}: is not there"),
    ):
        with pytest.raises(UnexplainedError) as caught:
            ask(folder)
        assert caught.value.lines == ("no decision of llm/chat is known", refused, told)


def test_an_answer_from_the_journal_says_why_it_is_not_the_services(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(folder)
    told = f"from the journal at {folder}; the service at http://127.0.0.1:1: [Errno 111] Connection refused"
    assert capsys.readouterr().err.startswith(told)
    ask(folder, at="2026-03-01T14:40")
    assert capsys.readouterr().err == ""  # that was asked of the journal


# ------------------------------------------------------------------------------------------------- unknown targets


def configured(folder: Path | None, *, discovery: bool = False) -> Settings:
    targets = [{"namespace": "llm", "name": name, "model": name, "capacity": {"knee": 40}} for name in ("code", "docs")]
    given = {
        "targets": targets,
        "discovery": {"enabled": discovery},
        "journal": {"path": folder},
        "server": {"port": 1},
    }
    return Settings.model_validate(given)


@pytest.mark.parametrize("target", ["llm/nope", "code"])
def test_an_unknown_target_is_refused_with_those_that_are_configured(target: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="use one of llm/code, llm/docs"):
        explained.run(Asked(target), configured(tmp_path), now=NOW)
    with pytest.raises(ConfigurationError, match="use one of llm/code, llm/docs"):
        asked_for.check(target, configured(None))


def test_with_discovery_the_configured_ones_are_a_hint(tmp_path: Path) -> None:
    settings = configured(tmp_path, discovery=True)
    asked_for.check("llm/nope", settings)
    with pytest.raises(UnexplainedError, match="use one of llm/code, llm/docs, others are found by label"):
        explained.run(Asked("llm/nope"), settings, now=NOW)


def test_a_target_that_is_no_longer_configured_is_still_explained_from_the_journal(folder: Path) -> None:
    out = io.StringIO()
    console = rich.console.Console(file=out, width=140, color_system=None)
    assert explained.run(Asked("llm/chat"), configured(folder), now=NOW + 3600, console=console) == 0
    assert out.getvalue().startswith("llm/chat")


# -------------------------------------------------------------------------------------------------------- the service


@pytest.fixture
def url() -> Iterator[str]:
    entry = row(waiting=240.0)
    nothing = pages.Sources(
        registry=CollectorRegistry(),
        dead=list,
        missing=list,
        state=dict,
        explain=lambda key: explaining.explain(entry) if key == entry.target.key else None,
    )
    with Server(pages.application(nothing), host="127.0.0.1", port=0) as server:
        yield server.url


def test_the_running_service_is_asked_first(url: str, folder: Path) -> None:
    assert "RaisedForBacklog" in ask(folder, url=url)


def test_what_the_service_does_not_know_may_be_in_the_journal(url: str, folder: Path) -> None:
    with pytest.raises(UnexplainedError, match="knows llm/chat only"):
        ask(folder, url=url, target="llm/none")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Response("oh", status_code=500), "answers 500"),
        (Response("<html>"), "answers with something that is no JSON"),
        (JSONResponse(["else"]), "answers with no explanation; is it Floorcast?"),
    ],
)
def test_an_answer_that_is_no_explanation_is_told(
    answer: Response, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    application = Starlette(routes=[Route("/api/explain/llm/chat", lambda _request: answer)])
    with Server(application, host="127.0.0.1", port=0) as server:
        port = int(server.url.rsplit(":", 1)[1])
        given = Settings(journal=sections.Journal(path=folder), server=sections.Server(port=port))
        explained.run(Asked("llm/chat"), given, now=NOW, console=rich.console.Console(file=io.StringIO()))
    assert f"the service at http://127.0.0.1:{port}: {told}" in capsys.readouterr().err


def test_times_are_shown_in_the_zone_of_the_configuration() -> None:
    out = io.StringIO()
    told = pages.plain(explaining.explain(row()))
    assert isinstance(told, dict)
    console = rich.console.Console(file=out, width=140, color_system=None)
    explained.show(told, console, zone=dt.timezone(dt.timedelta(hours=1), "CET"))
    assert "15:30:00 CET" in out.getvalue()


def test_trouble_is_shown() -> None:
    entry = row(dataclasses.replace(examples.STUCK, gpus=0))
    entry.stalled = 240.0
    entry.refused = Refused("Conflict", "changed meanwhile")
    entry.readings = {**entry.readings, Signal.ARRIVALS: Unknown(Cause.STALE, "120 s old")}
    out = io.StringIO()
    told = pages.plain(explaining.explain(entry))
    assert isinstance(told, dict)
    explained.show(told, rich.console.Console(file=out, width=200, color_system=None), zone=dt.UTC)
    for part in ("unknown: stale", "stalled for 240 s", "refused: Conflict", "Insufficient nvidia.com/gpu", "p90 of 3"):
        assert part in out.getvalue()
