"""Each import contract is broken once, to prove that it would be noticed."""

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
LINT = pathlib.Path(sys.executable).with_name("lint-imports")

# contract id -> (module that breaks it, what it imports); one row for each arrow that must not be drawn
BREACHES = [
    ("core-knows-no-shell", "models/policy/floor.py", "predictor.ports"),
    ("core-touches-nothing", "models/policy/floor.py", "time"),
    ("core-touches-nothing", "models/forecasting/engine.py", "logging"),
    ("core-touches-nothing", "models/capacity/sizing.py", "os"),
    ("core-touches-nothing", "models/fleet/__init__.py", "pydantic_settings"),
    ("forecasting-and-capacity-apart", "models/forecasting/engine.py", "models.capacity.sizing"),
    ("forecasting-and-capacity-apart", "models/capacity/sizing.py", "models.forecasting.forecast"),
    ("fleet-grades-itself-with-nothing", "models/fleet/__init__.py", "models.forecasting.forecast"),
    ("fleet-grades-itself-with-nothing", "models/fleet/__init__.py", "models.capacity.sizing"),
    ("numba-only-in-fleet", "models/race/driver.py", "numba"),
    ("numba-only-in-fleet", "models/series.py", "numba"),
    ("numba-only-in-fleet", "predictor/demo/stage.py", "numba"),
    ("peers-see-no-fleet", "models/peers/hpa.py", "models.fleet.profiles"),
    ("policy-composes", "models/forecasting/engine.py", "models.policy.floor"),
    ("policy-composes", "models/capacity/sizing.py", "models.fleet"),
    ("composition-root", "predictor/loops.py", "predictor.signals"),
    ("composition-root", "predictor/loops.py", "predictor.cluster"),
]


def lint(checkout: pathlib.Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [str(LINT), "--no-cache"]
    return subprocess.run(  # noqa: S603  (our own linter on our own copy)
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    for package in ("models", "predictor"):
        shutil.copytree(ROOT / package, tmp_path / package, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold_as_they_stand(checkout: pathlib.Path) -> None:
    result = lint(checkout)
    assert result.returncode == 0, result.stdout


def test_every_contract_is_broken_by_some_row() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert {contract["id"] for contract in contracts} == {contract for contract, _, _ in BREACHES}


@pytest.mark.parametrize(("contract", "module", "imported"), BREACHES)
def test_a_breach_is_noticed(checkout: pathlib.Path, contract: str, module: str, imported: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    name = next(entry["name"] for entry in contracts if entry["id"] == contract)
    path = checkout / module
    path.write_text(path.read_text() + f"\nimport {imported}\n")
    result = lint(checkout)
    assert result.returncode == 1
    assert f"{name} BROKEN" in " ".join(result.stdout.split())
