"""What was computed once, on disk outside the checkout: by a hash of everything it depends on."""

import dataclasses
import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def default_folder() -> Path:
    """Where results are kept unless told otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "floorcast" / "scoreboard"


def version(*parts: str) -> str:
    """Hash of the source below these paths of the checkout (folders or files)."""
    digest = hashlib.sha256()
    for part in parts:
        path = ROOT / part
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        for file in files:
            digest.update(str(file.relative_to(ROOT)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def key(*parts: object) -> str:
    """Hash of values that print the same whenever they are the same."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def of_file(path: Path) -> str:
    """Hash of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True, slots=True)
class Store:
    """A folder of results. A file appears under its name only when it is whole, so a killed run leaves no half ones."""

    folder: Path

    def json(self, name: str) -> Any | None:  # noqa: ANN401  (whatever was put)
        """What was put under a name; None when nothing was, or it cannot be read."""
        try:
            return json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put_json(self, name: str, value: Any) -> None:  # noqa: ANN401  (whatever JSON takes)
        """Keeps a value."""
        self._put(f"{name}.json", json.dumps(value).encode())

    def kept(self, name: str) -> Any | None:  # noqa: ANN401  (whatever was put)
        """An object this program put there itself; None when there is none."""
        try:
            return pickle.loads((self.folder / f"{name}.pickle").read_bytes())  # noqa: S301  (our own file)
        except (OSError, ValueError, EOFError, AttributeError, pickle.UnpicklingError):
            return None

    def put_object(self, name: str, value: object) -> None:
        """Keeps an object."""
        self._put(f"{name}.pickle", pickle.dumps(value))

    def _put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.part")
        partial.write_bytes(content)
        partial.replace(path)
