"""Floorcast's own forecasts: the service's object, tick by tick, all traces of a grid at once."""

from collections import defaultdict
from collections.abc import Callable, Hashable

import numpy as np

from benchmarks.forecast.traces import Trace
from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast
from models.forecasting.settings import MEMORY, ForecastSettings
from models.series import Floats, Series

Bounds = dict[tuple[str, float], Floats]


def bounds(
    traces: list[Trace], warm_ups: tuple[float, ...], settings: ForecastSettings, tell: Callable[[str], None]
) -> Bounds:
    """(trace, warm-up in seconds) -> quantiles at each origin, shape (origins, quantiles)."""
    out = {
        (trace.name, warm_up): np.full((len(trace.origins), len(settings.quantiles)), np.nan)
        for trace in traces
        for warm_up in warm_ups
    }
    grids: dict[float, list[Trace]] = defaultdict(list)
    for trace in traces:
        grids[trace.step].append(trace)
    for step, together in grids.items():
        tell(f"Floorcast on {len(together)} traces with a step of {step:g} s")
        forecaster = Forecaster(settings)
        for i in range(max(len(trace.origins) for trace in together)):
            running = {trace.name: trace for trace in together if i < len(trace.origins)}
            histories: dict[Hashable, Series] = {name: _history(trace, i) for name, trace in running.items()}
            outlooks = forecaster.update(histories, horizons=dict.fromkeys(histories, warm_ups))
            for name in running:
                for warm_up, outlook in zip(warm_ups, outlooks[name], strict=True):
                    if isinstance(outlook, Forecast):
                        out[name, warm_up][i] = list(outlook.quantiles.values())
    return out


def _history(trace: Trace, i: int) -> Series:
    end = int(trace.origins[i]) + 1
    start = max(end - int(MEMORY / trace.step), 0)
    return Series(start * trace.step, trace.step, trace.counts[start:end])
