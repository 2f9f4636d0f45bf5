"""A Dockerfile read as steps, and run in plain folders: what COPY and RUN do, without a container engine.

Absolute paths below `PREFIXES` are moved into a folder of the test's own. That is all that differs from a builder: the
shell, the interpreter and pip are real.
"""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PREFIXES = ("/opt/", "/src")


@dataclasses.dataclass(frozen=True)
class Step:
    """One instruction: its name, what follows it with continuation lines joined, and the stage it is in."""

    name: str
    text: str
    stage: int


def read(text: str) -> list[Step]:
    """The instructions of a Dockerfile, in order; those before the first FROM are in stage 0."""
    steps: list[Step] = []
    stage = 0
    for line in _lines(text):
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        steps.append(Step(name, rest.strip(), stage))
    return steps


def _lines(text: str) -> Iterator[str]:
    held = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#") or not (line.strip() or held):
            continue
        held += line.rstrip().removesuffix("\\")
        if not line.rstrip().endswith("\\"):
            yield held
            held = ""


@dataclasses.dataclass
class Builder:
    """Runs the steps of one stage.

    Args:
        context: the folder of the Dockerfile.
        root: where the stage's paths are moved to.
        environment: added to what ENV and ARG say, and stronger.
    """

    context: Path
    root: Path
    environment: dict[str, str]
    log: list[str] = dataclasses.field(default_factory=list)

    def run(self, steps: list[Step]) -> None:
        """Run them.

        Raises:
            AssertionError: a step failed, or is of a kind that is not known here.
        """
        self._variables: dict[str, str] = {}
        self._folder = self.root
        for step in steps:
            {"ARG": self._set, "ENV": self._set, "WORKDIR": self._enter, "COPY": self._copy, "RUN": self._run}[
                step.name
            ](step.text)

    def placed(self, text: str) -> str:
        """The same with the stage's paths moved into `root`."""
        return re.sub(rf"(?<![\w./])({'|'.join(PREFIXES)})", lambda found: f"{self.root}{found[1]}", text)

    def _set(self, text: str) -> None:
        for word in shlex.split(text):
            name, _, value = word.partition("=")
            self._variables[name] = value

    def _enter(self, text: str) -> None:
        self._folder = Path(self.placed(text))
        self._folder.mkdir(parents=True, exist_ok=True)

    def _copy(self, text: str) -> None:
        *sources, target = text.split()
        for name in sources:
            source, place = self.context / name, self._folder / target
            if source.is_dir():
                unwanted = shutil.ignore_patterns("__pycache__")  # as .dockerignore says
                shutil.copytree(source, place, ignore=unwanted, dirs_exist_ok=True, symlinks=True)
            else:
                shutil.copy(source, place)

    def _run(self, text: str) -> None:
        shims = self.root / "shims"
        shims.mkdir(exist_ok=True)
        if not (shims / "python").exists():
            (shims / "python").symlink_to(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "VIRTUAL_ENV", "PYTHON"))
        }
        environment = {**kept, **self._variables, **self.environment, "PATH": f"{shims}:{os.environ['PATH']}"}
        ran = subprocess.run(  # noqa: S603  (the Dockerfile's own words)
            ["/bin/sh", "-ec", self.placed(text)],
            cwd=self._folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
        )
        self.log += [ran.stdout, ran.stderr]
        assert ran.returncode == 0, f"RUN {text}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
