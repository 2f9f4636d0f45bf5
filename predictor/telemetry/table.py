"""Every metric, in one table; docs/metrics.md is made from it."""

import dataclasses
import enum

PREFIX = "floorcast_"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Kind(enum.StrEnum):
    """Prometheus's types."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: as it is exposed; counters end in _total.
        kind: its type.
        labels: names of its labels. `target` is always "namespace/name".
        unit: unit of the value.
        text: what it says, and where it helps, how to use it.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    text: str


def _gauge(name: str, labels: str, unit: str, text: str) -> Metric:
    return Metric(PREFIX + name, Kind.GAUGE, tuple(labels.split()), unit, text)


def _counter(name: str, labels: str, unit: str, text: str) -> Metric:
    return Metric(PREFIX + name, Kind.COUNTER, tuple(labels.split()), unit, text)


def _histogram(name: str, labels: str, text: str) -> Metric:
    return Metric(PREFIX + name, Kind.HISTOGRAM, tuple(labels.split()), "seconds", text)


# What is read.
SIGNAL_VALUE = _gauge("signal_value", "target signal", "of the signal", "Value of a signal; absent while unknown.")
SIGNAL_AGE = _gauge("signal_age_seconds", "target signal", "seconds", "Age of the sample the value came from.")
SIGNAL_UNKNOWN = _gauge(
    "signal_unknown",
    "target signal cause",
    "1",
    "1 while a signal is unknown, by cause; absent while known. Leave out cause not_asked in alerts: it means that no"
    " query is configured.",
)
HISTORY_LOADED = _gauge("history_loaded", "", "1", "1 once the history has been loaded; until then nothing is lowered.")
HISTORY_KNOWN = _gauge(
    "history_known_ratio", "target signal", "ratio", "Share of the history's points that were known when it was loaded."
)
HISTORY_SPAN = _gauge(
    "history_span_seconds",
    "target signal",
    "seconds",
    "From the oldest known point of the loaded history to the newest.",
)

# What is forecast and planned.
FORECAST_AVAILABLE = _gauge(
    "forecast_available", "target signal horizon", "1", "1 when there is a forecast, 0 when the history is too short."
)
FORECAST_LEVEL = _gauge("forecast_level", "target signal", "of the signal", "Present level of a signal.")
FORECAST_QUANTILE = _gauge(
    "forecast_quantile",
    "target signal horizon quantile",
    "of the signal",
    "Quantile of the largest value within the horizon. Planned for, unless there is a forecast_room.",
)
FORECAST_ROOM = _gauge(
    "forecast_room",
    "target signal horizon quantile",
    "of the signal",
    "Room kept all the time, planned for instead of forecast_quantile where that would have served better over the last"
    " day than following the forecast. Absent while the forecast is followed.",
)
FORECAST_QUALITY = _gauge(
    "forecast_quality", "target signal quality", "1", "1 for how far the forecast may be trusted, 0 for the others."
)
FORECAST_COVERAGE = _gauge(
    "forecast_coverage_ratio",
    "target signal quantile",
    "ratio",
    "Share of the last 24 h of raising forecasts, scored once their horizon has passed, in which the largest value"
    " stayed at or below the quantile: near the quantile when calibrated. Absent before the first score.",
)
FORECAST_PINBALL = _gauge(
    "forecast_pinball",
    "target signal quantile",
    "of the signal",
    "Mean pinball loss of the same forecasts: what their misses cost, lower is better.",
)
FORECAST_SCORED = _counter(
    "forecast_scored_total",
    "target signal",
    "forecasts",
    "Raising forecasts scored since the start, one every two minutes, or every four ticks of a fast slow loop.",
)
HORIZON = _gauge("horizon_seconds", "target horizon", "seconds", "How far ahead is looked before raising and lowering.")
WARM_UP = _gauge(
    "warm_up_seconds",
    "target source",
    "seconds",
    "Warm-up in use: p90 of the measured ones, or the configured one until there are enough.",
)
WARM_UPS_MEASURED = _gauge("warm_ups_measured", "target", "pods", "Warm-ups measured so far; three make a p90.")
WARM_UP_PHASE = _gauge(
    "warm_up_phase_seconds",
    "target gpu phase quantile",
    "seconds",
    "Median and p90 of a phase of the starts seen, pods still in it reckoned with: schedule, start (image), ready"
    " (weights), whole. `gpu` is what the pod selects its node by, empty where it takes any.",
)
CAPACITY = _gauge(
    "capacity_requests",
    "target source",
    "requests",
    "Requests in flight one replica is planned for, by where the figure comes from: load_test, observed (while"
    " serving), configured, or default, which is a guess.",
)
CAPACITY_OBSERVED = _gauge(
    "capacity_observed_requests",
    "target gpu bound",
    "requests",
    "Requests in flight per replica at which the objective capacity.ttft was met (highest) and missed (lowest). `gpu`"
    ' is what the pods select their nodes by, "8 x " before it where a replica takes eight.',
)
CAPACITY_CONFIDENCE = _gauge(
    "capacity_confidence_ratio",
    "target gpu",
    "ratio",
    "Share of what was seen while serving that agrees with these; from 0.8 on it is acted upon.",
)
PLAN_REPLICAS = _gauge(
    "plan_replicas", "target horizon need", "replicas", "Replicas a kind of need asks for, before any rule or limit."
)

# What is decided and done.
FLOOR_WANTED = _gauge(
    "floor_wanted_replicas", "target", "replicas", "What the plans ask for, before any rule or limit."
)
FLOOR_DECIDED = _gauge("floor_decided_replicas", "target", "replicas", "The number after the rules.")
FLOOR_OBSERVED = _gauge(
    "floor_observed_replicas", "target", "replicas", "The number that stands in the cluster: minReplicas, or replicas."
)
FLOOR_BASE = _gauge("floor_base_replicas", "target", "replicas", "The user's own minimum; never gone below.")
FLOOR_MAXIMUM = _gauge("floor_maximum_replicas", "target", "replicas", "The owner's upper bound; never gone above.")
LIMIT = _gauge(
    "limit_replicas",
    "target limit",
    "replicas",
    "Upper bounds by what sets them: maximum, GPU budget, a GPU pool, schedulable GPUs. The smallest binds.",
)
STALLED = _gauge(
    "stalled_seconds",
    "target",
    "seconds",
    "For how long requests run and none ends, once that is too long; 0 otherwise. More replicas do not help.",
)
FLOOR_MISSING = _gauge(
    "floor_missing_replicas",
    "target",
    "replicas",
    "Replicas wanted beyond the maximum. Above 0 for long: raise the maximum or shed load.",
)
REPLICAS = _gauge(
    "replicas", "target state", "replicas", "Replicas that are ready, warming, or stuck (not counted as supply)."
)
REPLICAS_STUCK = _gauge(
    "replicas_stuck",
    "target reason",
    "replicas",
    "Pods that are not Ready for far longer than starts take, by the cluster's reason: Unschedulable,"
    " ImagePullBackOff, CrashLoopBackOff, ... They do not count as supply.",
)
RECOMMENDED = _gauge(
    "recommended_replicas",
    "target",
    "replicas",
    "The number for an HPA or KEDA to scale by, where Floorcast does not write it; see docs/publishing.md. Absent while"
    " there is none that could be relied on: an old number is never told.",
)
REPLICAS_ASKED = _gauge("replicas_asked", "target", "replicas", "Replicas the workload asks for (spec.replicas).")
WORKLOAD_REFUSED = _gauge(
    "workload_refused", "target reason", "1", "1 while a workload cannot be observed, or must be left alone, by reason."
)
FLOOR_CONTESTED = _gauge(
    "floor_contested",
    "target manager",
    "1",
    "1 while a target is only advised on because a field manager keeps changing the number back; docs/ownership.md.",
)
DECISIONS = _counter("decisions_total", "target reason", "decisions", "Decisions by their reason.")
WRITES = _counter("writes_total", "target outcome", "writes", "Writes tried, written or refused.")
WRITES_REFUSED = _counter("writes_refused_total", "target reason", "writes", "Writes refused, by reason.")

# How the service itself fares.
TICK_DURATION = _histogram("tick_duration_seconds", "loop", "How long a tick took.")
TICKS = _counter("ticks_total", "loop outcome", "ticks", "Ticks finished, failed or abandoned.")
LATE_TICKS = _counter(
    "late_ticks_total", "loop", "ticks", "Ticks left out: the one before was still running, or the machine too busy."
)
LAST_TICK = _gauge(
    "last_tick_timestamp_seconds", "loop", "Unix seconds", "When the last finished tick ended; absent before the first."
)
WATCH_AGE = _gauge(
    "watch_age_seconds",
    "resource namespace",
    "seconds",
    "How old the picture of a kind of object may be at most; namespace is empty for all. Above 45 s it is not used any"
    " more: targets are refused with reason Stale.",
)
WATCH_OBJECTS = _gauge("watch_objects", "resource namespace", "objects", "Objects of a kind that are kept in memory.")
LEADER = _gauge(
    "leader",
    "",
    "1",
    "1 while this replica may write, 0 while another one does; always 1 without leader election. The sum over all"
    " replicas is 1, and 0 for the moments between two leaders.",
)
SOURCE_DURATION = _histogram(
    "source_duration_seconds", "call", "How long the signal source took: read is all signals, history one signal."
)
SOURCE_UNKNOWN = _counter(
    "source_unknown_total", "call signal cause", "calls", "Calls that left a signal of any target unknown, by cause."
)
CLUSTER_DURATION = _histogram(
    "cluster_duration_seconds", "call", "How long the API server took: observe is all targets, write and release one."
)
CLUSTER_REFUSED = _counter(
    "cluster_refused_total", "call reason", "calls", "Calls that the cluster refused for any target, by reason."
)
CONFIG_RELOADS = _counter(
    "config_reloads_total", "outcome", "reloads", "Changed configurations that were taken up, or refused."
)
CONFIG_RELOAD_SUCCESSFUL = _gauge(
    "config_reload_successful",
    "",
    "1",
    "1 while the configuration file is the one in use, 0 while it was refused and the one before it counts.",
)
CONFIG_RELOAD_TIME = _gauge(
    "config_reload_success_timestamp_seconds", "", "Unix seconds", "When the configuration in use was taken up."
)
DISCOVERED = _gauge("discovered_targets", "", "targets", "Targets found by label that are taken up.")
DISCOVERY_REFUSED = _gauge(
    "discovery_refused", "workload", "1", "1 while a workload that asks by label to be scaled cannot be; see the log."
)
COUNTERFACTUAL = _gauge(
    "counterfactual_difference",
    "target figure",
    "of the figure",
    "What Floorcast would have changed in the last 24 h of shadow mode, on the simulated fleet: missed (answers later"
    " than the objective), replica_hours, warming_hours, starts. Below 0 is less than really ran.",
)
COUNTERFACTUAL_ERROR = _gauge(
    "counterfactual_error", "target figure", "of the figure", "Half-width of the 95 % interval of the same over seeds."
)
COUNTERFACTUAL_RAN = _gauge(
    "counterfactual_baseline", "target figure", "of the figure", "The same figures of what really ran, simulated."
)
JOURNAL_LOST = _gauge(
    "journal_lost_records", "", "records", "Records of the journal that could not be written since the start."
)
MODE = _gauge("mode_info", "target mode", "1", "1 for the target's mode: shadow writes nothing.")
BUILD = _gauge("build_info", "version", "1", "1 for the version that runs.")

TABLE: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))


def document() -> str:
    """docs/metrics.md."""
    rows = "\n".join(
        f"| `{one.name}` | {one.kind} | {', '.join(one.labels) or '-'} | {one.unit} | {one.text} |" for one in TABLE
    )
    return f"""# Metrics

Made from `predictor/telemetry/table.py` by `python -m predictor.generate`; do not edit.

`target` is `namespace/name`; `signal`, `cause`, `reason`, `quality` and `need` have the values of the enumerations in
`models/`. `horizon` is `raising` (the warm-up) or `lowering` (the longer one that must agree before anything comes
down). Series of a target go away with it, and so do series of a value that is no longer known: unknown is never shown
as zero.

| name | type | labels | unit | meaning |
|---|---|---|---|---|
{rows}
"""
