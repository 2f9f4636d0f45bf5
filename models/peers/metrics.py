"""Proposals of the HorizontalPodAutoscaler, one a metric, after kubernetes' replica_calculator.go.

External metrics (Object metrics have the same rules) and Pods metrics; a proposal is None where there is no metric.
Resource metrics are left out: the CPU of a model server says nothing of its load.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence
from typing import Protocol

from models.peers import answer, sight
from models.policy.protocol import Observation, Pod
from models.signals import Signal


@dataclasses.dataclass(frozen=True, slots=True)
class Tolerance:
    """Shares by which a ratio may exceed 1, or fall short of it, without any change."""

    up: float = 0.1
    down: float = 0.1

    def holds(self, ratio: float) -> bool:
        """Whether the ratio counts as 1."""
        return 1 - self.down - 1e-12 <= ratio <= 1 + self.up + 1e-12


class Kind(enum.StrEnum):
    """How an external metric's target is meant: for all replicas together, or for each."""

    VALUE = "Value"
    AVERAGE = "AverageValue"


class Metric(Protocol):
    """One entry of spec.metrics."""

    def proposal(self, seen: Observation, tolerance: Tolerance) -> int | None:
        """The replicas it asks for; None when it has no value."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class External:
    """A metric from outside the cluster's pods: a query.

    Attributes:
        signals: what the query sums; a mean over the replicas (KV usage) counts as its sum.
        target: the value aimed at, by `kind` for all replicas or for each.
        kind: Value or AverageValue.
    """

    signals: tuple[Signal, ...]
    target: float
    kind: Kind = Kind.AVERAGE

    def __post_init__(self) -> None:
        _positive(self.target)

    def proposal(self, seen: Observation, tolerance: Tolerance) -> int | None:
        """The replicas it asks for; None when it has no value."""
        found = sight.total(seen, self.signals)
        if found is None:
            return None
        rule = average_value if self.kind is Kind.AVERAGE else plain_value
        return rule(found, self.target, seen, tolerance)

    def describe(self, seen: Observation) -> str:
        """The value beside its target, for a person."""
        each = " a replica" if self.kind is Kind.AVERAGE else ""
        return f"{' + '.join(self.signals)} {sight.total(seen, self.signals) or 0:g} at {self.target:g}{each}"


def average_value(found: float, target: float, seen: Observation, tolerance: Tolerance) -> int:
    """ceil(sum / target), or status.replicas while the mean is within tolerance of the target."""
    there = sight.existing(seen)
    if there and tolerance.holds(found / (target * there)):
        return there
    return answer.ceil(found / target)


def plain_value(found: float, target: float, seen: Observation, tolerance: Tolerance) -> int:
    """ceil(sum / target x ready pods): only ready ones count, so a slow warm-up lowers what is asked for."""
    ratio = found / target
    if seen.replicas == 0:
        return answer.ceil(ratio)
    return seen.replicas if tolerance.holds(ratio) else answer.ceil(ratio * seen.supply.ready)


@dataclasses.dataclass(frozen=True, slots=True)
class PerPod:
    """A Pods metric: the mean over the pods is brought to the target."""

    signals: tuple[Signal, ...]
    target: float

    def __post_init__(self) -> None:
        _positive(self.target)

    def proposal(self, seen: Observation, tolerance: Tolerance) -> int | None:
        """The replicas it asks for; None when no pod has a value."""
        have, missing, unready = self._grouped(sight.pods(seen))
        if not have:
            return None
        ratio = sum(have) / len(have) / self.target
        if (not unready or ratio <= 1) and not missing:
            return seen.replicas if tolerance.holds(ratio) else answer.ceil(ratio * len(have))
        have += [self.target if ratio < 1 else 0.0] * missing
        have += [0.0] * (unready if ratio > 1 else 0)
        filled = sum(have) / len(have) / self.target
        turned = (ratio < 1 < filled) or (filled < 1 < ratio)
        wanted = answer.ceil(filled * len(have))
        against = (filled < 1 and wanted > seen.replicas) or (filled > 1 and wanted < seen.replicas)
        return seen.replicas if tolerance.holds(filled) or turned or against else wanted

    def _grouped(self, pods: Sequence[Pod]) -> tuple[list[float], int, int]:
        """Values, pods without a metric, and Pending ones; those being deleted are no pods (groupPods)."""
        have, missing, unready = [], 0, 0
        for pod in pods:
            if pod.deleting:
                continue
            if pod.pending:
                unready += 1
                continue
            values = [sight.of_pod(pod, signal) for signal in self.signals]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                missing += 1
            else:
                have.append(sum(known))
        return have, missing, unready


def combine(proposals: Sequence[int | None], current: int) -> int | None:
    """The largest; None, no scaling, where none is valid, or where one is not and the others would scale down."""
    valid = [one for one in proposals if one is not None]
    if not valid:
        return None
    best = max(valid)
    return None if len(valid) < len(proposals) and best < current else best


def _positive(target: float) -> None:
    if not (math.isfinite(target) and target > 0):
        raise ValueError(f"target is {target!r}: must be a positive number")
