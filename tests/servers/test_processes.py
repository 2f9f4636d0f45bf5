import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import addresses, processes, waiting


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_child_dies_with_a_parent_that_crashes(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, threading\n"
        "from tests.servers import processes\n"
        "child = processes.Child('sleeper', ['sleep', '600'], log=pathlib.Path(sys.argv[1]))\n"
        "child.start()\n"
        "print(child.pid, flush=True)\n"
        "threading.Event().wait()\n"
    )
    with subprocess.Popen(  # noqa: S603  (the program above)
        [sys.executable, "-c", program, tmp_path / "log"], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert exists(child)
        parent.kill()
    waiting.until(lambda: not exists(child), within_s=10, what="the child is gone")


def test_a_child_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    stubborn = ["sh", "-c", "trap '' TERM; echo deaf; while true; do sleep 0.1; done"]
    child = processes.Child("stubborn", stubborn, log=tmp_path / "log", grace_s=0.2)
    child.start()
    waiting.until(lambda: processes.tail(tmp_path / "log") == "deaf", within_s=5, what="the trap is set")
    pid = child.pid
    child.stop()
    assert not exists(pid)


def test_a_child_that_ended_by_itself_is_reported_with_its_last_words(tmp_path: Path) -> None:
    child = processes.Child("speaker", ["sh", "-c", "echo no such file; exit 3"], log=tmp_path / "log")
    child.start()
    waiting.until(lambda: not child.running, within_s=5, what="it ended")
    with pytest.raises(processes.DiedError, match=r"speaker is not running \(3\)(?s:.*)no such file"):
        child.check()


def test_a_paused_child_can_be_stopped(tmp_path: Path) -> None:
    child = processes.Child("sleeper", ["sleep", "600"], log=tmp_path / "log")
    child.start()
    for _ in range(2):  # as it stands already
        child.pause()
        assert Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    child.stop()
    assert not child.running


def test_nobody_gets_a_leased_network_before_it_is_given_back() -> None:
    with addresses.network() as mine, addresses.network() as other:
        assert mine.number != other.number
        with pytest.raises(OSError, match="in use"):
            addresses.Lease("network", mine.number)
    addresses.Lease("network", mine.number).close()


def test_waiting_names_what_did_not_come() -> None:
    with pytest.raises(TimeoutError, match="the parcel: not within 0 s, last seen None"):
        waiting.until(lambda: None, within_s=0, what="the parcel")
