"""The counterfactual of every shadow target now and then, in a process of its own: the loops never wait for it."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

Figures = Mapping[str, Any]

SINCE = "24h"
PATIENCE = 1800.0  # seconds a simulation may take at its low priority
FIRST = 600.0  # seconds after the start: there is something in the journal, and start-up is over

_log = structlog.stdlib.get_logger("floorcast")


class Aside:
    """Runs `floorcast counterfactual` for one target after the other, every so often, until it is stopped."""

    def __init__(
        self,
        keys: Callable[[], Sequence[str]],
        tell: Callable[[str, Figures | None], None],
        *,
        every: float,
        config: Path | None,
        command: Sequence[str] = (sys.executable, "-m", "predictor.cli", "counterfactual"),
    ) -> None:
        """Readies it.

        Args:
            keys: the targets that are in shadow mode now.
            tell: takes a target's figures; None when there are none this time.
            every: seconds between the beginnings of two rounds.
            config: the file the service was started with; None for the usual places.
            command: what is run.
        """
        self._keys, self._tell, self._every = keys, tell, every
        self._command = [*command, "--json", "--since", SINCE, *(("--config", str(config)) if config else ())]
        self._stop = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._told: dict[str, str] = {}
        self._thread = threading.Thread(target=self._work, name="counterfactual", daemon=True)

    def start(self) -> None:
        """Begins to wait for the first round."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it, a simulation under way included."""
        self._stop.set()
        if (child := self._child) is not None:
            child.kill()

    def round(self) -> None:
        """One simulation of each target."""
        keys = self._keys()
        self._told = {key: problem for key, problem in self._told.items() if key in keys}
        for key in keys:
            if self._stop.is_set():
                return
            self._tell(key, self._figures(key))

    def _work(self) -> None:
        wait = min(FIRST, self._every)
        while not self._stop.wait(wait):
            self.round()
            wait = self._every

    def _figures(self, key: str) -> Figures | None:
        with subprocess.Popen(  # noqa: S603  (our own program, a target's key from the configuration)
            [*self._command, key], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            self._child = child
            try:
                said, problem = child.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                said, problem = "", f"took longer than {PATIENCE:.0f} s"
            self._child = None
        try:
            found = json.loads(said)
        except ValueError:
            found = None
        if isinstance(found, dict):
            self._told.pop(key, None)
            return found
        self._complain(key, problem.strip().splitlines()[-1] if problem.strip() else f"exit code {child.returncode}")
        return None

    def _complain(self, key: str, problem: str) -> None:
        """Once for each change: a journal that is young says so at every round."""
        if not self._stop.is_set() and self._told.get(key) != problem:
            self._told[key] = problem
            _log.info("no counterfactual this time", target=key, problem=problem)
