"""What was learned outlives the process: its file whole, damaged, old, shared, and a scenario with a restart in it."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from models.capacity import observing
from models.capacity.observing import HALF_LIFE, Votes
from models.capacity.profile import Profile
from models.capacity.warmup import Start
from predictor import kept
from predictor.board import Board
from predictor.cluster.warmups import KEPT, KEPT_LEFT, Remembered
from predictor.keeping import FORGOTTEN, NAME
from predictor.learning import Terms
from predictor.targets import Learning
from tests.fakes.stage import TARGET
from tests.predictor.processes import KEY, LEARNS, NOW, STARTS, VOTES, Process, learned, sized

# ----------------------------------------------------------------------------------------------------- there and back


def test_another_process_knows_what_the_one_before_did(tmp_path: Path) -> None:
    learned(tmp_path / "new")
    after = Process(tmp_path / "new")
    assert after.votes == {"H100": VOTES}
    assert after.starts.remembered(KEY) == STARTS
    assert [path.name for path in (tmp_path / "new").iterdir()] == [NAME]


times = st.floats(0, 4e9)
instants = st.none() | times
starts = st.builds(
    Start, created=times, scheduled=instants, started=instants, ready=instants, left=instants, gpu=st.text(max_size=9)
)
remembered = st.builds(
    Remembered,
    at=times,
    done=st.lists(starts, max_size=5).map(tuple),
    left=st.lists(starts, max_size=3).map(tuple),
    warming=st.dictionaries(st.text(max_size=9), starts, max_size=3),
    settled=st.frozensets(st.text(max_size=9), max_size=5),
)
cast = st.builds(
    Votes,
    at=times,
    windows=st.dictionaries(
        st.integers(-20, 80).map(lambda level: observing.RATIO**level),
        st.tuples(st.floats(0.01, 1e4), st.floats(0, 1e4)),
        max_size=8,
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(remembered, cast)
def test_whatever_was_learned_comes_back_as_it_was(tmp_path: Path, known: Remembered, votes: Votes) -> None:
    (tmp_path / NAME).unlink(missing_ok=True)  # of the example before
    Process(tmp_path, at=votes.at).learns(votes, known).saves()
    after = Process(tmp_path, at=votes.at)
    assert after.starts.remembered(KEY) == known
    assert after.votes == {"H100": votes}


def test_a_target_that_comes_later_gets_its_part_then_and_is_written_on_until_it_does(tmp_path: Path) -> None:
    """Targets that are found by label are not known yet when the service starts."""
    learned(tmp_path)
    other = dataclasses.replace(LEARNS, name="other")
    Process(tmp_path, other, at=NOW + 60).saves()
    third = Process(tmp_path, other, at=NOW + 120)
    third.board = Board([other, LEARNS])
    third.keeping.give(third.board)
    assert third.votes == {"H100": observing.faded(VOTES, now=NOW + 120)}
    assert third.starts.remembered(KEY) == STARTS


def test_as_much_as_is_kept_of_two_thousand_targets_fits_into_the_file(tmp_path: Path) -> None:
    full = dataclasses.replace(STARTS, done=STARTS.done[:1] * KEPT, left=STARTS.left * KEPT_LEFT)
    learned(tmp_path).learns(starts=full).saves()
    assert (tmp_path / NAME).stat().st_size < kept.LARGEST / 2000


# ------------------------------------------------------------------------------------------- what is not taken over


@pytest.mark.parametrize("change", [{"model": "another"}, {"engine": "sglang"}, {"kind": "StatefulSet"}])
def test_what_serves_something_else_under_the_same_name_begins_anew(tmp_path: Path, change: dict[str, str]) -> None:
    learned(tmp_path)
    after = Process(tmp_path, dataclasses.replace(LEARNS, **change))  # type: ignore[arg-type]
    assert after.votes == {}
    assert after.starts.remembered(KEY) is None


@pytest.mark.parametrize(
    "change",
    [
        {"learning": Learning(ttft=3.0)},
        {"learning": Learning()},
        {"objectives": dataclasses.replace(TARGET.objectives, profile=Profile(concurrency=50))},
        {"objectives": dataclasses.replace(TARGET.objectives, profile=Profile(concurrency=40, kv_tokens=9e4))},
        {"objectives": dataclasses.replace(TARGET.objectives, profile=Profile(concurrency=40, tokens_in=9e3))},
        {"objectives": dataclasses.replace(TARGET.objectives, profile=Profile(concurrency=40, tokens_out=9e3))},
        {"objectives": dataclasses.replace(TARGET.objectives, profile=sized())},
    ],
)
def test_other_figures_of_a_replica_or_another_objective_take_over_the_warm_ups_only(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    learned(tmp_path)
    after = Process(tmp_path, dataclasses.replace(LEARNS, **change))
    assert after.votes == {}
    assert after.starts.remembered(KEY) == STARTS


def test_what_was_learned_on_another_gpu_is_not_planned_with(tmp_path: Path) -> None:
    learned(tmp_path)
    after = Process(tmp_path)
    assert set(after.board.entries[KEY].observers) == {"H100"}  # an A100 has an observer of its own


def test_votes_have_faded_by_the_time_that_nobody_looked(tmp_path: Path) -> None:
    learned(tmp_path)
    after = Process(tmp_path, at=NOW + HALF_LIFE)
    assert after.votes == {"H100": observing.faded(VOTES, now=NOW + HALF_LIFE)}


def test_what_is_older_than_votes_can_be_is_neither_taken_over_nor_written_on(tmp_path: Path) -> None:
    learned(tmp_path)
    other = dataclasses.replace(LEARNS, name="other")
    with capture_logs() as said:
        late = Process(tmp_path, other, at=NOW + FORGOTTEN + 1)
    assert [line["too_old"] for line in said] == [1]
    late.saves()
    assert set(json.loads((tmp_path / NAME).read_text())["targets"]) == {other.key}


def test_a_clock_that_was_set_back_loses_nothing(tmp_path: Path) -> None:
    learned(tmp_path)
    after = Process(tmp_path, at=NOW - 86400)
    assert after.votes == {"H100": Votes(NOW - 86400, VOTES.windows)}
    assert after.starts.remembered(KEY) == STARTS
    assert Process(tmp_path, at=NOW).saves().votes["H100"] is not None


# ------------------------------------------------------------------------------------------ files that cannot be used


def edited(**changes: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **changes}).encode()


def within(change: Callable[[Any], object]) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        given = json.loads(data)
        change(given["targets"][KEY])
        return json.dumps(given).encode()

    return damage


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[: len(data) // 2], "Invalid JSON"),
        (lambda _: b"", "Invalid JSON"),
        (lambda _: b"\xff\x00", "Invalid JSON"),
        (lambda _: b"[" * 100_000, "Invalid JSON"),
        (lambda _: b"[]", "Input should be an object"),
        (lambda _: b"{}", "version None"),
        (edited(version=2), "version 2, and this Floorcast knows version 1"),
        (edited(version="1"), "version '1'"),
        (edited(targets=[]), "targets: "),
        (edited(more=1, targets=[]), "targets: "),
        (edited(more=1, writer=None), "writer: Input should be a valid string"),
        (within(lambda one: one.update(more=1, votes=[])), f"targets.{KEY}.votes: "),
        (within(lambda one: one["votes"]["H100"].update(more=1)), "votes.H100.more: Extra inputs"),
        (within(lambda one: one["starts"].update(more=1)), "starts.more: Extra inputs"),
        (within(lambda one: one["terms"].update(more=1, ttft="two")), "terms.ttft: Input should be a valid number"),
        (within(lambda one: one.update(at=float("nan"))), f"targets.{KEY}.at: "),
        (within(lambda one: one.update(at=10**400)), f"targets.{KEY}.at: "),
        (within(lambda one: one["votes"]["H100"]["windows"].append([0.0, 1.0, 1.0])), "windows.2.0: "),
        (within(lambda one: one["votes"]["H100"]["windows"].append([1.0, -1.0, 1.0])), "windows.2.1: "),
        (within(lambda one: one["starts"].pop("at")), "starts.at: Field required"),
        (within(lambda one: one.pop("terms")), "terms: Field required"),
        (within(lambda one: one.update(sizes={"at": NOW})), "sizes.prompt: Field required"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_once_and_put_aside(
    tmp_path: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    learned(tmp_path)
    path = tmp_path / NAME
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with capture_logs() as said:
        after = Process(tmp_path)
    assert [line["log_level"] for line in said] == ["warning"]
    assert words in said[0]["problem"]
    assert after.votes == {}
    after.saves()
    assert kept.read(path) is not None
    assert path.with_suffix(".unusable").read_bytes() == damaged


def test_keys_of_a_newer_floorcast_are_left_out_and_told_of_once_and_all_else_is_known(tmp_path: Path) -> None:
    learned(tmp_path)
    path = tmp_path / NAME
    newer = within(lambda one: one.update(seasons={"deep": [1, None]}, more=1))(edited(more=1)(path.read_bytes()))
    path.write_bytes(newer)
    with capture_logs() as said:
        after = Process(tmp_path)
    assert [line["keys"] for line in said if line["log_level"] == "warning"] == [("more", "seasons")]
    assert [line["targets"] for line in said if line["log_level"] == "info"] == [1]
    assert after.votes == {"H100": VOTES}
    assert after.starts.remembered(KEY) == STARTS


def test_keys_of_a_newer_floorcast_are_not_written_on_be_it_of_targets_that_have_not_come(tmp_path: Path) -> None:
    learned(tmp_path)
    path = tmp_path / NAME
    path.write_bytes(within(lambda one: one.update(seasons=[1]))(path.read_bytes()))
    other = dataclasses.replace(LEARNS, name="other")
    Process(tmp_path, other).saves()
    assert "seasons" not in path.read_text()
    with capture_logs() as said:
        after = Process(tmp_path)
    assert [line["log_level"] for line in said] == ["info"]
    assert after.votes == {"H100": VOTES}


def test_the_file_has_all_terms_under_which_votes_are_cast() -> None:
    """One that it had not would be taken for a key of the future: the votes would be lost at each restart."""
    assert set(kept.KeptTerms.model_fields) == {field.name for field in dataclasses.fields(Terms)}


def test_votes_under_terms_of_a_newer_floorcast_are_left_out_and_the_warm_ups_are_known(tmp_path: Path) -> None:
    learned(tmp_path)
    path = tmp_path / NAME
    path.write_bytes(within(lambda one: one["terms"].update(itl=0.05))(path.read_bytes()))
    with capture_logs() as said:
        after = Process(tmp_path)
    assert [line["keys"] for line in said if "keys" in line] == [("itl",)]
    assert after.votes == {}
    assert after.starts.remembered(KEY) == STARTS


def test_what_could_not_be_read_is_put_aside_too_and_not_written_over(tmp_path: Path) -> None:
    (tmp_path / NAME / "within").mkdir(parents=True)
    with capture_logs() as said:
        process = Process(tmp_path)
    assert [line["problem"] for line in said] == ["Is a directory"]
    process.learns().saves()
    assert Process(tmp_path).votes == {"H100": VOTES}
    assert [path.name for path in (tmp_path / "learned.unusable").iterdir()] == ["within"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(st.data())
def test_no_damage_is_a_crash(tmp_path: Path, data: st.DataObject) -> None:
    (tmp_path / NAME).unlink(missing_ok=True)  # of the example before
    learned(tmp_path)
    whole = (tmp_path / NAME).read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    (tmp_path / NAME).write_bytes(whole[:at] + data.draw(st.binary(max_size=5)) + whole[at + 1 :])
    Process(tmp_path).saves()


def test_a_file_that_is_too_large_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(tmp_path)
    monkeypatch.setattr(kept, "LARGEST", 100)
    with capture_logs() as said:
        after = Process(tmp_path)
    assert said[0]["problem"] == "is larger than 100 bytes"
    with capture_logs() as said:
        after.saves()
    assert "would be larger than 100 bytes" in said[0]["problem"]


def test_a_disk_that_fails_is_told_of_once_and_once_more_when_it_is_well_again(tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    folder.write_text("a file where the folder is to be")
    with capture_logs() as said:
        process = learned(folder).saves()
    assert [(line["log_level"], "problem" in line) for line in said] == [("warning", True)] * 2
    assert "Not a directory" in said[0]["problem"]
    assert "Not a directory" in process.keeping.problem
    folder.unlink()
    with capture_logs() as said:
        process.saves().saves()
    assert [line["event"] for line in said] == ["what is learned can be kept again"]
    assert Process(folder).votes == {"H100": VOTES}


# --------------------------------------------------------------------------------------------------------- who writes


def test_in_a_shared_folder_only_the_leader_writes(tmp_path: Path) -> None:
    leader = learned(tmp_path)
    standby = Process(tmp_path, host="pod-b", leads=False)
    assert standby.votes == {"H100": VOTES}
    before = (tmp_path / NAME).read_bytes()
    standby.saves()
    assert (tmp_path / NAME).read_bytes() == before
    leader.leads, standby.leads = False, True
    standby.saves()
    leader.board.entries[KEY].observers.clear()
    leader.saves()
    assert Process(tmp_path).votes == {"H100": VOTES}


def test_a_standby_with_a_folder_of_its_own_finds_there_what_it_knew(tmp_path: Path) -> None:
    for at in (NOW, NOW + 300, NOW + 600):  # restarted twice
        standby = Process(tmp_path, at=at, host="pod-b", leads=False).learns(dataclasses.replace(VOTES, at=at))
        standby.saves().saves()
    assert Process(tmp_path, at=NOW + 600, host="pod-b", leads=False).votes == {
        "H100": dataclasses.replace(VOTES, at=NOW + 600)
    }


def test_what_a_killed_process_of_another_host_left_behind_is_removed_in_time(tmp_path: Path) -> None:
    old, young = tmp_path / f"{NAME}.pod-x.part", tmp_path / f"{NAME}.pod-y.part"
    for path in (old, young):
        path.write_text("torn")
    os.utime(old, (NOW, NOW))
    learned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([NAME, young.name])


def test_the_last_is_written_when_told_to_stop_though_the_lease_is_gone_by_then(tmp_path: Path) -> None:
    process = Process(tmp_path).learns()
    process.keeping.start()
    process.keeping.stop()
    process.leads = False
    process.keeping.join(within=5.0)
    assert Process(tmp_path).votes == {"H100": VOTES}
