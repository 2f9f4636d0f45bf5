"""A target's row, tick by tick, for the tests of what decisions are made from."""

import dataclasses

from models.capacity.sizing import Need, NeedKind, Plan
from models.capacity.warmup import Horizons
from models.policy.decision import Decision
from models.signals import Cause, Known, Signal, Unknown
from predictor import deciding
from predictor.board import Entry, Plans
from predictor.outlooks import Pace
from tests.fakes.world import CALM
from tests.predictor.telemetry import examples

NOW = 1_000_000.0
QUIET = {
    Signal.ARRIVALS: 1.0,
    Signal.IN_FLIGHT: 12.0,
    Signal.WAITING: 0.0,
    Signal.TOKENS_OUT: 500.0,
    Signal.TTFT_P95: 0.5,
}


def plan(replicas: int, kind: NeedKind = NeedKind.IN_FLIGHT) -> Plan:
    return Plan((Need(kind, replicas * 40.0, 40.0),))


class Row:
    """A target's row and a way to let time pass over it."""

    def __init__(self, *, wanted: int = 2, kind: NeedKind = NeedKind.IN_FLIGHT, **target: object) -> None:
        self.now, self.wanted, self.kind = NOW, wanted, kind
        self.entry = Entry(dataclasses.replace(examples.target(), **target))  # type: ignore[arg-type]
        self.workload, self.pace = CALM, Pace(slow=30)

    def decide(self, *others: Entry, **values: float | None) -> Decision:
        """One tick later; readings by their names, None for one that is not known."""
        self.now += 10
        given = {**QUIET, **{Signal(name): value for name, value in values.items()}}
        self.entry.readings = {
            signal: Unknown(Cause.EMPTY) if value is None else Known(value, self.now) for signal, value in given.items()
        }
        planned = plan(self.wanted, self.kind)
        self.entry.plans = Plans(self.now, Horizons(75, 135), {}, planned, planned, duration=12.0)
        self.entry.workload = self.workload
        made = deciding.decide(
            self.entry, self.workload, now=self.now, loading=False, pace=self.pace, others=(self.entry, *others)
        )
        self.entry.remember(made)
        return made
