"""Time and memory of a whole tick, against one bare statsforecast pass over the same series in the same run."""

import dataclasses
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import SimpleExponentialSmoothingOptimized

from models.forecasting.engine import Forecaster
from models.series import Floats, Series

STEP = 30.0
HISTORY = 2880  # points: a day
TICKS = 60  # half an hour: every part of the work comes up at least once
HORIZON = 300.0
WINDOW = 240


@dataclasses.dataclass(frozen=True)
class Timing:
    """CPU and memory for some targets.

    Attributes:
        targets: series, one horizon each.
        mean: CPU seconds of a tick.
        worst: CPU seconds of the slowest of 60 ticks in a row.
        bare: CPU seconds of one pass of the smoothing alone over the level windows, through `StatsForecast.forecast`.
        bare_model: the same through the model's own `forecast`, series by series, which is faster.
        restart: CPU seconds to learn a day of history from nothing.
        memory: largest resident memory of the process, bytes; histories, libraries and interpreter included.
    """

    targets: int
    mean: float
    worst: float
    bare: float
    bare_model: float
    restart: float
    memory: int


def measured(targets: Sequence[int], tell: Callable[[str], None]) -> list[Timing]:
    """Each number of targets in a process of its own: memory once taken does not come back."""
    out = []
    for count in targets:
        tell(f"time and memory of {count} targets")
        done = subprocess.run(  # noqa: S603  (this very module)
            [sys.executable, "-m", "benchmarks.forecast.speed", str(count)], check=True, capture_output=True, text=True
        )
        out.append(Timing(**json.loads(done.stdout.splitlines()[-1])))
    return out


def timing(targets: int) -> Timing:
    """Time this process."""
    rng = np.random.default_rng(20)
    days = 2 * np.pi * (np.arange(HISTORY + TICKS) * STEP / 86400 + rng.random((targets, 1)))
    values = rng.poisson(40 + 30 * np.sin(days)).astype(np.float64)
    forecaster = Forecaster()
    restart = _tick(forecaster, values[:, :HISTORY])
    ticks = [_tick(forecaster, values[:, i : HISTORY + i], start=i) for i in range(1, TICKS + 1)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    bare, bare_model = min(_bare(values[:, -WINDOW:]) for _ in range(5)), min(_loop(values) for _ in range(5))
    return Timing(targets, float(np.mean(ticks)), max(ticks), bare, bare_model, restart, memory)


def _tick(forecaster: Forecaster, values: Floats, start: int = 0) -> float:
    histories = {i: Series(start * STEP, STEP, row) for i, row in enumerate(values)}
    before = time.process_time()
    forecaster.update(histories, horizons=dict.fromkeys(histories, (HORIZON,)))
    return time.process_time() - before


def _bare(windows: Floats) -> float:
    rows, n = windows.shape
    frame = pd.DataFrame(
        {"unique_id": np.repeat(np.arange(rows), n), "ds": np.tile(np.arange(n), rows), "y": windows.ravel()}
    )
    library = StatsForecast(models=[SimpleExponentialSmoothingOptimized()], freq=1, n_jobs=1)
    before = time.process_time()
    library.forecast(df=frame, h=1)
    return time.process_time() - before


def _loop(values: Floats) -> float:
    model = SimpleExponentialSmoothingOptimized()
    before = time.process_time()
    for row in values[:, -WINDOW:]:
        model.forecast(y=row, h=1)
    return time.process_time() - before


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(timing(int(sys.argv[1])))))
