"""KEDA triggers: what each contributes to the HPA, and whether it is active.

After keda/pkg/scalers/{prometheus,cron}_scaler.go; defaults as documented in autumn 2026.
"""

import dataclasses
import enum
import math
from typing import Protocol

from models.peers import metrics, sight
from models.policy.protocol import Observation
from models.series import Series
from models.signals import Cause, Signal, Unknown

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
WEEK = 7 * DAY


class Health(enum.Enum):
    """A trigger that could not be asked: an error is never a number."""

    FAILED = "failed"


Found = float | Health


class Trigger(Protocol):
    """One entry of spec.triggers of a ScaledObject."""

    @property
    def threshold(self) -> float:
        """The value aimed at, for all replicas or for each."""
        ...

    @property
    def activation(self) -> float:
        """The value above which the workload is woken from zero."""
        ...

    @property
    def kind(self) -> metrics.Kind:
        """Value or AverageValue."""
        ...

    def read(self, seen: Observation) -> Found:
        """The value of this moment."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Prometheus:
    """A PromQL query.

    Attributes:
        signals: what the query sums.
        threshold: the value a replica is meant to have.
        activation: the value above which the trigger is active.
        kind: metricType.
        ignore_null_values: an empty or not finite answer is 0, by default; else an error.
    """

    signals: tuple[Signal, ...]
    threshold: float
    activation: float = 0.0
    kind: metrics.Kind = metrics.Kind.AVERAGE
    ignore_null_values: bool = True

    def read(self, seen: Observation) -> Found:
        """The sum; what has no sample is 0 or an error, what did not answer an error."""
        found = sight.total(seen, self.signals)
        if found is not None:
            return found
        return 0.0 if self.ignore_null_values and self._null(seen) else Health.FAILED

    def _null(self, seen: Observation) -> bool:
        """Whether Prometheus answered, but without a number: a series that went stale is no longer there."""
        unknown = [one for signal in self.signals if isinstance(one := seen.readings.get(signal), Unknown)]
        return bool(unknown) and all(one.cause in (Cause.EMPTY, Cause.NOT_FINITE, Cause.STALE) for one in unknown)


@dataclasses.dataclass(frozen=True, slots=True)
class Cron:
    """So many replicas while a window is open, and nothing outside.

    Attributes:
        start: seconds into the period at which the window opens.
        end: seconds into the period at which it closes; before `start` it lasts over the period's end.
        replicas: desiredReplicas.
        period: seconds after which it comes back; periods begin at Unix times that are multiples of it.
    """

    start: float
    end: float
    replicas: int
    period: float = DAY
    threshold: float = dataclasses.field(default=1.0, init=False)
    activation: float = dataclasses.field(default=0.0, init=False)
    kind: metrics.Kind = dataclasses.field(default=metrics.Kind.AVERAGE, init=False)

    def read(self, seen: Observation) -> Found:
        """desiredReplicas, or 0."""
        at = seen.now % self.period
        inside = self.start <= at < self.end if self.start <= self.end else not self.end <= at < self.start
        return float(self.replicas) if inside else 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Timetable:
    """One cron trigger an entry, each a window of `step` seconds: what the largest of them contributes.

    Attributes:
        replicas: desiredReplicas by window, from the start of the period on.
        step: length of a window, seconds.
        offset: Unix time of the start of a period, seconds.
    """

    replicas: tuple[int, ...]
    step: float = HOUR
    offset: float = 0.0
    threshold: float = dataclasses.field(default=1.0, init=False)
    activation: float = dataclasses.field(default=0.0, init=False)
    kind: metrics.Kind = dataclasses.field(default=metrics.Kind.AVERAGE, init=False)

    def __post_init__(self) -> None:
        if not self.replicas or not self.step > 0:
            raise ValueError(f"{len(self.replicas)} windows of {self.step!r} s: both must be positive")

    def read(self, seen: Observation) -> Found:
        """DesiredReplicas of the window that is open."""
        return float(self.replicas[int((seen.now - self.offset) // self.step) % len(self.replicas)])


class Offset:
    """A query at an earlier time: `offset 7d` and a look ahead of half an hour, as in grafana/mimir#7775.

    It keeps what it reads, as Prometheus would; before that it has `history`, values of the same sum. Where that time
    has no sample the query is empty, hence 0 by KEDA's default.
    """

    activation = 0.0
    kind = metrics.Kind.AVERAGE

    def __init__(
        self,
        now: Prometheus,
        *,
        back: float = WEEK,
        ahead: float = 30 * MINUTE,
        history: Series | None = None,
        step: float = MINUTE,
    ) -> None:
        """`step` seconds is the resolution of what is kept."""
        if not 0 <= ahead < back:
            raise ValueError(f"back is {back!r} s and ahead {ahead!r} s: must be 0 <= ahead < back")
        self._now, self._shift, self._step = now, back - ahead, step
        self._kept: dict[int, float] = {}
        if history is not None:
            for at, value in zip(history.times.tolist(), history.values.tolist(), strict=True):
                if math.isfinite(value):
                    # A history of longer steps holds until the next point, as an instant query looks back 5 min.
                    for k in range(max(round(min(history.step, 5 * MINUTE) / step), 1)):
                        self._kept[int(at // step) + k] = value

    @property
    def threshold(self) -> float:
        """The same as that of the query."""
        return self._now.threshold

    def read(self, seen: Observation) -> Found:
        """The value `back - ahead` seconds ago; 0 where there is none."""
        found = sight.total(seen, self._now.signals)
        if found is not None:
            self._kept[int(seen.now // self._step)] = found
        wanted = int((seen.now - self._shift) // self._step)
        self._kept.pop(wanted - 1, None)  # never asked for again
        return self._kept.get(wanted, 0.0)
