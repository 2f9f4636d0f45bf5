"""The file system of one container: this machine's, with the pod's volumes at the paths where the pod mounts them.

Run as `unshare --mount python podroot.py SPEC`: it builds a root folder that is visible to this process alone, enters
it and becomes the program. So the program finds `/var/run/secrets/...` and `/etc/...` where the manifest says, and
nothing is written to the machine's own folders. Standard library only: it starts before any environment is there.
"""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

HOST = "host-of-the-rig"  # folder of the new root in which all of the machine's own appears


@dataclasses.dataclass(frozen=True)
class Mount:
    """A folder or file of this machine at a path of the container."""

    source: str
    path: str
    read_only: bool = False


@dataclasses.dataclass(frozen=True)
class Spec:
    """What to become.

    Args:
        root: an empty folder.
        keep: folders that must stay visible though a mount hides what they are in.
        read_only: whether everything but the mounts refuses writes.
    """

    root: str
    mounts: tuple[Mount, ...]
    keep: tuple[str, ...]
    read_only: bool
    command: tuple[str, ...]
    environment: dict[str, str]

    def write(self, path: Path) -> Path:
        """Write it as the file that the program reads."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(dataclasses.asdict(self), indent=1))
        return path

    @classmethod
    def read(cls, path: Path) -> "Spec":
        """Read what `write` wrote."""
        given = json.loads(path.read_text())
        mounts = tuple(Mount(**{**one, "path": os.path.realpath(one["path"])}) for one in given["mounts"])
        return cls(**{**given, "mounts": mounts})


def enter(spec: Spec) -> None:
    """Build the root and go there."""
    root = Path(spec.root)
    _mount("-t", "tmpfs", "rig", str(root))
    (root / HOST).mkdir()
    _mount("--rbind", "/", str(root / HOST))
    _mirror(root, {mount.path for mount in spec.mounts})
    for mount in sorted(spec.mounts, key=lambda one: one.path):
        _place(mount, root)
    os.chroot(root)
    os.chdir("/")
    for folder in spec.keep:
        _show(Path(folder))
    if spec.read_only:
        _mount("-o", "remount,bind,ro", f"/{HOST}")
        _mount("-o", "remount,ro", "/")


def _mirror(root: Path, mounted: set[str]) -> None:
    """Link everything of the machine into the new root, with real folders only on the way to a mount."""
    on_the_way = {str(parent) for path in mounted for parent in Path(path).parents}
    for folder in sorted(on_the_way):
        here = root / folder.lstrip("/")
        here.mkdir(exist_ok=True)
        for path in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if str(path) not in on_the_way | mounted:
                (here / path.name).symlink_to(f"/{HOST}{path}")


def _place(mount: Mount, root: Path) -> None:
    point = root / mount.path.lstrip("/")
    point.parent.mkdir(parents=True, exist_ok=True)
    point.mkdir(exist_ok=True) if Path(mount.source).is_dir() else point.touch()
    _mount("--bind", f"{root}/{HOST}{mount.source}", str(point))
    if mount.read_only:
        _mount("-o", "remount,bind,ro", str(point))


def _show(folder: Path) -> None:
    if not folder.exists() or not any(folder.iterdir()):  # empty: where a restarted container had it mounted
        folder.mkdir(parents=True, exist_ok=True)
        _mount("--bind", f"/{HOST}{folder}", str(folder))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)  # noqa: S603, S607  (our own words)


def main() -> None:
    """Enter, and become the program."""
    spec = Spec.read(Path(sys.argv[1]))
    enter(spec)
    os.execvpe(spec.command[0], spec.command, spec.environment)  # noqa: S606  (that is its purpose)


if __name__ == "__main__":
    main()
