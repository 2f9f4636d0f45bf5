import subprocess
import sys

import pytest


def imported_with(modules: str) -> set[str]:
    command = f"import sys, {modules}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)  # noqa: S603  (our own interpreter and command)
    return set(found.stdout.split())


@pytest.mark.parametrize("modules", ["predictor.app, predictor.wiring", "predictor.replay.command"])
def test_the_service_and_the_back_test_bring_in_no_fleet(modules: str) -> None:
    """Only the fleet knows numba (an import contract), so that they do not bring in numba either."""
    assert not {name for name in imported_with(modules) if name.startswith(("models.fleet", "models.race"))}


def test_help_and_what_describes_a_simulation_know_no_numba() -> None:
    assert "numba" not in imported_with("predictor.cli, predictor.replay.simulate")
    assert "numba" not in imported_with("models.fleet.profiles, models.fleet.requests, models.fleet.workload")
