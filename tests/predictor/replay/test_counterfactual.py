"""What Floorcast would have changed, from the journal and on the simulated fleet."""

import dataclasses
import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import rich.console
import structlog

from predictor.aside import Aside
from predictor.diary import SEEN
from predictor.errors import ConfigurationError, HistoryError
from predictor.journal import DAY, Bounds, Journal
from predictor.ports import Owner
from predictor.replay import counterfactual, counterfactual_command
from predictor.replay.counterfactual import Figure, Terms
from predictor.replay.counterfactual_command import Asked
from predictor.settings import sections
from predictor.settings.root import Settings

START = 1_772_323_200.0
TERMS = Terms(objective=2.0, price=3.5, warm_up=300.0, seeds=3)


def signals(arrivals: float) -> dict[str, float]:
    return {"arrivals": arrivals, "tokens_in": 300 * arrivals, "tokens_out": 60 * arrivals}


def minute(number: int, **changes: object) -> dict[str, Any]:
    """Two requests a second, 300 and 60 tokens each, two replicas asked for, the floor at two."""
    seen = {"kind": SEEN, "target": "llm/chat", "at": START + 60 * number, "mode": "shadow", "owner": "hpa"}
    state = {"signals": signals(2.0), "ready": 2, "warming": 0, "asked": 2, "floor": 2, "gpus": 2}
    return {**seen, **state, "warm_up": 180.0, "concurrency": 8.0, "duration": 3.0, **changes}


def surge() -> list[dict[str, Any]]:
    """Two hours; load is six times as high in the second half. The autoscaler follows ten minutes late, Floorcast was
    there five minutes early."""
    return [
        minute(
            number,
            signals=signals(2.0 if number < 60 else 12.0),
            asked=2 if number < 70 else 8,
            floor=2 if number < 55 else 8,
        )
        for number in range(120)
    ]


def recorded(records: list[dict[str, Any]]) -> counterfactual.Recorded:
    return counterfactual.recorded(records, warm_up=300.0, target="llm/chat")


def test_a_minute_of_the_journal_is_a_minute_of_requests_and_replicas() -> None:
    given = recorded([minute(number, asked=number % 3, floor=2) for number in range(20)])
    assert given.requests.tolist() == [120.0] * 20
    assert (given.prompt[0], given.output[0]) == (300, 60)
    assert given.ran.tolist()[:4] == [0, 1, 2, 0]
    assert given.would.tolist() == [2.0] * 20  # a floor below an autoscaler
    assert (given.warm_up, given.gpus, given.missing) == (180, 2, 0)


def test_without_an_autoscaler_the_floor_is_the_count() -> None:
    given = recorded([minute(number, owner=str(Owner.SCALE), asked=6, floor=2) for number in range(20)])
    assert given.would.tolist() == [2.0] * 20
    assert given.ran.tolist() == [6.0] * 20


def test_a_short_gap_goes_on_as_before_and_a_long_one_is_told_and_is_no_load() -> None:
    given = recorded([minute(number) for number in range(60) if number not in (5, 6) and not 20 <= number < 40])
    assert given.requests[5:7].tolist() == [120, 120]
    assert given.requests[31] == 0
    assert given.ran.tolist() == [2.0] * 60
    assert given.missing == pytest.approx(10 / 60)


def test_what_was_not_told_is_assumed() -> None:
    silent = [minute(number, signals={"arrivals": 2.0}, warm_up=None, duration=None, gpus=0) for number in range(20)]
    given = recorded(silent)
    assert (given.prompt[0], given.output[0], given.warm_up, given.gpus) == (1000, 200, 300, 1)


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([minute(number) for number in range(14)], "14 minutes of llm/chat in that span, 15 are needed"),
        ([minute(number, mode="control") for number in range(20)], "was in control mode"),
        ([minute(number, signals={}) for number in range(20)], "knows no arrivals"),
    ],
)
def test_what_cannot_be_told_says_why(records: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(HistoryError, match=told):
        recorded(records)


def test_the_simulated_replica_holds_and_takes_what_the_real_one_does() -> None:
    one = counterfactual.replica(concurrency=8, duration=3.0, prompt=300, output=60)
    assert one.max_num_seqs == 10  # 8 and a fifth
    step = one.law.step(decoding=5, context=5 * 330)
    assert 60 * step / 1e3 == pytest.approx(3.0, rel=0.01)


def test_an_early_floor_spares_late_answers_for_more_hours_with_an_error_bar() -> None:
    found = counterfactual.run(recorded(surge()), TERMS)
    spared = found.difference["missed"]
    assert spared.mean + spared.error < -1000  # some ten minutes of six requests a second too many
    assert found.difference["replica_hours"].mean == pytest.approx(6 * 15 / 60, abs=0.2)
    assert found.difference["cost"].mean == pytest.approx(found.difference["replica_hours"].mean * 7)
    assert found.ran["missed"].error > 0


def test_the_same_course_makes_no_difference_at_all() -> None:
    found = counterfactual.run(recorded([minute(number) for number in range(30)]), TERMS)
    assert set(found.difference.values()) == {Figure(0.0, 0.0)}
    assert found.requests == pytest.approx(3600, rel=0.05)


def test_an_error_bar_takes_two_seeds() -> None:
    with pytest.raises(ValueError, match="seeds"):
        dataclasses.replace(TERMS, seeds=1)


# ---------------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    book = Journal(tmp_path, Bounds(seconds=7 * DAY, size=10_000_000))
    for record in surge():
        book.append(record)
    book.close()
    return Settings(journal=sections.Journal(path=tmp_path))


@pytest.fixture(autouse=True)
def _stays_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterfactual_command.os, "nice", lambda _more: 0)


def ask(settings: Settings, **asked: object) -> str:
    out = io.StringIO()
    console = rich.console.Console(file=out, width=140, color_system=None)
    given = Asked(**{"target": "llm/chat", "seeds": 2, **asked})  # type: ignore[arg-type]
    assert counterfactual_command.run(given, settings, now=START + 7200, console=console) == 0
    return out.getvalue()


def test_a_person_reads_a_table_and_a_sentence(settings: Settings) -> None:
    text = ask(settings)
    assert text.startswith("llm/chat, 2.0 h, ")
    assert "later than 2 s" in text
    assert "Floorcast would have meant" in text
    assert "fewer late answers, for $" in text


def test_no_difference_that_can_be_told_is_said_to_be_none(settings: Settings) -> None:
    assert "made no difference to answers that could be told" in ask(settings, since="50m", ttft="100s")


def test_a_machine_reads_json(settings: Settings) -> None:
    found = json.loads(ask(settings, as_json=True))
    assert set(found["difference"]) == {"requests", "missed", "replica_hours", "warming_hours", "starts", "cost"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [({"since": "long"}, "--since: 'long'"), ({"ttft": "quick"}, "--ttft: 'quick'"), ({"seeds": 1}, "--seeds: 1")],
)
def test_what_is_misspelt_is_named(settings: Settings, asked: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        ask(settings, **asked)


def test_a_target_that_nobody_configured_is_refused_unless_the_journal_has_it(settings: Settings) -> None:
    code = {"namespace": "llm", "name": "code", "model": "code", "capacity": {"knee": 40}}
    given = Settings.model_validate({"targets": [code], "journal": {"path": settings.journal.path}})
    for wrong in ("llm/nope", "chat"):
        with pytest.raises(ConfigurationError, match="use one of llm/code"):
            ask(given, target=wrong)
    assert ask(given).startswith("llm/chat, ")


def test_without_a_journal_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"journal\.path: is not set"):
        ask(Settings())
    (tmp_path / "journal-000000000001000.jsonl").mkdir()
    with pytest.raises(HistoryError, match="Is a directory"):
        ask(Settings(journal=sections.Journal(path=tmp_path)))


# --------------------------------------------------------------------------------------------------- beside the service

ECHO = "import json, sys; print(json.dumps({'target': sys.argv[-1], 'flags': sys.argv[1:-1]}))"
FAILS = "import sys; sys.exit('the journal has 3 minutes')"
HANGS = "import time, threading; threading.Event().wait(60)"


class Told:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.figures: list[tuple[str, Mapping[str, Any] | None]] = []

    def __call__(self, key: str, found: Mapping[str, Any] | None) -> None:
        self.figures.append((key, found))


def aside(program: str, told: Told, *, config: Path | None = None) -> Aside:
    keys = ["llm/chat", "llm/code"]
    return Aside(lambda: keys, told, every=3600.0, config=config, command=(sys.executable, "-c", program))


def test_every_target_is_simulated_in_a_process_of_its_own() -> None:
    told = Told()
    aside(ECHO, told, config=Path("floorcast.yaml")).round()
    flags = ["--json", "--since", "24h", "--config", "floorcast.yaml"]
    assert told.figures == [
        ("llm/chat", {"target": "llm/chat", "flags": flags}),
        ("llm/code", {"target": "llm/code", "flags": flags}),
    ]


def test_why_there_are_no_figures_is_logged_once() -> None:
    structlog.reset_defaults()
    told = Told()
    runner = aside(FAILS, told)
    with structlog.testing.capture_logs() as logs:
        runner.round()
        runner.round()
    assert told.figures == [("llm/chat", None), ("llm/code", None)] * 2
    assert [(one["target"], one["problem"]) for one in logs] == [
        ("llm/chat", "the journal has 3 minutes"),
        ("llm/code", "the journal has 3 minutes"),
    ]


def test_a_simulation_under_way_ends_with_the_service() -> None:
    told = Told()
    runner = aside(HANGS, told)
    runner._every = 0.01
    runner.start()
    while runner._child is None:
        pass
    runner.stop()
    runner._thread.join(10)
    assert not runner._thread.is_alive()
    assert told.figures == [("llm/chat", None)]


def test_nothing_is_begun_after_the_end() -> None:
    told = Told()
    runner = aside(ECHO, told)
    runner.stop()
    runner.round()
    assert told.figures == []
