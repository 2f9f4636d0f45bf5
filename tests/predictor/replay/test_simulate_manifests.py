"""One's own HorizontalPodAutoscaler or ScaledObject in `floorcast simulate`: as it stands in its manifest."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.fleet import profiles
from models.peers.behavior import Behavior, Direction, Policy, PolicyKind, Select
from models.peers.hpa import Hpa
from models.peers.keda import Fallback, FallbackBehavior, Keda
from models.peers.metrics import Kind, PerPod, Tolerance
from models.peers.queries import External, Gauges, Trigger
from models.signals import Signal
from predictor.errors import ConfigurationError
from predictor.replay import simulate, simulateload, simulatemanifests, simulateruns
from predictor.replay.simulate import Asked
from predictor.replay.simulateruns import Question

HPA = yaml.safe_load("""
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: llama
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}
  minReplicas: 2
  maxReplicas: 12
  metrics:
    - type: Pods
      pods:
        metric: {name: vllm_num_requests_waiting, selector: {matchLabels: {model_name: llama}}}
        target: {type: AverageValue, averageValue: "2"}
    - type: External
      external:
        metric: {name: "vllm:kv_cache_usage_perc"}
        target: {type: AverageValue, averageValue: 700m}
    - type: Object
      object:
        describedObject: {apiVersion: v1, kind: Service, name: llama}
        metric: {name: sglang_num_running_reqs}
        target: {type: Value, value: 2k}
  behavior:
    scaleUp:
      policies: [{type: Pods, value: 2, periodSeconds: 60}]
      tolerance: 50m
    scaleDown:
      stabilizationWindowSeconds: 600
      selectPolicy: Min
status: {currentReplicas: 3}
""")
KEDA = yaml.safe_load("""
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llama}
spec:
  scaleTargetRef: {name: llama}
  minReplicaCount: 2
  maxReplicaCount: 9
  idleReplicaCount: 0
  pollingInterval: 15
  cooldownPeriod: 360
  fallback: {failureThreshold: 4, replicas: 5, behavior: currentReplicasIfHigher}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleDown: {policies: [{type: Percent, value: 10, periodSeconds: 120}], selectPolicy: Disabled}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: sum(vllm:num_requests_running + vllm:num_requests_waiting)
        threshold: "20"
        activationThreshold: "3"
        ignoreNullValues: "false"
    - type: prometheus
      metricType: Value
      metadata: {serverAddress: http://prometheus:9090, query: avg(vllm:kv_cache_usage_perc), threshold: "0.7"}
""")
Change = Callable[[dict[str, Any]], object]


def written(folder: Path, *objects: object, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects))
    return path


def changed(original: dict[str, Any], change: Change) -> dict[str, Any]:
    copied = copy.deepcopy(original)
    change(copied)
    return copied


def test_an_hpa_is_taken_field_by_field(tmp_path: Path) -> None:
    (own,) = simulatemanifests.read([written(tmp_path, HPA)])
    assert (own.name, own.minimum, own.maximum) == ("hpa/llama", 2, 12)
    assert own.knob == "HorizontalPodAutoscaler in mine.yaml, 2 to 12 replicas"
    rule = own.make()
    assert isinstance(rule, Hpa)
    assert rule.settings.several == (
        PerPod((Signal.WAITING,), 2.0),
        External(Gauges((Signal.KV_USAGE,)), 0.7),
        External(Gauges((Signal.IN_FLIGHT,)), 2000.0, Kind.VALUE),
    )
    # What the section leaves out is as the API server fills it in.
    up = Direction(0.0, (Policy(PolicyKind.PODS, 2, 60.0),), tolerance=0.05)
    assert rule.settings.rules == Behavior(up, Direction(600.0, (Policy(PolicyKind.PERCENT, 100),), Select.MIN))
    assert rule.settings.tolerances == Tolerance(up=0.05, down=0.1)
    assert own.make() is not rule


def test_an_hpa_without_behavior_has_none_and_a_minimum_of_one(tmp_path: Path) -> None:
    plain = changed(HPA, lambda one: (one["spec"].pop("behavior"), one["spec"].pop("minReplicas")))
    (own,) = simulatemanifests.read([written(tmp_path, plain)])
    rule = own.make()
    assert isinstance(rule, Hpa)
    assert (own.minimum, rule.settings.rules) == (1, None)


def test_a_scaled_object_is_taken_field_by_field(tmp_path: Path) -> None:
    (own,) = simulatemanifests.read([written(tmp_path, KEDA)])
    assert (own.name, own.minimum, own.maximum) == ("keda/llama", 2, 9)
    rule = own.make()
    assert isinstance(rule, Keda)
    settings = rule.settings
    assert (settings.polling, settings.cooldown, settings.idle) == (15.0, 360.0, 0)
    assert settings.fallback == Fallback(5, 4, FallbackBehavior.IF_HIGHER)
    down = Direction(300.0, (Policy(PolicyKind.PERCENT, 10, 120.0),), Select.DISABLED)
    assert settings.rules == Behavior(down=down)
    load, kv = settings.triggers
    assert load == Trigger(Gauges((Signal.IN_FLIGHT, Signal.WAITING)), 20.0, 3.0, Kind.AVERAGE, False)  # noqa: FBT003
    assert (kv.threshold, kv.activation, kv.kind) == (0.7, 0.0, Kind.VALUE)


def test_what_a_scaled_object_leaves_out_is_kedas_default(tmp_path: Path) -> None:
    spec = {"scaleTargetRef": {"name": "a"}, "triggers": [KEDA["spec"]["triggers"][1]]}
    (own,) = simulatemanifests.read([written(tmp_path, {**KEDA, "spec": spec})])
    rule = own.make()
    assert isinstance(rule, Keda)
    assert (own.minimum, own.maximum) == (0, 100)
    settings = rule.settings
    assert (settings.polling, settings.cooldown, settings.idle, settings.fallback, settings.rules) == (
        30.0, 300.0, None, None, None,
    )  # fmt: skip


def test_a_null_is_a_field_that_is_not_there(tmp_path: Path) -> None:
    nulls = changed(KEDA, spec(advanced=None, fallback=None, pollingInterval=None, idleReplicaCount=None))
    rule = simulatemanifests.read([written(tmp_path, nulls)])[0].make()
    assert isinstance(rule, Keda)
    assert (rule.settings.polling, rule.settings.rules, rule.settings.fallback) == (30.0, None, None)


def test_a_file_may_hold_several_a_list_and_other_objects(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [KEDA, {"kind": "Service"}]}
    found = simulatemanifests.read([written(tmp_path, {"kind": "Deployment"}, HPA, listed)])
    assert [one.name for one in found] == ["hpa/llama", "keda/llama"]


def test_two_versions_of_an_object_are_told_apart_by_their_files(tmp_path: Path) -> None:
    files = [written(tmp_path, HPA, name="before.yaml"), written(tmp_path, HPA, name="after.yaml")]
    assert [one.name for one in simulatemanifests.read(files)] == ["hpa/llama (before)", "hpa/llama (after)"]
    with pytest.raises(ConfigurationError, match=r"two objects are 'hpa/llama \(mine\)'; give one of them another"):
        simulatemanifests.read([written(tmp_path, HPA, HPA)])


def test_what_is_simulated_otherwise_than_a_cluster_does_it_is_noted(tmp_path: Path) -> None:
    def change(one: dict[str, Any]) -> None:
        one["spec"]["initialCooldownPeriod"] = 60
        one["spec"]["triggers"][0]["useCachedMetrics"] = True
        one["spec"]["triggers"][1]["metadata"]["query"] = "sum(rate(istio_requests_total[5m]))"

    (own,) = simulatemanifests.read([written(tmp_path, changed(KEDA, change))])
    assert [(note.where, note.doubtful) for note in own.notes] == [
        ("mine.yaml: spec.initialCooldownPeriod", True),
        ("mine.yaml: spec.triggers[0].useCachedMetrics", True),
        ("mine.yaml: spec.triggers[1].metadata.query", True),
    ]
    (own,) = simulatemanifests.read([written(tmp_path, HPA)])
    assert [(note.where, note.doubtful) for note in own.notes] == [
        ("mine.yaml: spec.metrics[1].external.metric.name", True),  # a sum of shares, where a mean may be meant
        ("mine.yaml: spec.metrics[2].object.metric.name", False),
    ]


def spec(**fields: object) -> Change:
    return lambda one: one["spec"].update(fields)


def first(**fields: object) -> Change:
    return lambda one: one["spec"]["metrics"][0]["pods"].update(fields)


def up(**fields: object) -> Change:
    return lambda one: one["spec"]["behavior"]["scaleUp"].update(fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spec(minReplicas=13), "spec.minReplicas: 13 must not be above maxReplicas, 12"),
        (spec(minReplicas=-1), "spec.minReplicas: -1 must be 0 or more"),
        (spec(maxReplicas="12"), "spec.maxReplicas: '12': input should be a valid integer"),
        (lambda one: one["spec"].pop("maxReplicas"), "spec.maxReplicas: is missing; add it"),
        (lambda one: one.pop("spec"), "spec: None: input should be a valid dictionary"),
        (spec(metrics=[]), "spec.metrics: is missing, which means the CPU at 80 %: the simulated fleet has no CPU"),
        (
            spec(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {}}}]),
            r"spec.metrics\[0\].type: Resource cpu: the simulated fleet has no CPU or memory, .* leave the entry out",
        ),
        (spec(metrics=[{"type": "Pods"}]), r"spec.metrics\[0\].pods: is missing, and type is Pods"),
        (spec(metrics=[{"type": "Guess"}]), r"spec.metrics\[0\].type: 'Guess': input should be 'External'"),
        (spec(minReplica=3), r"spec.minReplica: is no field that can be simulated \(did you mean minReplicas\?\)"),
        (first(metric={"name": "my_queue"}), r"spec.metrics\[0\].pods.metric.name: the metric 'my_queue' is none that"),
        (first(metric={"name": "s0-prometheus"}), "'s0-prometheus' is KEDA's name of a trigger: give the ScaledObject"),
        (
            first(metric={"name": "vllm:num_requests_waiting", "selector": {"matchLabels": {"tenant": "a"}}}),
            r"spec.metrics\[0\].pods.metric.selector: 'tenant' picks some of the requests",
        ),
        (first(target={"type": "Value", "value": "2"}), r"pods.target.type: Value: a Pods metric has an AverageValue"),
        (first(target={"type": "AverageValue", "value": "2"}), "must have averageValue, and no other, with this type"),
        (first(target={"type": "AverageValue", "averageValue": "70%"}), "'70%': must be a quantity, as 20, 500m"),
        (first(target={"type": "AverageValue", "averageValue": 0}), "averageValue: 0: must be above 0"),
        (first(target={"type": "AverageValue", "averageValue": True}), "averageValue: True: must be a quantity"),
        (up(policies=[]), "spec.behavior.scaleUp.policies: is empty; it needs one entry at least"),
        (
            up(policies=[{"type": "Pods", "value": 0, "periodSeconds": 1801}]),
            r"policies\[0\].value: 0 must be 1 or more\n.*policies\[0\].periodSeconds: 1801 must be 1800 or less$",
        ),
        (up(stabilizationWindowSeconds=3601), "stabilizationWindowSeconds: 3601 must be 3600 or less"),
        (up(selectPolicy="Least"), "scaleUp.selectPolicy: 'Least': input should be 'Max', 'Min' or 'Disabled'"),
        (up(stabilisationWindowSeconds=0), r"did you mean stabilizationWindowSeconds\?"),
        (lambda one: one.update(apiVersion="autoscaling/v1"), "apiVersion: 'autoscaling/v1' must be autoscaling/v2; a"),
    ],
)  # fmt: skip
def test_what_an_hpa_has_that_cannot_be_simulated_is_named_with_its_remedy(
    change: Change, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=f"mine.yaml: .*{message}"):
        simulatemanifests.read([written(tmp_path, changed(HPA, change))])


def trigger(**fields: object) -> Change:
    return lambda one: one["spec"]["triggers"][0].update(fields)


def metadata(**fields: object) -> Change:
    return lambda one: one["spec"]["triggers"][0]["metadata"].update(fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spec(minReplicaCount=10), "spec.minReplicaCount: 10 must not be above maxReplicaCount, 9"),
        (spec(idleReplicaCount=2), "spec.idleReplicaCount: 2 must be below minReplicaCount, 2"),
        (spec(pollingInterval=0), "spec.pollingInterval: 0 must be 1 or more"),
        (spec(triggers=[]), "spec.triggers: is empty; it needs one entry at least"),
        (spec(advanced={"scalingModifiers": {"formula": "a"}}), "scalingModifiers: formulas over triggers are not sim"),
        (spec(fallback={"failureThreshold": 3}), "spec.fallback.replicas: is missing; add it"),
        (trigger(type="cpu"), r"spec.triggers\[0\].type: 'cpu' cannot be simulated: the simulated fleet has no CPU"),
        (trigger(type="cron"), "'cron' cannot be simulated: a trace has no time of day; .*--policy keda-cron-day"),
        (trigger(type="external"), "'external' cannot be simulated: .*--policy floorcast"),
        (trigger(type="kafka"), "'kafka' cannot be simulated: a prometheus trigger on"),
        (trigger(metricType="Utilization"), r"triggers\[0\].metricType: Utilization: is for cpu and memory"),
        (metadata(threshold=20), r"metadata.threshold: 20 must be a text, as the API server demands: put it in quotes"),
        (metadata(threshold="many"), r"spec.triggers\[0\].metadata.threshold: 'many': must be a quantity"),
        (
            metadata(thresholds="5"),
            r"metadata.thresholds: is no field that can be simulated \(did you mean threshold\?\)",
        ),
        (
            metadata(query="sum(my_queue)"),
            r"spec.triggers\[0\].metadata.query: the query is not understood at 'my_queue'",
        ),
        (
            lambda one: one["metadata"].update(annotations={"autoscaling.keda.sh/paused": "true"}),
            "a paused object does",
        ),
        (lambda one: one.update(apiVersion="keda.sh/v2"), "apiVersion: 'keda.sh/v2' must be keda.sh/v1alpha1$"),
    ],
)
def test_what_a_scaled_object_has_that_cannot_be_simulated_is_named_with_its_remedy(
    change: Change, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=f"mine.yaml: .*{message}"):
        simulatemanifests.read([written(tmp_path, changed(KEDA, change))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; --hpa takes a HorizontalPodAutoscaler or a ScaledObject"),
        ("kind: Deployment", "has only Deployment; --hpa takes"),
        ("[1, 2]", "is no Kubernetes object; --hpa takes"),
        ("kind: {{ .Values.kind }}", ":1:"),  # of a chart
        ("kind: a\nkind: b", ":2:1: the key 'kind' is given twice; keep one of them"),
    ],
)
def test_a_file_without_such_an_object_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"mine.yaml:? ?{message}"):
        simulatemanifests.read([path])


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: cannot be read: No such file"):
        simulatemanifests.read([tmp_path / "nowhere.yaml"])
    (tmp_path / "latin.yaml").write_bytes(b"kind: \xe4")
    with pytest.raises(ConfigurationError, match=r"latin.yaml: byte \d+ is not UTF-8; save the file as UTF-8"):
        simulatemanifests.read([tmp_path / "latin.yaml"])


def test_each_own_policy_runs_between_its_own_bounds_beside_floorcast(tmp_path: Path) -> None:
    low = changed(HPA, spec(minReplicas=1, maxReplicas=2))
    own = simulatemanifests.read([written(tmp_path, low, KEDA)])
    load = simulateload.generated("rate=5,days=0.2,day=0,surge=20m:2:10m", hours=0.5, seed=1)
    question = Question(
        profile=profiles.LLAMA_8B_RTX4090, warm_up=(120.0, 120.0), objective=2.0, own=own, minimum=1, maximum=5, sweep=1
    )
    found = simulateruns.run(load, question, tell=lambda *_: None)
    assert [(one.name, one.given, one.default is None) for one in found.raced] == [
        ("hpa/llama", True, True), ("keda/llama", True, True), ("floorcast", False, False),
    ]  # fmt: skip
    most = [(one.timeline.ready[1:] + one.timeline.warming[1:]).max() for one in found.raced]
    least = [one.timeline.ready[1:].min() for one in found.raced]
    assert most[0] == 2
    assert least[1] >= 2
    assert most[2] <= 5
    assert [point.knob for one in found.raced[:2] for point in one.points] == ["as given", "as given"]


def test_the_command_tells_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, HPA)
    asked = Asked(
        generate="rate=5,days=0.2", hours=0.3, profile="llama-8b-rtx4090", warm_up="2m", policies=("static=2",),
        hpa=(path,), out=tmp_path / "out",
    )  # fmt: skip
    assert simulate.run(asked) == 0
    told = capsys.readouterr().out
    assert "hpa/llama" in told
    assert "note: mine.yaml: spec.metrics[1].external.metric.name: is taken as the sum" in told
    page = (tmp_path / "out" / "simulation.html").read_text()
    assert "hpa/llama, HorizontalPodAutoscaler in mine.yaml, 2 to 12 replicas</summary>" in page
    assert "2 to 12 replicas.\n" in page  # those of the manifest hold for the others too
    assert (
        'hpa/llama,"HorizontalPodAutoscaler in mine.yaml, 2 to 12 replicas",as given'
        in (tmp_path / "out" / "simulation.csv").read_text()
    )


def test_bounds_are_those_given_else_those_of_the_first_manifest(tmp_path: Path) -> None:
    own = simulatemanifests.read([written(tmp_path, KEDA, HPA)])
    asked = {"generate": "", "hpa": (tmp_path / "mine.yaml",)}
    assert Asked(**asked).bounds(own) == (2, 9)
    assert Asked(**asked, minimum=3, maximum=4).bounds(own) == (3, 4)
    assert Asked(generate="").bounds(()) == (1, None)
    with pytest.raises(ConfigurationError, match="--minimum: 10 must not be above the maximum of keda/llama, 9; give"):
        Asked(**asked, minimum=10).bounds(own)
