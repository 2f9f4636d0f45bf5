import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import background, load
from tests.servers import waiting

pytestmark = pytest.mark.usefixtures("programs")


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    one, other = tmp_path / "one", tmp_path / "other"
    yield one, other
    background.stop(one)
    background.stop(other)


def alive(found: background.Running) -> list[str]:
    return [name for name, pid in found.processes.items() if Path(f"/proc/{pid}").exists()]


def test_two_rigs_live_side_by_side_and_leave_nothing_behind(folders: tuple[Path, Path]) -> None:
    one, other = (background.start(folder, load.steady(1)) for folder in folders)
    assert not set(one.processes.values()) & set(other.processes.values())
    assert one.api_server != other.api_server
    assert len(alive(one)) == len(alive(other)) == 8
    with pytest.raises(background.RigError, match="up already"):
        background.start(folders[0], load.steady(1))

    assert background.stop(folders[0])
    assert not alive(one)
    assert not folders[0].exists()
    assert background.running(folders[1]) == other

    # A crash of the one process that owns the others takes them along.
    owner = int((folders[1] / "lock").read_text())
    os.kill(owner, signal.SIGKILL)
    waiting.until(lambda: not alive(other), within_s=10, what="all processes gone")
    assert background.running(folders[1]) is None


def test_a_folder_with_other_things_is_neither_used_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(background.RigError, match="not a rig's"):
        background.start(tmp_path, load.steady(1))
    with pytest.raises(background.RigError, match="not a rig's"):
        background.stop(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_nothing_runs_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert background.running(tmp_path / "no") is None
    assert not background.stop(tmp_path / "no")
