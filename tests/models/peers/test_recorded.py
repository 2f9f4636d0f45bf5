"""Recordings of two real HPAs (Kubernetes 1.36), as `tests/cluster/test_hpa_recorded.py` writes them, replayed."""

import dataclasses
from pathlib import Path

import pytest

from tests.models.peers import recorded
from tests.models.peers.recorded import LATE, SETTINGS, Change, Recording

FOLDER = Path(__file__).with_name("recordings")


@pytest.fixture(params=sorted(SETTINGS))
def recording(request: pytest.FixtureRequest) -> Recording:
    return recorded.load(FOLDER / f"{request.param}.json")


def test_the_model_writes_the_replicas_that_the_real_hpa_wrote(recording: Recording) -> None:
    assert len(recording.written) >= 8
    assert [one.replicas for one in recording.replayed] == [one.replicas for one in recording.written]
    assert recording.by_step(recording.replayed) == recording.by_step(recording.written)


def test_and_within_three_syncs_of_when_it_did(recording: Recording) -> None:
    assert max(map(abs, recording.lateness)) < LATE


def test_a_failing_metric_a_raised_floor_and_a_lowered_one_were_recorded() -> None:
    plain = recorded.load(FOLDER / "plain.json")
    steps = dict(zip(plain.shown, plain.by_step(plain.written), strict=True))
    assert [written for shown, written in steps.items() if shown.value is None] == [()]
    assert [written for shown, written in steps.items() if shown.minimum == 6] == [(6,), ()]


def test_a_rule_that_differs_is_told_apart(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    looser = dataclasses.replace(SETTINGS[recording.name], target=recorded.TARGET * 1.3)
    monkeypatch.setitem(SETTINGS, recording.name, looser)
    assert recording.by_step(recording.replayed) != recording.by_step(recording.written)


def test_what_is_saved_is_loaded_again(recording: Recording, tmp_path: Path) -> None:
    later = dataclasses.replace(
        recording,
        shown=tuple(dataclasses.replace(one, at=one.at + 1e9) for one in recording.shown),
        written=tuple(Change(one.at + 1e9, one.replicas) for one in recording.written),
        end=recording.end + 1e9,
    )
    later.save(tmp_path)
    assert recorded.load(tmp_path / f"{recording.name}.json") == recording
