"""The world as the loops see it, one fake a port."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from models.capacity import warmup
from models.policy.context import Supply
from models.policy.decision import Decision
from models.series import Series
from models.signals import Cause, Known, Signal, Unknown
from predictor.board import Entry, Plans
from predictor.ports import Owner, Readings, Refused, Workload, Written
from predictor.targets import Target

CALM = Workload(
    owner=Owner.HPA,
    standing=2,
    base=2,
    maximum=10,
    replicas=2,
    supply=Supply(ready=2),
    warm_up=warmup.of_seconds(60.0, 60.0, 60.0),
)


@dataclasses.dataclass
class FakeClock:
    """A clock that stands until it is moved."""

    time: float = 1_000_000.0

    def now(self) -> float:
        return self.time


class FakeSource:
    """Signals from functions of time; not given is not asked, `missing` has no series, `down` answers nothing."""

    def __init__(self, **values: Callable[[float], float]) -> None:
        self.values = {Signal(name): function for name, function in values.items()}
        self.down = False
        self.missing: set[Signal] = set()
        self.keeps_history = True
        self.reads = 0

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Readings]:
        self.reads += 1
        return {target.key: {signal: self._reading(signal, now) for signal in Signal} for target in targets}

    def _reading(self, signal: Signal, now: float) -> Known | Unknown:
        if signal not in self.values:
            return Unknown(Cause.NOT_ASKED)
        if signal in self.missing:
            return Unknown(Cause.EMPTY)
        return Unknown(Cause.SOURCE_DOWN, "refused") if self.down else Known(self.values[signal](now), now)

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        if self.down:
            return {target.key: Unknown(Cause.SOURCE_DOWN, "refused") for target in targets}
        if signal not in self.values or not self.keeps_history:
            return {target.key: Unknown(Cause.EMPTY) for target in targets}
        start = (since // step) * step
        times = [start + step * i for i in range(int((until - start) // step) + 1)]
        series = Series(start, step, [self.values[signal](time) for time in times])  # type: ignore[arg-type]
        return {target.key: series for target in targets}


class FakeWorkloads:
    """Workloads in memory: a write takes effect at once, and every write is kept."""

    def __init__(self, workload: Workload | Refused = CALM) -> None:
        self.state: dict[str, Workload | Refused] = {}
        self.first = workload
        self.writes: list[tuple[float, str, int]] = []
        self.announced: list[Decision] = []
        self.refuse: Refused | None = None

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload | Refused]:  # noqa: ARG002
        return {target.key: self.state.setdefault(target.key, self.first) for target in targets}

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written | Refused:
        if self.refuse:
            return self.refuse
        self.writes.append((now, target.key, replicas))
        self.state[target.key] = dataclasses.replace(seen, standing=replicas)
        return Written(replicas)

    def announce(self, target: Target, decision: Decision) -> None:  # noqa: ARG002
        self.announced.append(decision)

    def release(self, target: Target) -> Written | Refused:
        state = self.state[target.key]
        return state if isinstance(state, Refused) else Written(state.base)


@dataclasses.dataclass
class FakeRecorder:
    """Keeps what it was told."""

    ticks: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    decisions: list[tuple[Decision, bool]] = dataclasses.field(default_factory=list)
    written: list[Written | Refused] = dataclasses.field(default_factory=list)
    planned: list[Plans] = dataclasses.field(default_factory=list)
    loads: list[bool] = dataclasses.field(default_factory=list)
    seen: list[Workload | Refused] = dataclasses.field(default_factory=list)

    def tick(self, loop: str, *, seconds: float, outcome: str) -> None:  # noqa: ARG002
        self.ticks.append((loop, outcome))

    def readings(self, target: Target, readings: Readings, *, now: float) -> None:
        """Looked at through the board in the tests."""

    def workload(self, target: Target, workload: Workload | Refused) -> None:  # noqa: ARG002
        self.seen.append(workload)

    def history(self, *, loaded: bool) -> None:
        self.loads.append(loaded)

    def plans(self, target: Target, plans: Plans) -> None:  # noqa: ARG002
        self.planned.append(plans)

    def decision(self, target: Target, decision: Decision, *, news: bool) -> None:  # noqa: ARG002
        self.decisions.append((decision, news))

    def row(self, entry: Entry, *, now: float) -> None:
        """Looked at through the board in the tests."""

    def write(self, target: Target, outcome: Written | Refused) -> None:  # noqa: ARG002
        self.written.append(outcome)
