"""What was learned by the sizes of requests, and these sizes themselves, outlive the process."""

import dataclasses
import json
from pathlib import Path

import pytest

from models.capacity import mix
from models.capacity.mix import Mix
from models.capacity.profile import Profile
from predictor.keeping import NAME
from predictor.targets import Target
from tests.fakes.stage import TARGET
from tests.predictor.processes import KEY, LEARNS, NOW, VOTES, Process, learned, sized


def planned_for(profile: Profile) -> Target:
    return dataclasses.replace(LEARNS, objectives=dataclasses.replace(TARGET.objectives, profile=profile))


SIZED = planned_for(sized())
MIX = Mix(NOW, 60.0, prompt=4.5e6, output=9e5, taken=1500.0, served=1400.0)


@pytest.mark.parametrize(
    "change", [{"throughput": 1.5}, {"concurrency": 25}, {"prompt": 1900}, {"output": 210}, {"prompt": 3000}]
)
def test_votes_of_other_load_tests_are_not_taken_over_and_sizes_of_requests_are(
    tmp_path: Path, change: dict[str, float]
) -> None:
    """The figures of the first test are the same: a change of a later one alone counts."""
    before = Process(tmp_path, SIZED).learns()
    before.board.entries[KEY].mix = MIX
    before.saves()
    assert Process(tmp_path, SIZED).votes == {"H100": VOTES}
    after = Process(tmp_path, planned_for(sized(**change)))
    assert after.votes == {}
    assert after.board.entries[KEY].mix is not None


def test_load_tests_that_another_solver_fits_differently_in_the_last_digit_are_the_same(tmp_path: Path) -> None:
    Process(tmp_path, SIZED).learns().saves()
    fit = SIZED.objectives.profile.by_size
    assert fit is not None
    shifted = dataclasses.replace(fit, throughput=(fit.throughput[0] * (1 + 1e-14), fit.throughput[1]))
    after = Process(tmp_path, planned_for(dataclasses.replace(SIZED.objectives.profile, by_size=shifted)))
    assert after.votes == {"H100": VOTES}


def looked(folder: Path, seen: Mix | None = MIX, target: Target = SIZED) -> None:
    before = Process(folder, target)
    before.board.entries[KEY].mix = seen
    before.saves()


def test_sizes_of_requests_outlive_the_process_faded_by_the_time_that_nobody_looked(tmp_path: Path) -> None:
    looked(tmp_path)
    found = Process(tmp_path, SIZED, at=NOW + 300).board.entries[KEY]
    assert found.mix == mix.recalled(MIX, now=NOW + 300)
    assert found.sizes is not None
    assert found.sizes.prompt == pytest.approx(3000, rel=0.05)
    assert MIX.taken / 2 < found.mix.taken < MIX.taken


def test_sizes_of_long_ago_are_no_better_than_those_tested(tmp_path: Path) -> None:
    looked(tmp_path)
    found = Process(tmp_path, SIZED, at=NOW + 5 * 86400).board.entries[KEY]
    assert not mix.known(found.mix)
    assert found.sizes is not None
    assert found.sizes.prompt == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("after", [LEARNS, dataclasses.replace(SIZED, model="another")])
def test_sizes_are_not_taken_over_where_they_do_not_matter_or_are_of_another_model(
    tmp_path: Path, after: Target
) -> None:
    looked(tmp_path)
    assert Process(tmp_path, after).board.entries[KEY].mix is None


@pytest.mark.parametrize("seen", [None, dataclasses.replace(MIX, prompt=-1.0), dataclasses.replace(MIX, taken=1e300)])
def test_sizes_that_no_file_can_hold_are_left_out_and_all_else_is_written(tmp_path: Path, seen: Mix | None) -> None:
    before = Process(tmp_path, SIZED).learns()
    before.board.entries[KEY].mix = seen
    assert before.saves().keeping.problem == ""
    after = Process(tmp_path, SIZED)
    assert (after.votes, after.board.entries[KEY].mix) == ({"H100": VOTES}, None)


def test_a_file_from_before_sizes_were_kept_is_read(tmp_path: Path) -> None:
    learned(tmp_path)
    assert "sizes" not in json.loads((tmp_path / NAME).read_text())["targets"][KEY]
    assert Process(tmp_path).votes == {"H100": VOTES}
