"""Child processes that never outlive the process which started them."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

CHECKOUT = Path(__file__).parents[2]

# The shell looks who its parent is after the death signal is set: a parent that died before that is noticed here.
_BOUND_TO_PARENT = ["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"']


class DiedError(RuntimeError):
    """A child ended although it should have kept running; carries the end of its log."""


class Child:
    """One program in a process group of its own, with a log file; stopped, paused and started again at will.

    The kernel kills the child when the thread that started it ends (setpriv sets PR_SET_PDEATHSIG), so start children
    from the main thread. As a context manager it starts on entry and is stopped on exit.

    Args:
        name: what errors call it.
        command: program and arguments.
        log: file to which output and errors are appended.
        environment: added to this process's own environment.
        grace_s: seconds between SIGTERM and SIGKILL in `stop`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        grace_s: float = 5.0,
    ) -> None:
        self.name = name
        self.log = log
        self._command = [*_BOUND_TO_PARENT, str(os.getpid()), *command]
        self._environment = {**os.environ, **(environment or {})}
        self._grace_s = grace_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether the process exists; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended by itself, negative for a signal; None while it runs or if it never ran."""
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int:
        """Process id, which is also the id of the process group.

        Raises:
            DiedError: it is not running.
        """
        self.check()
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it unless it runs."""
        if self.running:
            return
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  (commands are the rig's own)
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise DiedError with the end of the log unless it runs."""
        if not self.running:
            code = self._process.returncode if self._process else "never started"
            raise DiedError(f"{self.name} is not running ({code}); end of {self.log}:\n{tail(self.log)}")

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after the grace; returns when it is gone. Harmless if it never ran."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)  # a paused process takes no SIGTERM
            self._process.terminate()
            try:
                self._process.wait(self._grace_s)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it at once, as a crash would."""
        os.killpg(self.pid, signal.SIGKILL)
        self.stop()

    def pause(self) -> None:
        """SIGSTOP, returning once it stands still: connections are accepted by the kernel but never answered."""
        os.killpg(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """End a pause."""
        os.killpg(self.pid, signal.SIGCONT)

    def hang_up(self) -> None:
        """SIGHUP, on which many servers read their configuration again."""
        os.kill(self.pid, signal.SIGHUP)


def tail(log: Path, lines: int = 15) -> str:
    """Return the last `lines` lines of a log, empty if there is none."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


def module(name: str) -> list[str]:
    """Return the command that runs a module of this checkout, whatever the working folder."""
    return ["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-m", name]
