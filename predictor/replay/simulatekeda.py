"""One's own ScaledObject as a policy."""

from collections.abc import Callable

from models.peers import keda, metrics, queries
from models.policy.protocol import Autoscaler
from predictor.replay import simulatehpa, simulatemanifest, simulateobjects, simulatequeries
from predictor.replay.simulatehpa import NO_CPU
from predictor.replay.simulatemanifest import SCALED_OBJECT, Manifest, Own
from predictor.replay.simulatemetrics import RefusedError

PAUSING = "autoscaling.keda.sh/paused"
REMEDIES = {
    "cpu": f"cannot be simulated: {NO_CPU}",
    "memory": f"cannot be simulated: {NO_CPU}",
    "cron": "cannot be simulated: a trace has no time of day; leave it out of a copy of the file, and compare with "
    "--policy keda-cron-day, which makes a schedule of the trace's own history",
    "external": "cannot be simulated: its numbers come from a program of its own; for Floorcast's, compare with "
    "--policy floorcast",
    "external-push": "cannot be simulated: its numbers come from a program of its own; for Floorcast's, compare with "
    "--policy floorcast",
    "": "cannot be simulated: a prometheus trigger on the engine's or the gateway's metrics can; write it as one in a "
    "copy of the file",
}


def policy(given: Manifest) -> Own:
    """The policy of a ScaledObject."""
    for annotation in given.annotations:
        if str(annotation).startswith(PAUSING):
            raise given.refused(
                f"metadata.annotations[{annotation}]",
                "a paused object does nothing; leave it out of a copy of the file, or give --policy static=N",
            )
    spec = given.spec(simulateobjects.ScaledObjectSpec)
    _check(given, spec)
    bounds = spec.min_replica_count, spec.max_replica_count
    return simulatemanifest.own(given, SCALED_OBJECT, _keda(given, spec), bounds)


def _check(given: Manifest, spec: simulateobjects.ScaledObjectSpec) -> None:
    least, idle = spec.min_replica_count, spec.idle_replica_count
    simulatemanifest.ordered(given, ("minReplicaCount", least), ("maxReplicaCount", spec.max_replica_count))
    if idle is not None and idle >= least:
        raise given.refused("spec.idleReplicaCount", f"{idle} must be below minReplicaCount, {least}")
    if spec.advanced.scaling_modifiers:
        raise given.refused(
            "spec.advanced.scalingModifiers",
            "formulas over triggers are not simulated; leave the section out of a copy of the file, with the formula "
            "as the query of one trigger",
        )
    if spec.initial_cooldown_period:
        given.note("spec.initialCooldownPeriod", "is over when the simulated time begins")


def _keda(given: Manifest, spec: simulateobjects.ScaledObjectSpec) -> Callable[[], Autoscaler]:
    fallback = spec.fallback
    replaced = (
        None if fallback is None else keda.Fallback(fallback.replicas, fallback.failure_threshold, fallback.behavior)
    )
    triggers = [_trigger(given, one, f"spec.triggers[{i}]") for i, one in enumerate(spec.triggers)]

    def make() -> Autoscaler:
        return keda.Keda(
            keda.KedaSettings(
                tuple(one() for one in triggers),
                polling=float(spec.polling_interval),
                cooldown=float(spec.cooldown_period),
                idle=spec.idle_replica_count,
                fallback=replaced,
                rules=simulatehpa.rules(spec.advanced.horizontal_pod_autoscaler_config.behavior),
            )
        )

    return make


def _trigger(given: Manifest, one: simulateobjects.Trigger, place: str) -> Callable[[], queries.Trigger]:
    """How to make it: a query remembers its window, so each run needs its own."""
    if one.type != "prometheus":
        raise given.refused(f"{place}.type", f"{one.type!r} {REMEDIES.get(one.type, REMEDIES[''])}")
    if one.metric_type == "Utilization":
        raise given.refused(f"{place}.metricType", "Utilization: is for cpu and memory; write AverageValue or Value")
    if one.use_cached_metrics:
        given.note(f"{place}.useCachedMetrics", "is not simulated: every sync of the HPA asks anew")
    known = given.part(simulateobjects.PrometheusMetadata, one.metadata, (place, "metadata"))
    try:
        for doubt in simulatequeries.read(known.query).doubts:
            given.note(f"{place}.metadata.query", doubt)
    except RefusedError as error:
        raise given.refused(f"{place}.metadata.query", str(error)) from None

    def make() -> queries.Trigger:
        return queries.Trigger(
            simulatequeries.read(known.query).query,
            known.threshold,
            known.activation_threshold,
            metrics.Kind(one.metric_type),
            known.ignore_null_values,
        )

    return make
