"""One's own HorizontalPodAutoscaler as a policy."""

from models.peers import behavior, metrics, queries
from models.peers.hpa import Hpa, HpaSettings
from models.signals import Signal
from predictor.replay import simulatemanifest, simulatemetrics, simulateobjects, simulatequeries
from predictor.replay.simulatemanifest import HPA, SCALED_OBJECT, Manifest, Own
from predictor.replay.simulatemetrics import RefusedError

NO_CPU = (
    "the simulated fleet has no CPU or memory, which say little of a model server's load; leave the entry out "
    "of a copy of the file, or use a metric of the engine such as vllm:num_requests_waiting"
)


def policy(given: Manifest) -> Own:
    """The policy of a HorizontalPodAutoscaler."""
    spec = given.spec(simulateobjects.HpaSpec)
    simulatemanifest.ordered(given, ("minReplicas", spec.min_replicas), ("maxReplicas", spec.max_replicas))
    if not spec.metrics:
        raise given.refused("spec.metrics", f"is missing, which means the CPU at 80 %: {NO_CPU}")
    several = tuple(_metric(given, one, f"spec.metrics[{i}]") for i, one in enumerate(spec.metrics))
    settings = HpaSettings(rules=rules(spec.behavior), several=several)
    return simulatemanifest.own(given, HPA, lambda: Hpa(settings), (spec.min_replicas, spec.max_replicas))


def _metric(given: Manifest, one: simulateobjects.HpaMetric, place: str) -> metrics.Metric:
    if one.type in {"Resource", "ContainerResource"}:
        name = (one.resource or one.container_resource or {}).get("name", "")
        raise given.refused(f"{place}.type", f"{one.type} {name}".strip() + f": {NO_CPU}")
    field = one.type.lower()
    measured: simulateobjects.Measured | None = getattr(one, field)
    if measured is None:
        raise given.refused(f"{place}.{field}", f"is missing, and type is {one.type}")
    signal = _signal(given, measured.metric, f"{place}.{field}.metric")
    target = measured.target
    if one.type == "Pods":
        if target.type is not metrics.Kind.AVERAGE:
            raise given.refused(f"{place}.pods.target.type", f"{target.type}: a Pods metric has an AverageValue")
        return metrics.PerPod((signal,), target.aimed)
    what = "is taken as the sum over the pods, as adapters make it by default"
    given.note(f"{place}.{field}.metric.name", what, doubtful=signal is Signal.KV_USAGE)
    return queries.External(queries.Gauges((signal,)), target.aimed, target.type)


def _signal(given: Manifest, metric: simulateobjects.MetricName, place: str) -> Signal:
    if metric.name.startswith(("s0-", "s1-", "s2-", "s3-")):
        raise given.refused(
            f"{place}.name",
            f"{metric.name!r} is KEDA's name of a trigger: give the {SCALED_OBJECT.name}, which has the query",
        )
    for label in metric.selector.labels:
        if not simulatequeries.tells_whose(label):
            raise given.refused(
                f"{place}.selector", f"{label!r} picks some of the requests, which are all alike here; leave it out"
            )
    try:
        return simulatemetrics.gauge(metric.name)
    except RefusedError as error:
        raise given.refused(f"{place}.name", str(error)) from None


def rules(given: simulateobjects.Behavior | None) -> behavior.Behavior | None:
    """With the defaults that the API server fills in where the section is present."""
    if given is None:
        return None
    usual = behavior.Behavior()
    return behavior.Behavior(up=_direction(given.scale_up, usual.up), down=_direction(given.scale_down, usual.down))


def _direction(given: simulateobjects.Direction | None, usual: behavior.Direction) -> behavior.Direction:
    if given is None:
        return usual
    window, policies = given.stabilization_window_seconds, given.policies
    return behavior.Direction(
        window=usual.window if window is None else float(window),
        policies=usual.policies if policies is None else tuple(
            behavior.Policy(one.type, one.value, float(one.period_seconds)) for one in policies
        ),
        select=given.select_policy,
        tolerance=given.tolerance,
    )  # fmt: skip
