"""What the loops and adapters tell, as metrics; the names stand in `table`."""

import collections
import importlib.metadata
from collections.abc import Iterable, Mapping

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.process_collector import ProcessCollector

from models.capacity import sizing
from models.forecasting.forecast import Forecast, Outlook, Quality
from models.policy.decision import Decision, Reason
from models.series import Series
from models.signals import Cause, Known, Signal, Unknown
from predictor.board import Entry, Plans
from predictor.cluster import watching
from predictor.grading import Grade
from predictor.ports import Readings, Refused, Workload, Written
from predictor.targets import Mode, Target
from predictor.telemetry import table
from predictor.telemetry.slate import Slate


class Metrics:
    """All of `table.TABLE` on a registry of its own. Safe to call from several threads."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody reads
        self.registry = CollectorRegistry()
        self._slate = Slate(table.TABLE)
        self.registry.register(self._slate)
        ProcessCollector(registry=self.registry)
        self._counters = {
            one.name: Counter(one.name, one.text, one.labels, registry=self.registry)
            for one in table.TABLE
            if one.kind is table.Kind.COUNTER
        }
        self._histograms = {
            one.name: Histogram(one.name, one.text, one.labels, registry=self.registry, buckets=table.SECONDS)
            for one in table.TABLE
            if one.kind is table.Kind.HISTOGRAM
        }
        self._targets: set[str] = set()
        self._watched: set[str] = set()
        self._slate.replace(table.BUILD, values={importlib.metadata.version("floorcast"): 1})
        self.history_loaded(complete=False)

    def targets(self, targets: Iterable[Target]) -> None:
        """The targets there are now; series of others go away."""
        present = {target.key: target for target in targets}
        for key in self._targets - present.keys():
            self._forget(key)
        self._targets = set(present)
        for key, target in present.items():
            self._slate.replace(table.MODE, key, values={target.mode: 1})

    # ------------------------------------------------------------------------------------------ what the loops tell

    def tick(self, loop: str, *, seconds: float, outcome: str, at: float) -> None:
        """One pass of a loop ended, at the Unix time `at`; `outcome` "finished", "failed" or "abandoned"."""
        self._histograms[table.TICK_DURATION.name].labels(loop).observe(seconds)
        self._count(table.TICKS, loop, outcome)
        if outcome == "finished":
            self._slate.put(table.LAST_TICK, loop, value=at)

    def late(self, loop: str) -> None:
        """A tick was left out because the one before was still running."""
        self._count(table.LATE_TICKS, loop)

    def readings(self, target: Target, readings: Readings, *, now: float) -> None:
        """What a look gave."""
        for signal, reading in readings.items():
            age = max(now - reading.at, 0.0) if isinstance(reading, Known) else None
            unknown = {str(reading.cause): 1.0} if isinstance(reading, Unknown) else {}
            self._slate.put(
                table.SIGNAL_VALUE, target.key, signal, value=reading.value if isinstance(reading, Known) else None
            )
            self._slate.put(table.SIGNAL_AGE, target.key, signal, value=age)
            self._slate.replace(table.SIGNAL_UNKNOWN, target.key, signal, values=unknown)

    def workload(self, target: Target, workload: Workload | Refused) -> None:
        """The state in the cluster, or why it cannot be had; then the figures go."""
        refused = workload if isinstance(workload, Refused) else _left_alone(target, workload)
        self._slate.replace(table.WORKLOAD_REFUSED, target.key, values={refused.reason: 1.0} if refused else {})
        rival = workload.rival if isinstance(workload, Workload) else ""
        self._slate.replace(table.FLOOR_CONTESTED, target.key, values={rival: 1.0} if rival else {})
        for metric, value in _figures(workload).items():
            self._slate.put(metric, target.key, value=value)
        self._slate.replace(table.REPLICAS, target.key, values=_states(workload))
        self._slate.replace(table.REPLICAS_STUCK, target.key, values=_stuck(workload))
        self._slate.rewrite(table.WARM_UP_PHASE, target.key, _phases(workload))
        if isinstance(workload, Refused):  # no decision is made either
            for metric in (table.FLOOR_WANTED, table.FLOOR_DECIDED, table.FLOOR_MISSING):
                self._slate.put(metric, target.key, value=None)

    def plans(self, target: Target, plans: Plans) -> None:
        """Forecasts and plans of a slow tick."""
        ahead = plans.horizons
        self._slate.replace(table.HORIZON, target.key, values={"raising": ahead.raising, "lowering": ahead.lowering})
        for signal, (raising, lowering) in plans.outlooks.items():
            self._level(target, signal, raising)
            self._outlook(target, signal, raising, horizon="raising")
            self._outlook(target, signal, lowering, horizon="lowering")
            self._grade(target, signal, plans.grades.get(signal))
        self._plan(target, plans.raising, horizon="raising")
        self._plan(target, plans.lowering, horizon="lowering")

    def warm_up(self, target: Target, seconds: float, *, measured: bool) -> None:
        """The warm-up in use, and whether it was measured."""
        source = "measured" if measured else "configured"
        self._slate.replace(table.WARM_UP, target.key, values={source: seconds})

    def decision(self, target: Target, decision: Decision) -> None:
        """A decision."""
        self._count(table.DECISIONS, target.key, decision.reason)
        capped = decision.reason is Reason.CAPPED_AT_MAXIMUM
        missing = (decision.wanted or 0) - decision.replicas if capped else 0
        self._slate.put(table.FLOOR_WANTED, target.key, value=decision.wanted)
        self._slate.put(table.FLOOR_DECIDED, target.key, value=decision.replicas)
        self._slate.put(table.FLOOR_MISSING, target.key, value=max(missing, 0))

    def row(self, entry: Entry) -> None:
        """What one replica is planned for, the limits, and whether the engines are stalled."""
        key, chosen = entry.target.key, entry.capacity
        self._slate.replace(table.CAPACITY, key, values={chosen.source: chosen.profile.concurrency} if chosen else {})
        seen = {gpu: observer.observed() for gpu, observer in entry.observers.items()}
        bounds: dict[tuple[str, ...], float] = {
            (gpu, bound): load
            for gpu, one in seen.items()
            for bound, load in (("met", one.met), ("missed", one.missed))
            if load is not None
        }
        self._slate.rewrite(table.CAPACITY_OBSERVED, key, bounds)
        confidences = {gpu: one.confidence for gpu, one in seen.items() if one.windows}
        self._slate.replace(table.CAPACITY_CONFIDENCE, key, values=confidences)
        self._slate.replace(table.LIMIT, key, values={one.name: one.replicas for one in entry.limits})
        self._slate.put(table.STALLED, key, value=entry.stalled)

    def counterfactual(self, key: str, found: Mapping[str, Mapping[str, Mapping[str, float]]] | None) -> None:
        """What Floorcast would have changed, as `floorcast counterfactual --json` says it; None when not known."""
        ran, difference = (found[name] if found else {} for name in ("ran", "difference"))
        shown = [name for name in difference if name != "cost"]  # a price is the reader's
        for metric, figures, part in (
            (table.COUNTERFACTUAL, difference, "mean"),
            (table.COUNTERFACTUAL_ERROR, difference, "error"),
            (table.COUNTERFACTUAL_RAN, ran, "mean"),
        ):
            self._slate.replace(metric, key, values={name: figures[name][part] for name in shown})

    def journal(self, *, lost: int) -> None:
        """How many records of the journal were lost."""
        self._slate.put(table.JOURNAL_LOST, value=lost)

    def write(self, target: Target, outcome: Written | Refused) -> None:
        """A write was tried."""
        self._count(table.WRITES, target.key, "written" if isinstance(outcome, Written) else "refused")
        if isinstance(outcome, Refused):
            self._count(table.WRITES_REFUSED, target.key, outcome.reason)

    def configuration(self, *, at: float) -> None:
        """The configuration in use was taken up, at the Unix time `at`."""
        self._slate.put(table.CONFIG_RELOAD_SUCCESSFUL, value=1)
        self._slate.put(table.CONFIG_RELOAD_TIME, value=at)

    def configuration_changed(self, *, refused: bool, at: float) -> None:
        """The configuration file changed, and was taken up at the Unix time `at`, or refused."""
        self._count(table.CONFIG_RELOADS, "refused" if refused else "taken_up")
        if refused:
            self._slate.put(table.CONFIG_RELOAD_SUCCESSFUL, value=0)
        else:
            self.configuration(at=at)

    def discovered(self, count: int, *, refused: Iterable[str]) -> None:
        """So many targets were found by label; `refused` are the keys of those that cannot be used."""
        self._slate.put(table.DISCOVERED, value=count)
        self._slate.replace(table.DISCOVERY_REFUSED, values=dict.fromkeys(refused, 1.0))

    # --------------------------------------------------------------------------------------- what the adapters tell

    def watches(self, reports: Iterable[watching.Report]) -> None:
        """How the watches fare."""
        ages: dict[str, dict[str, float]] = {}
        counts: dict[str, dict[str, float]] = {}
        for one in reports:
            resource, namespace = one.what.resource.rule_name, one.what.namespace
            counts.setdefault(resource, {})[namespace] = one.objects
            if one.age is not None:
                ages.setdefault(resource, {})[namespace] = one.age
        for resource in self._watched | counts.keys():
            self._slate.replace(table.WATCH_AGE, resource, values=ages.get(resource, {}))
            self._slate.replace(table.WATCH_OBJECTS, resource, values=counts.get(resource, {}))
        self._watched |= counts.keys()

    def recommended(self, key: str, replicas: int | None) -> None:
        """The number of a target for others to scale by; None where there is none to rely on."""
        self._slate.put(table.RECOMMENDED, key, value=replicas)

    def leader(self, *, leads: bool) -> None:
        """Whether this replica may write."""
        self._slate.put(table.LEADER, value=float(leads))

    def history_loaded(self, *, complete: bool) -> None:
        """Whether the history has been loaded."""
        self._slate.put(table.HISTORY_LOADED, value=float(complete))

    def history(self, target: Target, signal: Signal, series: Series) -> None:
        """How much of a signal's past is known."""
        known = np.flatnonzero(~np.isnan(series.values))
        span = float(known[-1] - known[0]) * series.step if len(known) else 0.0
        self._slate.put(table.HISTORY_KNOWN, target.key, signal, value=len(known) / max(len(series), 1))
        self._slate.put(table.HISTORY_SPAN, target.key, signal, value=span)

    def source_call(self, call: str, *, seconds: float, unknown: Iterable[tuple[Signal, Cause]]) -> None:
        """The signal source was asked ("read", "history"); `unknown` is what it left unknown, of any target."""
        self._histograms[table.SOURCE_DURATION.name].labels(call).observe(seconds)
        for signal, cause in set(unknown):
            self._count(table.SOURCE_UNKNOWN, call, signal, cause)

    def cluster_call(self, call: str, *, seconds: float, refused: Iterable[Refused]) -> None:
        """The cluster was asked ("observe", "write", "release"); `refused` is what it refused, of any target."""
        self._histograms[table.CLUSTER_DURATION.name].labels(call).observe(seconds)
        for reason in {one.reason for one in refused}:
            self._count(table.CLUSTER_REFUSED, call, reason)

    # -------------------------------------------------------------------------------------------------------- parts

    def _count(self, metric: table.Metric, *labels: str, by: int = 1) -> None:
        self._counters[metric.name].labels(*labels).inc(by)

    def _forget(self, key: str) -> None:
        self._slate.forget(key)
        for metric in table.TABLE:
            if metric.kind is table.Kind.COUNTER and "target" in metric.labels:
                self._counters[metric.name].remove_by_labels({"target": key})

    def _plan(self, target: Target, planned: sizing.Planned, *, horizon: str) -> None:
        needs = planned.needs if isinstance(planned, sizing.Plan) else ()
        values: Mapping[str, float] = {need.kind: need.replicas for need in needs}
        self._slate.replace(table.PLAN_REPLICAS, target.key, horizon, values=values)

    def _outlook(self, target: Target, signal: Signal, outlook: Outlook, *, horizon: str) -> None:
        quantiles, steady = (outlook.quantiles, outlook.steady) if isinstance(outlook, Forecast) else ({}, {})
        for metric, values in ((table.FORECAST_QUANTILE, quantiles), (table.FORECAST_ROOM, steady)):
            named = {f"{q:g}": value for q, value in values.items()}
            self._slate.replace(metric, target.key, signal, horizon, values=named)
        self._slate.put(table.FORECAST_AVAILABLE, target.key, signal, horizon, value=float(bool(quantiles)))

    def _grade(self, target: Target, signal: Signal, grade: Grade | None) -> None:
        by_metric = {
            table.FORECAST_COVERAGE: grade.coverage if grade else {},
            table.FORECAST_PINBALL: grade.pinball if grade else {},
        }
        for metric, values in by_metric.items():
            named = {f"{q:g}": value for q, value in values.items()}
            self._slate.replace(metric, target.key, signal, values=named)
        self._count(table.FORECAST_SCORED, target.key, signal, by=grade.fresh if grade else 0)

    def _level(self, target: Target, signal: Signal, outlook: Outlook) -> None:
        level = outlook.level if isinstance(outlook, Forecast) else None
        qualities = {str(q): float(q is outlook.quality) for q in Quality} if isinstance(outlook, Forecast) else {}
        self._slate.put(table.FORECAST_LEVEL, target.key, signal, value=level)
        self._slate.replace(table.FORECAST_QUALITY, target.key, signal, values=qualities)


def _left_alone(target: Target, workload: Workload) -> Refused | None:
    """Why a target that is to be controlled is only advised on."""
    return workload.advice if target.mode is Mode.CONTROL else None


def _figures(workload: Workload | Refused) -> Mapping[table.Metric, float | None]:
    """The single figures of a workload, None each when it cannot be had."""
    known = workload if isinstance(workload, Workload) else None
    return {
        table.REPLICAS_ASKED: known.replicas if known else None,
        table.FLOOR_OBSERVED: known.standing if known else None,
        table.FLOOR_BASE: known.base if known else None,
        table.FLOOR_MAXIMUM: known.maximum if known else None,
        table.WARM_UPS_MEASURED: known.warm_up.measured if known and known.warm_up else None,
    }


def _stuck(workload: Workload | Refused) -> Mapping[str, float]:
    return {} if isinstance(workload, Refused) else collections.Counter(one.reason for one in workload.stuck)


def _phases(workload: Workload | Refused) -> Mapping[tuple[str, ...], float]:
    usual = workload.warm_up if isinstance(workload, Workload) else None
    return {
        (one.gpu, str(one.phase), quantile): seconds
        for one in (usual.spreads if usual else ())
        for quantile, seconds in (("0.5", one.median), ("0.9", one.p90))
    }


def _states(workload: Workload | Refused) -> Mapping[str, float]:
    if isinstance(workload, Refused):
        return {}
    supply = workload.supply
    return {"ready": supply.ready, "warming": supply.warming, "stuck": supply.stuck}
