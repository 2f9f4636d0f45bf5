"""A target that has been decided for, as `floorcast explain` tells of it."""

import dataclasses

from models.capacity.sizing import Need, NeedKind, Plan
from models.forecasting.forecast import Forecast, Quality
from models.signals import Cause, Known, Signal, Unknown
from predictor import deciding
from predictor.board import Entry
from predictor.outlooks import Pace
from predictor.ports import Workload
from tests.fakes.world import CALM
from tests.predictor.telemetry import examples

NOW = 1_772_375_400.0  # 2026-03-01 14:30 UTC
QUANTILES = {0.5: 130.0, 0.8: 150.0, 0.9: 190.0, 0.95: 230.0, 0.99: 430.0}  # at 40 a replica: 4, 4, 5, 6, 11


def row(workload: Workload = CALM, *, now: float = NOW, waiting: float = 0.0, **target: object) -> Entry:
    """A target whose raising quantile of 0.95 asks for 6."""
    entry = Entry(dataclasses.replace(examples.target(), **target), workload=workload)  # type: ignore[arg-type]
    entry.readings = {
        Signal.IN_FLIGHT: Known(60.0, now - 12),
        Signal.WAITING: Known(waiting, now - 3),
        Signal.ARRIVALS: Unknown(Cause.NOT_ASKED),
    }
    objectives = dataclasses.replace(entry.target.objectives, raise_quantile=0.95)
    entry.target = dataclasses.replace(entry.target, objectives=objectives)
    outlook = Forecast(now, 345.0, 100.0, QUANTILES, Quality.SEASONED)
    needs = Plan((Need(NeedKind.IN_FLIGHT, 230.0, 40.0),))
    entry.plans = dataclasses.replace(
        examples.PLANS,
        made_at=now,
        outlooks={Signal.IN_FLIGHT: (outlook, outlook)},
        raising=needs,
        lowering=needs,
    )
    decide(entry, now=now)
    return entry


def decide(entry: Entry, *, now: float) -> None:
    """Once more, at this Unix time."""
    assert isinstance(entry.workload, Workload)
    entry.remember(deciding.decide(entry, entry.workload, now=now, loading=False, pace=Pace(slow=30), others=[entry]))
