import dataclasses
from pathlib import Path

import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict

from models.capacity import warmup
from models.policy.decision import Reason
from models.signals import Cause, Known, Signal, Unknown
from predictor import loops
from predictor.board import Entry
from predictor.diary import Diary
from predictor.journal import DAY, Bounds, Journal, read
from predictor.ports import Refused, Written
from predictor.telemetry.health import Pulse
from predictor.telemetry.metrics import Metrics
from predictor.telemetry.recording import Telemetry
from tests.fakes.world import FakeClock
from tests.predictor.telemetry import examples

TARGET = examples.target()


class Desk:
    """A recorder with everything behind it, and what it logged."""

    def __init__(self) -> None:
        structlog.reset_defaults()
        self.metrics = Metrics()
        self.pulse = Pulse({"slow": 30.0}, lambda: 0.0)
        self.clock = FakeClock(1000.0)
        self.recorder = Telemetry(self.metrics, self.pulse, self.clock)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"floorcast_{name}", labels)

    def read(self, reading: Known | Unknown) -> list[EventDict]:
        with capture_logs() as said:
            self.recorder.readings(TARGET, {Signal.WAITING: reading}, now=1000.0)
        return said


def test_it_is_the_recorder_the_loops_ask_for() -> None:
    asked = {name for name in vars(loops.Recorder) if not name.startswith("_")}
    assert asked
    assert asked <= set(dir(Desk().recorder))


def test_a_finished_tick_beats_and_a_failed_one_is_logged() -> None:
    desk = Desk()
    with capture_logs() as said:
        desk.recorder.tick("slow", seconds=0.1, outcome="failed")
        desk.recorder.tick("slow", seconds=0.1, outcome="finished")
    assert [(one["log_level"], one["loop"], one.get("outcome")) for one in said] == [
        ("warning", "slow", "failed"),
        ("info", "slow", None),
    ]
    assert desk.value("last_tick_timestamp_seconds", loop="slow") == 1000
    assert desk.value("ticks_total", loop="slow", outcome="failed") == 1


def test_a_late_tick_is_counted_and_logged() -> None:
    desk = Desk()
    with capture_logs() as said:
        desk.recorder.late("fast")
    assert len(said) == 1
    assert desk.value("late_ticks_total", loop="fast") == 1


def test_ticks_that_fail_or_are_late_for_hours_are_a_line_now_and_then_and_not_one_each() -> None:
    desk = Desk()
    with capture_logs() as said:
        for second in range(7200):
            desk.clock.time = 1000.0 + second
            desk.recorder.tick("slow", seconds=0.1, outcome="failed")
            desk.recorder.late("fast")
    assert len([one for one in said if one["loop"] == "slow"]) == 1
    late = [one["more_since_last_said"] for one in said if one["loop"] == "fast"]
    assert late == [0, *[599] * 11]
    assert desk.value("late_ticks_total", loop="fast") == 7200
    assert desk.value("ticks_total", loop="slow", outcome="failed") == 7200


def test_an_unknown_signal_is_logged_when_it_changes_and_not_at_every_tick() -> None:
    desk = Desk()
    down, stale = Unknown(Cause.SOURCE_DOWN, "refused"), Unknown(Cause.STALE)
    said = [desk.read(reading) for reading in (Known(1, 990), down, down, stale, Known(1, 990), Known(2, 990))]
    assert [[(one["event"], one.get("cause")) for one in each] for each in said] == [
        [],
        [("signal unknown", "source_down")],
        [],
        [("signal unknown", "stale")],
        [("signal known again", None)],
        [],
    ]


def test_what_one_cause_made_unknown_is_one_line() -> None:
    desk = Desk()
    signals = (Signal.ARRIVALS, Signal.IN_FLIGHT, Signal.WAITING)
    down = {signal: Unknown(Cause.SOURCE_DOWN, f"{signal}: refused") for signal in signals}
    with capture_logs() as said:
        desk.recorder.readings(TARGET, down, now=1000)
        desk.recorder.readings(TARGET, down, now=1010)
        desk.recorder.readings(TARGET, dict.fromkeys(signals, Known(1, 1020)), now=1020)
    assert [(one["event"], one["signal"]) for one in said] == [
        ("signal unknown", "arrivals, in_flight, waiting"),
        ("signal known again", "arrivals, in_flight, waiting"),
    ]
    assert said[0]["detail"] == "arrivals: refused (and 2 more like it)"


def test_a_signal_that_nobody_asks_for_is_no_news() -> None:
    assert Desk().read(Unknown(Cause.NOT_ASKED)) == []


def test_a_refusal_is_logged_once_with_what_to_do_about_it() -> None:
    desk = Desk()
    refused = Refused("Forbidden", "get horizontalpodautoscalers in llm")
    with capture_logs() as said:
        for workload in (refused, refused, examples.WORKLOAD, examples.WORKLOAD):
            desk.recorder.workload(TARGET, workload)
        for outcome in (refused, refused, Written(4)):
            desk.recorder.write(TARGET, outcome)
    assert [(one["event"], one.get("detail")) for one in said] == [
        ("workload refused", refused.detail),
        ("workload possible again", None),
        ("write refused", refused.detail),
        ("write possible again", None),
        ("written", None),
    ]
    assert desk.value("writes_total", target=TARGET.key, outcome="refused") == 2


def test_a_refusal_that_comes_back_is_logged_again_whoever_had_meanwhile_nothing_to_write() -> None:
    desk, entry = Desk(), Entry(TARGET)
    refused = Refused("Forbidden", "patch horizontalpodautoscalers in llm")

    def tick(outcome: Refused | None) -> None:
        entry.refused = outcome
        if outcome is not None:
            desk.recorder.write(TARGET, outcome)
        desk.recorder.row(entry, now=1000.0)

    with capture_logs() as said:
        for outcome in (refused, refused, None, None, refused, refused):
            tick(outcome)
    assert [(one["event"], one["detail"]) for one in said] == [("write refused", refused.detail)] * 2


def test_a_permission_that_is_granted_uncovers_the_next_one_that_is_missing() -> None:
    desk = Desk()
    missing = [Refused("Forbidden", f"{verb} horizontalpodautoscalers in llm") for verb in ("get", "patch")]
    conflicts = [Refused("Conflict", f"resourceVersion {number}") for number in (1, 2)]
    with capture_logs() as said:
        for outcome in (missing[0], missing[0], missing[1], missing[1], *conflicts):
            desk.recorder.write(TARGET, outcome)
    assert [one["detail"] for one in said] == [missing[0].detail, missing[1].detail, conflicts[0].detail]


def test_of_a_target_that_was_gone_and_comes_back_all_is_news() -> None:
    desk, refused = Desk(), Refused("NotFound", "no such deployment")
    with capture_logs() as said:
        desk.recorder.tick("slow", seconds=0.1, outcome="failed")
        for keys in ({TARGET.key}, {"llm/other"}, {TARGET.key}):
            desk.recorder.workload(TARGET, refused)
            desk.recorder.keep_only(keys)
        desk.recorder.tick("slow", seconds=0.1, outcome="failed")
    assert [one["event"] for one in said] == ["tick did not finish", "workload refused", "workload refused"]


def test_the_warm_up_in_use_says_where_it_comes_from() -> None:
    desk = Desk()
    desk.recorder.workload(TARGET, examples.WORKLOAD)
    assert desk.value("warm_up_seconds", target=TARGET.key, source="measured") == 80
    few = type(examples.WORKLOAD)(**{**fields(examples.WORKLOAD), "warm_up": warmup.of_seconds(80.0)})
    desk.recorder.workload(TARGET, few)
    assert desk.value("warm_up_seconds", target=TARGET.key, source="configured") == TARGET.warm_up
    assert desk.value("warm_up_seconds", target=TARGET.key, source="measured") is None


def test_only_a_decision_that_says_something_new_is_logged() -> None:
    desk = Desk()
    with capture_logs() as said:
        desk.recorder.decision(TARGET, examples.decision(), news=True)
        desk.recorder.decision(TARGET, examples.decision(), news=False)
    assert [(one["reason"], one["replicas"], one["note"]) for one in said] == [
        (Reason.RAISED_FOR_FORECAST, 4, "because")
    ]
    assert desk.value("decisions_total", target=TARGET.key, reason="RaisedForForecast") == 2


def test_plans_reach_the_metrics() -> None:
    desk = Desk()
    desk.recorder.plans(TARGET, examples.PLANS)
    assert desk.value("horizon_seconds", target=TARGET.key, horizon="raising") == 345


def fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in type(value).__slots__}  # type: ignore[attr-defined]


def test_stuck_replicas_are_logged_with_the_cluster_s_reason_once_and_when_they_are_gone() -> None:
    desk = Desk()
    with capture_logs() as said:
        for workload in (examples.STUCK, examples.STUCK, examples.WORKLOAD):
            desk.recorder.workload(TARGET, workload)
    assert [one["event"] for one in said] == ["replicas stuck", "no replica is stuck any more"]
    assert said[0]["reasons"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in said[0]["message"]


def test_what_is_known_of_capacity_and_stalls_is_told_when_it_changes() -> None:
    desk, row = Desk(), examples.entry()
    assert row.capacity is not None
    said_twice = "the objective was missed at 36 in flight a replica, 24 windows of 5 min, 95% agree"
    with capture_logs() as said:
        desk.recorder.row(row, now=1000.0)
        row.capacity = dataclasses.replace(row.capacity, note=said_twice)
        desk.recorder.row(row, now=1010.0)
        row.capacity = dataclasses.replace(row.capacity, note=said_twice.replace("24 windows", "25 windows"))
        row.stalled = 240.0
        desk.recorder.row(row, now=1020.0)
        row.stalled = 0.0
        desk.recorder.row(row, now=1030.0)
    assert [one["event"] for one in said] == ["capacity", "engines are stalled", "engines answer again"]
    assert said[0]["problem"] == said_twice
    assert desk.value("stalled_seconds", target=TARGET.key) == 0
    assert desk.value("limit_replicas", target=TARGET.key, limit="GPU budget") == 8
    assert desk.value("capacity_requests", target=TARGET.key, source="configured") == 40


def test_a_row_goes_into_the_journal_and_what_is_lost_is_counted(tmp_path: Path) -> None:
    desk = Desk()
    (tmp_path / "file").write_text("")
    for folder, lost in ((tmp_path / "journal", 0), (tmp_path / "file" / "journal", 2)):
        book = Journal(folder, Bounds(seconds=DAY, size=1_000_000))
        recorder = Telemetry(desk.metrics, desk.pulse, desk.clock, Diary(book))
        recorder.row(examples.entry(), now=1000.0)
        book.close()
        assert book.health.lost == lost
        recorder.row(examples.entry(), now=1001.0)
        assert desk.value("journal_lost_records") == lost
    assert [one["kind"] for one in read(tmp_path / "journal")] == ["decision", "seen"]


def test_what_was_written_down_of_a_target_that_goes_is_forgotten(tmp_path: Path) -> None:
    """One that comes back is written down at once, as all is news of it."""
    desk = Desk()
    book = Journal(tmp_path, Bounds(seconds=DAY, size=1_000_000))
    recorder = Telemetry(desk.metrics, desk.pulse, desk.clock, Diary(book))
    recorder.row(examples.entry(), now=1000.0)
    recorder.keep_only({TARGET.key})
    recorder.row(examples.entry(), now=1001.0)
    recorder.keep_only(set())
    recorder.row(examples.entry(), now=1002.0)
    book.close()
    assert [one["at"] for one in read(tmp_path)] == [1000.0, 1000.0, 1002.0, 1002.0]
