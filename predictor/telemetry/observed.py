"""The two ports with a stopwatch in front: what the source and the cluster took, and what they left open."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from models.policy.decision import Decision
from models.series import Series
from models.signals import Cause, Signal, Unknown
from predictor.ports import Readings, Refused, SignalSource, Workload, Workloads, Written
from predictor.targets import Target
from predictor.telemetry.metrics import Metrics


class ObservedSource:
    """A `SignalSource` that counts and times another."""

    def __init__(self, source: SignalSource, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._metrics = metrics
        self._monotonic = monotonic

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Readings]:
        """As the source."""
        start = self._monotonic()
        answer = self._source.read(targets, now=now)
        unknown = [
            (signal, reading.cause)
            for readings in answer.values()
            for signal, reading in readings.items()
            if isinstance(reading, Unknown) and reading.cause is not Cause.NOT_ASKED
        ]
        self._metrics.source_call("read", seconds=self._monotonic() - start, unknown=unknown)
        return answer

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        """As the source; how much of the past is known is recorded too."""
        start = self._monotonic()
        answer = self._source.history(targets, signal, since=since, until=until, step=step)
        unknown = [(signal, one.cause) for one in answer.values() if isinstance(one, Unknown)]
        self._metrics.source_call("history", seconds=self._monotonic() - start, unknown=unknown)
        for target in targets:
            series = answer.get(target.key)
            if isinstance(series, Series):
                self._metrics.history(target, signal, series)
        return answer


class ObservedWorkloads:
    """`Workloads` that count and time others."""

    def __init__(self, workloads: Workloads, metrics: Metrics, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._workloads = workloads
        self._metrics = metrics
        self._monotonic = monotonic

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload | Refused]:
        """As the workloads."""
        start = self._monotonic()
        answer = self._workloads.observe(targets, now=now)
        self._took("observe", start, answer.values())
        return answer

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written | Refused:
        """As the workloads."""
        start = self._monotonic()
        answer = self._workloads.write(target, replicas, seen=seen, now=now)
        self._took("write", start, (answer,))
        return answer

    def announce(self, target: Target, decision: Decision) -> None:
        """As the workloads; not timed, since nothing waits for it."""
        self._workloads.announce(target, decision)

    def release(self, target: Target) -> Written | Refused:
        """As the workloads."""
        start = self._monotonic()
        answer = self._workloads.release(target)
        self._took("release", start, (answer,))
        return answer

    def _took(self, call: str, start: float, answers: Iterable[Workload | Written | Refused]) -> None:
        refused = [one for one in answers if isinstance(one, Refused)]
        self._metrics.cluster_call(call, seconds=self._monotonic() - start, refused=refused)
