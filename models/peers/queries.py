"""What somebody's own query reads: gauges and rates of an engine, summed and combined as PromQL does.

A query over the pods' pages has no series while no pod is ready, whatever a gateway may know then. No series, and a
result that is not finite, is None: whether that is 0 or an error is for the autoscaler to say.
"""

import dataclasses
import enum
import math
import operator
from collections.abc import Callable, Mapping
from typing import Protocol

from models.peers import metrics, sight, triggers
from models.policy.protocol import Observation
from models.signals import Signal

SEEN_OVER = 60.0  # seconds over which an observation's own rates are taken


class Query(Protocol):
    """A query with one number as its answer."""

    def read(self, seen: Observation) -> float | None:
        """The answer; None without one."""
        ...


class Over(enum.StrEnum):
    """How the pods' values become one."""

    SUM = "sum"
    MEAN = "avg"
    MOST = "max"
    COUNT = "count"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _count(values: list[float]) -> float:
    return float(len(values))


_COMBINED: Mapping[Over, Callable[[list[float]], float]] = {
    Over.SUM: sum, Over.MEAN: _mean, Over.MOST: max, Over.COUNT: _count,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Gauges:
    """Gauges of the pods, those of one pod added up, then over the pods."""

    signals: tuple[Signal, ...]
    over: Over = Over.SUM

    def read(self, seen: Observation) -> float | None:
        """Over the pods that were scraped; None without any."""
        found = []
        for pod in sight.pods(seen):
            values = [sight.of_pod(pod, signal) for signal in self.signals]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                found.append(sum(known))
        return _COMBINED[self.over](found) if found else None


class Windowed:
    """A rate or a quantile over a window, from the observations' own, which are taken over a minute.

    A longer window is the mean of those that lie in it; a shorter one is that minute.
    """

    def __init__(self, signal: Signal, *, window: float = SEEN_OVER, of_pods: bool = True) -> None:
        """`window` in seconds; `of_pods` where the metric is the engine's and not a gateway's."""
        self._signal, self._of_pods = signal, of_pods
        self._keeps = max(window - SEEN_OVER, 0.0)
        self._kept: dict[float, float] = {}

    def read(self, seen: Observation) -> float | None:
        """The mean of the window; None where nothing in it is known, or no pod is there to be asked."""
        found = sight.value(seen, self._signal)
        if found is not None:
            self._kept[seen.now] = found
        self._kept = {at: value for at, value in self._kept.items() if at >= seen.now - self._keeps}
        if not self._kept or (self._of_pods and not seen.supply.ready):
            return None
        return _mean(list(self._kept.values()))


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    number: float

    def read(self, seen: Observation) -> float | None:
        """The constant."""
        del seen
        return self.number


_OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Combined:
    """Two queries and what is between them: one of + - * /."""

    left: Query
    sign: str
    right: Query

    def read(self, seen: Observation) -> float | None:
        """None where a side is, and for a division by zero."""
        left, right = self.left.read(seen), self.right.read(seen)
        if left is None or right is None or (self.sign == "/" and right == 0):
            return None
        found = _OPERATORS[self.sign](left, right)
        return found if math.isfinite(found) else None


@dataclasses.dataclass(frozen=True, slots=True)
class Otherwise:
    """A query, or another where it has no answer: `or vector(0)`."""

    query: Query
    instead: Query

    def read(self, seen: Observation) -> float | None:
        """The first answer there is."""
        found, instead = self.query.read(seen), self.instead.read(seen)
        return instead if found is None else found


@dataclasses.dataclass(frozen=True, slots=True)
class External:
    """An External or Object metric of an HPA: a query and its target, as `models.peers.metrics` treats it."""

    query: Query
    target: float
    kind: metrics.Kind = metrics.Kind.AVERAGE

    def proposal(self, seen: Observation, tolerance: metrics.Tolerance) -> int | None:
        """The replicas it asks for; None when it has no value."""
        found = self.query.read(seen)
        if found is None:
            return None
        rule = metrics.average_value if self.kind is metrics.Kind.AVERAGE else metrics.plain_value
        return rule(found, self.target, seen, tolerance)


@dataclasses.dataclass(frozen=True, slots=True)
class Trigger:
    """KEDA's prometheus trigger on a query; attributes as those of `models.peers.triggers.Prometheus`."""

    query: Query
    threshold: float
    activation: float = 0.0
    kind: metrics.Kind = metrics.Kind.AVERAGE
    ignore_null_values: bool = True

    def read(self, seen: Observation) -> triggers.Found:
        """The answer; what has none is 0, or an error."""
        found = self.query.read(seen)
        if found is not None:
            return found
        return 0.0 if self.ignore_null_values else triggers.Health.FAILED
