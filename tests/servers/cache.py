"""What is built or downloaded once and kept outside the checkout."""

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def root() -> Path:
    """Return the folder of everything kept: `$XDG_CACHE_HOME/floorcast/rig`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "floorcast" / "rig"


def entry(name: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder `name` of the cache; `fill` is called with an empty folder if it does not exist yet.

    The folder appears complete or not at all, and only one process fills it while others wait for that one.
    """
    target = root() / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(target.name + ".lock")):
        if not target.exists():
            _fill(target, fill)
    return target


def _fill(target: Path, fill: Callable[[Path], None]) -> None:
    started = time.monotonic()
    say(f"{target.name}: making it (once, into {target.parent})")
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        fill(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    say(f"{target.name}: made in {time.monotonic() - started:.0f} s")


def say(line: str) -> None:
    """Tell the person who waits what is going on."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
