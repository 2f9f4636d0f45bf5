"""Time and memory of a whole tick, against one bare statsforecast pass over the same series in the same run."""

import dataclasses
import gc
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from models.forecasting.engine import Forecaster
from models.forecasting.library import SimpleExponentialSmoothingOptimized
from models.series import Floats, Series

STEP = 30.0
HISTORY = 2880  # points: a day
TICKS = 60  # half an hour: every part of the work comes up at least once
HORIZONS = (300.0, 900.0)  # to raise for, to lower for
WINDOW = 240


@dataclasses.dataclass(frozen=True)
class Timing:
    """CPU and memory for some targets.

    Attributes:
        targets: series.
        horizons: of each.
        mean: CPU seconds of a tick.
        worst: CPU seconds of the slowest of 60 ticks in a row.
        bare: CPU seconds of one pass of the smoothing alone over the level windows, through `StatsForecast.forecast`.
        bare_model: the same through the model's own `forecast`, series by series, which is faster.
        restart: CPU seconds to learn a day of history from nothing.
        memory: largest resident memory of the process, bytes; histories, libraries and interpreter included.
    """

    targets: int
    horizons: int
    mean: float
    worst: float
    bare: float
    bare_model: float
    restart: float
    memory: int


def measured(targets: Sequence[int], tell: Callable[[str], None]) -> list[Timing]:
    """Each number of targets in a process of its own: memory once taken does not come back."""
    out = []
    for count, horizons in itertools.product(targets, (1, 2)):
        tell(f"time and memory of {count} targets, horizons each: {horizons}")
        command = [sys.executable, "-m", "benchmarks.forecast.speed", str(count), str(horizons)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  (this very module)
        out.append(Timing(**json.loads(done.stdout.splitlines()[-1])))
    return out


def timing(targets: int, horizons: int) -> Timing:
    """Time this process."""
    ahead = HORIZONS[:horizons]
    rng = np.random.default_rng(20)
    days = 2 * np.pi * np.arange(HISTORY + TICKS) * STEP / 86400
    # Row by row and small: what the benchmark itself holds beside the histories would count as the forecast's memory.
    values = np.empty((targets, HISTORY + TICKS), dtype=np.float32)
    for row in values:
        row[:] = rng.poisson(40 + 30 * np.sin(days + 2 * np.pi * rng.random()))
    gc.freeze()  # as the service does at its start
    forecaster = Forecaster()
    restart = _tick(forecaster, values[:, :HISTORY], ahead)
    ticks = [_tick(forecaster, values[:, i : HISTORY + i], ahead, start=i) for i in range(1, TICKS + 1)]
    memory = _largest_memory()
    windows = values[:, -WINDOW:].astype(np.float64)
    bare, bare_model = min(_bare(windows) for _ in range(5)), min(_loop(windows) for _ in range(5))
    return Timing(targets, horizons, float(np.mean(ticks)), max(ticks), bare, bare_model, restart, memory)


def _tick(forecaster: Forecaster, values: npt.NDArray[np.float32], ahead: tuple[float, ...], start: int = 0) -> float:
    histories = {i: Series(start * STEP, STEP, row) for i, row in enumerate(values)}
    before = time.process_time()
    forecaster.update(histories, horizons=dict.fromkeys(histories, ahead))
    return time.process_time() - before


def _largest_memory() -> int:
    """Bytes. Not `getrusage`: its maximum outlives exec, so that a small child shows its parent's memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _bare(windows: Floats) -> float:
    rows, n = windows.shape
    frame = pd.DataFrame(
        {"unique_id": np.repeat(np.arange(rows), n), "ds": np.tile(np.arange(n), rows), "y": windows.ravel()}
    )
    from statsforecast import StatsForecast  # noqa: PLC0415  (late: memory has been measured by now)

    library = StatsForecast(models=[SimpleExponentialSmoothingOptimized()], freq=1, n_jobs=1)
    before = time.process_time()
    library.forecast(df=frame, h=1)
    return time.process_time() - before


def _loop(windows: Floats) -> float:
    model = SimpleExponentialSmoothingOptimized()
    before = time.process_time()
    for row in windows:
        model.forecast(y=row, h=1)
    return time.process_time() - before


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(timing(int(sys.argv[1]), int(sys.argv[2])))))
