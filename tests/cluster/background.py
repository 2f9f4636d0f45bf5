"""The whole rig as one background process that owns all others, for a person at a terminal.

Its state folder holds `lock`, locked for as long as it lives, with its process id, and `rig.json` once all is up.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster import keda as keda_rig
from tests.cluster import load, manifests, plane, serving
from tests.servers import cache, processes, waiting

UP_WITHIN_S = 300
DOWN_WITHIN_S = 30
_ours: dict[Path, subprocess.Popen[bytes]] = {}  # rigs this very process started, to be reaped by `stop`


class RigError(RuntimeError):
    """The rig cannot be brought up or down; says why."""


@dataclass(frozen=True)
class Running:
    """What is up, and where.

    Attributes:
        processes: process id by name.
    """

    kubeconfig: str
    api_server: str
    prometheus: str
    deployment: str
    processes: dict[str, int]


def default_state() -> Path:
    """Return the state folder used unless another is named."""
    return cache.root() / "state"


def start(state: Path, season: load.Season, *, keda: bool = False) -> Running:
    """Start the rig in the background, with KEDA or without, and return once all of it is up.

    Raises:
        RigError: it is up already, the folder holds other things, or it did not come up.
    """
    if _owner(state) is not None:
        raise RigError(f"a rig is up already in {state}")
    _clear(state)
    state.mkdir(parents=True, mode=0o700)
    season.write(state / "load.yaml")
    log = state / "rig.log"
    with log.open("wb") as output:
        rig = _ours[state] = subprocess.Popen(  # noqa: S603  (this very module)
            [*processes.module("tests.cluster"), "serve", f"--state={state}", *(["--keda"] if keda else [])],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    waiting.until(
        lambda: running(state) is not None or rig.poll() is not None, within_s=UP_WITHIN_S, what=f"up (see {log})"
    )
    found = running(state)
    if found is None:
        raise RigError(f"the rig did not come up; end of {log}:\n{processes.tail(log)}")
    return found


def running(state: Path) -> Running | None:
    """Return what is up in that folder, None if nothing is."""
    described = state / "rig.json"
    if _owner(state) is None or not described.exists():
        return None
    return Running(**json.loads(described.read_text()))


def stop(state: Path) -> bool:
    """End the rig and remove its folder; returns whether there was one.

    Raises:
        RigError: the folder is not a rig's.
    """
    owner = _owner(state)
    if owner is not None:
        os.kill(owner, signal.SIGTERM)
        try:
            waiting.until(lambda: _owner(state) is None, within_s=DOWN_WITHIN_S, what="down")
        except TimeoutError:
            os.kill(owner, signal.SIGKILL)  # its children follow it
            waiting.until(lambda: _owner(state) is None, within_s=DOWN_WITHIN_S, what="down")
    if state in _ours:
        _ours.pop(state).wait()
    existed = state.exists()
    _clear(state)
    return existed


def serve(state: Path, *, keda: bool = False) -> None:
    """Be the rig: run until SIGTERM or until a part fails."""
    signal.signal(signal.SIGTERM, _leave)
    season = load.Season.read(state / "load.yaml")
    workload = manifests.Workload("example", autoscaler="keda" if keda else "hpa")
    with ExitStack() as exits:
        exits.enter_context(_lock(state))
        control = exits.enter_context(plane.ControlPlane(state))
        scalers = exits.enter_context(keda_rig.Keda(control)).children if keda else {}
        served = exits.enter_context(serving.Serving(control, workload, season))
        children = {**control.children, **scalers, "engines": served.engines}
        pids = {name: child.pid for name, child in children.items()} | {"prometheus": served.prometheus.pid}
        described = Running(
            str(control.kubeconfig), control.url, served.prometheus.url, served.workload.deployment, pids
        )
        unfinished = state / "rig.new"
        unfinished.write_text(json.dumps(asdict(described), indent=1))
        unfinished.rename(state / "rig.json")
        _watch(control, served)


def _watch(control: plane.ControlPlane, served: serving.Serving) -> None:
    beat = threading.Event()
    while not beat.wait(2.0):
        control.check()
        served.check()


def _leave(*_: object) -> None:
    raise SystemExit(0)


@contextmanager
def _lock(state: Path) -> Iterator[None]:
    with (state / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _owner(state: Path) -> int | None:
    """Return the process id of the rig in that folder, None if none lives."""
    path = state / "lock"
    if not path.exists():
        return None
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(lock.read())
    return None


def _clear(state: Path) -> None:
    if not state.exists():
        return
    if any(state.iterdir()) and not (state / "lock").exists():
        raise RigError(f"{state} exists and is not a rig's: name another folder")
    shutil.rmtree(state)
