"""Gauges that are replaced as a whole: what is no longer known leaves no stale series behind."""

import threading
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from predictor.telemetry.table import Kind, Metric

Labels = tuple[str, ...]


class Slate(Collector):
    """Values of all gauges, by who wrote them.

    What was said before with the same first labels is replaced in one step: a scrape never meets the gap
    between clearing and setting, which Prometheus would record as the end of the series.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = {metric.name: metric for metric in metrics if metric.kind is Kind.GAUGE}
        self._values: dict[str, dict[Labels, dict[Labels, float]]] = {name: {} for name in self._metrics}
        self._lock = threading.Lock()

    def put(self, metric: Metric, *labels: str, value: float | None) -> None:
        """Sets the one series with these labels; None takes it away."""
        self._write(metric, labels, {} if value is None else {labels: float(value)}, named=len(labels))

    def replace(self, metric: Metric, *owner: str, values: Mapping[str, float]) -> None:
        """Replaces all series whose first labels are `owner` by `values`: value by the last label."""
        series = {(*owner, last): float(value) for last, value in values.items()}
        self._write(metric, owner, series, named=len(owner) + 1)

    def rewrite(self, metric: Metric, target: str, values: Mapping[Labels, float]) -> None:
        """Replaces all series of a target by `values`: value by the labels after the target's."""
        series = {(target, *others): float(value) for others, value in values.items()}
        named = {len(labels) for labels in series} or {len(metric.labels)}
        self._write(metric, (target,), series, named=max(named))

    def forget(self, target: str) -> None:
        """Drops every series of a target."""
        with self._lock:
            for name, metric in self._metrics.items():
                if metric.labels[:1] == ("target",):
                    written = self._values[name]
                    for owner in [owner for owner in written if owner[:1] == (target,)]:
                        del written[owner]

    def _write(self, metric: Metric, owner: Labels, series: dict[Labels, float], *, named: int) -> None:
        if named != len(metric.labels):
            raise ValueError(f"{metric.name} has labels {metric.labels}, was given {named} of them: {owner}")
        with self._lock:
            self._values[metric.name][owner] = series

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The families, for the registry."""
        with self._lock:
            copied = {name: [series for series in owners.values() if series] for name, owners in self._values.items()}
        for name, metric in self._metrics.items():
            family = GaugeMetricFamily(name, metric.text, labels=metric.labels)
            for series in copied[name]:
                for labels, value in series.items():
                    family.add_metric(labels, value)
            yield family
