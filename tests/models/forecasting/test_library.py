import subprocess
import sys


def test_forecasting_does_not_bring_in_numba_and_leaves_it_to_others() -> None:
    code = (
        "import sys, models.forecasting.engine\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] in ('numba', 'llvmlite')]\n"
        "import numba\n"
        "assert numba.njit\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)  # noqa: S603  (our own interpreter)


def test_numba_that_was_there_before_stays() -> None:
    code = "import sys, numba, models.forecasting.library\nassert sys.modules['numba'] is numba\n"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)  # noqa: S603  (our own interpreter)
