"""The image, as far as it goes without a container engine: its recipe linted, its wheel built twice, its steps run."""

import datetime as dt
import fnmatch
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helm import dockerfile

CHECKOUT = Path(__file__).parents[2]
TEXT = (CHECKOUT / "Dockerfile").read_text()
STEPS = dockerfile.read(TEXT)


def of(name: str) -> list[str]:
    return [step.text for step in STEPS if step.name == name]


# ---------------------------------------------------------------------------------------------------------- the recipe


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run([hadolint, CHECKOUT / "Dockerfile"], capture_output=True, text=True, check=False)  # noqa: S603
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_base_is_a_patch_release_of_debians_slim_python() -> None:
    base = of("ARG")[0]
    assert re.fullmatch(r"PYTHON=python:3\.\d+\.\d+-slim-bookworm(@sha256:[0-9a-f]{64})?", base)
    assert {text.split()[0] for text in of("FROM")} == {"${PYTHON}"}


def test_the_process_is_a_number_that_is_not_root_and_gets_its_signals_itself() -> None:
    (user,) = of("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert json.loads(of("ENTRYPOINT")[0]) == ["floorcast"]
    assert json.loads(of("CMD")[0]) == ["run"]


def test_every_wheel_is_installed_by_its_hash_and_nothing_is_built_from_source() -> None:
    commands = [part for text in of("RUN") for part in text.split("&&")]
    installs = [part for part in commands if " install " in part]
    assert len(installs) == 3
    for part in installs:
        by_hash = "--require-hashes" in part and "--only-binary :all:" in part
        assert by_hash or ("--no-index" in part and "--no-deps" in part), part
    assert "curl" not in TEXT
    assert "apt-get" not in TEXT


def test_only_what_is_copied_goes_to_the_builder_and_all_of_it_exists() -> None:
    copied = {name for text in of("COPY") if not text.startswith("--from") for name in text.split()[:-1]}
    rules = [
        line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == copied
    assert all((CHECKOUT / name).exists() for name in copied)
    assert not any(fnmatch.fnmatch(name, rule) for name in copied for rule in rules[1:] if not rule.startswith("!"))


def test_nothing_but_tmp_need_be_writable() -> None:
    last = max(step.stage for step in STEPS)
    said = [word for step in STEPS if step.stage == last and step.name == "ENV" for word in shlex.split(step.text)]
    environment = dict(word.split("=", 1) for word in said)
    assert environment["HOME"] == "/tmp"  # noqa: S108  (of the container)
    assert environment["NUMBA_CACHE_DIR"].startswith("/tmp/")  # noqa: S108  (likewise)
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"


def test_a_step_is_read_with_its_continuation_and_without_comments() -> None:
    text = "ARG A=1\n# no\nFROM x AS y\nRUN one \\\n # no\n && two\nCOPY a b ./\n"
    assert [(step.name, " ".join(step.text.split()), step.stage) for step in dockerfile.read(text)] == [
        ("ARG", "A=1", 0),
        ("FROM", "x AS y", 1),
        ("RUN", "one && two", 1),
        ("COPY", "a b ./", 1),
    ]


# ------------------------------------------------------------------------------------------------- the same bytes again


def wheel(root: Path, *, age: float, mode: int, environment: dict[str, str]) -> Path:
    """Our wheel by the Dockerfile's own words, from files that were written so many seconds ago with that mode.

    Only the builder's pip is another: that of this environment, which has the same build backend by the same lock.
    """
    pip = root / "opt/build/bin/pip"
    pip.parent.mkdir(parents=True)
    pip.symlink_to(Path(sys.executable).with_name("pip"))
    builder = dockerfile.Builder(CHECKOUT, root, environment)
    steps = [step for step in STEPS if step.stage == 1 and step.name != "FROM"]
    (command,) = (part for step in steps for part in step.text.split("&&") if "pip wheel" in part)
    given = [step for step in steps if step.name in ("ARG", "WORKDIR", "COPY")]
    builder.run(given)
    for path in (root / "src").rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
            os.utime(path, (path.stat().st_mtime - age,) * 2)
    builder.run([*(step for step in given if step.name != "COPY"), dockerfile.Step("RUN", command, 1)])
    (made,) = (root / "opt/wheel").glob("*.whl")
    return made


def test_the_same_commit_gives_the_same_wheel_wherever_and_whenever_it_is_built(tmp_path: Path) -> None:
    here = wheel(tmp_path / "a", age=0, mode=0o644, environment={"TZ": "UTC", "PYTHONHASHSEED": "1"})
    there = wheel(
        tmp_path / "another/folder", age=1e7, mode=0o664, environment={"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"}
    )
    assert here.name == there.name
    assert hashlib.sha256(here.read_bytes()).digest() == hashlib.sha256(there.read_bytes()).digest()
    (epoch,) = (text.partition("=")[2] for text in of("ARG") if text.startswith("SOURCE_DATE_EPOCH="))
    with zipfile.ZipFile(here) as packed:
        times = {dt.datetime(*one.date_time, tzinfo=dt.UTC).timestamp() for one in packed.infolist()}
    assert times == {float(epoch)}


# ------------------------------------------------------------------------------------------------------ its steps, run


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that stands for the build stage's root, after all of its steps."""
    root = tmp_path_factory.mktemp("image")
    # Wheels may come from pip's cache, by the same hashes; the image must not carry one, a test may use it.
    builder = dockerfile.Builder(CHECKOUT, root, {"PIP_NO_CACHE_DIR": "0"})
    builder.run([step for step in STEPS if step.stage == 1 and step.name != "FROM"])
    return root


def inside(built: Path, *arguments: str, program: str = "floorcast") -> subprocess.CompletedProcess[str]:
    """Runs a program of the image with nothing of this checkout in reach."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(built), "NUMBA_CACHE_DIR": str(built / "numba")}
    return subprocess.run(  # noqa: S603  (our own command)
        [built / "opt/floorcast/bin" / program, *arguments],
        cwd="/",
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
        capture_output=True,
        check=False,
        timeout=240,
    )


@pytest.mark.cluster
@pytest.mark.timeout(900, func_only=True)
def test_the_built_command_runs_and_carries_its_configuration(built: Path) -> None:
    assert inside(built, "version").stdout.startswith("floorcast ")
    shown = inside(built, "config", "reference")
    assert shown.stdout == (built / "src/config/floorcast.yaml").read_text()
    (built / "c.yaml").write_text("targets: [{namespace: llm, name: chat, capacity: {concurrency: 4}}]")
    assert "llm/chat" in inside(built, "config", "validate", "--config", str(built / "c.yaml")).stdout


@pytest.mark.cluster
@pytest.mark.timeout(900, func_only=True)
def test_the_image_has_what_the_lock_names_and_no_tools(built: Path) -> None:
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", (CHECKOUT / "requirements.lock").read_text(), re.MULTILINE)
    packages = built / "opt/floorcast/lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    there = {path.name.removesuffix(".dist-info").rpartition("-")[0].lower() for path in packages.glob("*.dist-info")}
    assert there == {name.replace("-", "_") for name, _ in locked} | {"floorcast"}
    assert not (built / "opt/floorcast/bin/pip").exists()
    compiled = packages / "predictor/__pycache__" / f"app.cpython-3{sys.version_info.minor}.pyc"
    assert compiled.read_bytes()[4:8] == b"\1\0\0\0", "by content and not checked again: no times in it"


@pytest.mark.cluster
@pytest.mark.timeout(900, func_only=True)
def test_the_service_of_the_image_starts_without_writing_beside_its_code(built: Path) -> None:
    """A demo of half an hour: the service's loops and compiled code; then nothing in the environment is new."""
    before = set((built / "opt/floorcast").rglob("*"))
    ran = inside(built, "demo", "--headless", "--hours", "0.5", "--days", "0")
    assert ran.returncode == 0, ran.stderr
    assert set((built / "opt/floorcast").rglob("*")) == before
