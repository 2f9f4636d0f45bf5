"""What the chart renders: valid for several Kubernetes versions, restricted, and as its values say."""

import re

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.cluster import chart
from tests.helm import operators
from tests.helm.conftest import Chart
from tests.helm.matrix import EVERYTHING, IN_LLM, MATRIX, TARGET
from tests.helm.objects import Json, of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120, func_only=True)]

VERSIONS = ("1.28", "1.33", "1.37")  # the oldest that Chart.yaml allows, one between, the newest with a schema here
SCOPED = {"ClusterRole", "ClusterRoleBinding"}


@pytest.fixture(params=MATRIX, ids=str)
def objects(request: pytest.FixtureRequest, rendered: Chart) -> list[Json]:
    return rendered(MATRIX[request.param])


def pod_specs(objects: list[Json]) -> list[Json]:
    templates = [one["spec"]["template"]["spec"] for kind in ("Deployment", "Job") for one in of(objects, kind)]
    return [*templates, *(one["spec"] for one in of(objects, "Pod"))]


# ------------------------------------------------------------------------------------------------------------ validity


def test_lint_finds_nothing(rendered: Chart) -> None:
    rendered.helm("lint", "--strict", str(chart.CHART))


def test_every_object_is_valid_for_every_version(objects: list[Json]) -> None:
    for one in objects:
        if one["apiVersion"] in operators.APIS:
            operators.validate(one)
        else:
            for version in VERSIONS:
                kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor", "PrometheusRule"])
def test_an_object_for_the_prometheus_operator_with_anything_wrong_in_it_is_found(rendered: Chart, kind: str) -> None:
    def check(**changed: object) -> None:
        (one,) = of(yaml.safe_load(yaml.safe_dump(rendered(EVERYTHING))), kind)
        spec = one["spec"]
        (spec.get("endpoints") or spec.get("podMetricsEndpoints") or spec["groups"][0]["rules"])[0].update(changed)
        operators.validate(one)

    check()
    for wrong in ({"porrt": "http"}, {"for" if kind == "PrometheusRule" else "interval": "15 s"}):
        with pytest.raises(jsonschema.ValidationError, match=r"porrt|15 s"):
            check(**wrong)


def test_every_object_has_its_namespace_its_labels_and_a_name_of_its_own(objects: list[Json]) -> None:
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
    assert len(names) == len(set(names))
    for one in objects:
        metadata = one["metadata"]
        assert ("namespace" in metadata) != (one["kind"] in SCOPED), metadata
        assert {"app.kubernetes.io/managed-by", "helm.sh/chart"} <= set(metadata["labels"])
        assert len(metadata["name"]) <= 63 or one["kind"] in SCOPED


# ------------------------------------------------------------------------------------------------------------ security


def test_every_pod_meets_the_restricted_profile(objects: list[Json]) -> None:
    """Every control of the Pod Security Standards, those of the baseline too; up to the host of a probe of 1.34."""
    for pod in pod_specs(objects):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        # No user 0, no sysctls, no options of SELinux, AppArmor or Windows.
        assert set(pod["securityContext"]) <= {"runAsNonRoot", "seccompProfile", "fsGroup"}
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers"} & set(pod)
        assert all(
            set(volume) <= {"name", "configMap", "secret", "emptyDir", "persistentVolumeClaim"}
            for volume in pod["volumes"]
        )
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert not any("hostPort" in one for one in container.get("ports", []))
            assert "lifecycle" not in container
            probes = [container[key] for key in container if key.endswith("Probe")]
            assert not any("host" in asked for probe in probes for asked in probe.values() if isinstance(asked, dict))
    assert "container.apparmor.security.beta.kubernetes.io" not in yaml.safe_dump(objects)


def test_no_secret_is_an_argument_or_a_variable(objects: list[Json]) -> None:
    for pod in pod_specs(objects):
        for container in pod["containers"]:
            for variable in container.get("env", []):
                assert "secretKeyRef" not in variable.get("valueFrom", {})
            assert not [word for word in container.get("args", []) if re.search("token|password", word)]


def test_what_is_written_to_can_be_written_to(objects: list[Json]) -> None:
    for pod in pod_specs(objects):
        (container,) = pod["containers"]
        mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
        volumes = {one["name"]: one for one in pod["volumes"]}
        assert "emptyDir" in volumes[mounts["/tmp"]["name"]]  # noqa: S108  (of the container)
        cache = next(one["value"] for one in container["env"] if one["name"] == "NUMBA_CACHE_DIR")
        assert cache.startswith("/tmp/")  # noqa: S108  (likewise)


# ------------------------------------------------------------------------------------------------------- configuration


def test_a_changed_configuration_replaces_the_pods_only_where_it_is_not_taken_up_by_them(rendered: Chart) -> None:
    def pods(*, reload: bool, level: str) -> Json:
        objects = rendered({"configReload": reload, "config": {"log": {"level": level}}})
        template: Json = of(objects, "Deployment")[0]["spec"]["template"]
        return template

    assert pods(reload=True, level="info") == pods(reload=True, level="debug")
    assert pods(reload=False, level="info") != pods(reload=False, level="debug")
    assert "--reload" in pods(reload=True, level="info")["spec"]["containers"][0]["args"]
    assert "--no-reload" in pods(reload=False, level="info")["spec"]["containers"][0]["args"]


def test_the_configuration_file_is_what_the_values_say(rendered: Chart) -> None:
    config = {"history": {"span": 5184000}, "targets": [{**TARGET, "maximum": 10000}], "mode": "control"}
    for one in of(rendered({"config": config, "rbac": IN_LLM}), "ConfigMap"):
        told = yaml.safe_load(one["data"]["floorcast.yaml"])
        assert told["history"]["span"] == 5184000
        assert told["targets"] == config["targets"]


def test_two_installations_in_one_namespace_do_not_share_a_lease(rendered: Chart) -> None:
    def lease(config: Json) -> str:
        objects = rendered({"config": {"leader_election": config}, "fullnameOverride": "other"})
        told = yaml.safe_load(of(objects, "ConfigMap")[0]["data"]["floorcast.yaml"])
        return str(told["leader_election"].get("name"))

    assert lease({"enabled": True}) == "other"
    assert lease({"enabled": True, "name": "mine"}) == "mine"


def test_the_file_is_mounted_as_a_folder_so_that_it_changes(objects: list[Json]) -> None:
    for pod in pod_specs(objects):
        mounts = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "config"]
        assert [(one["mountPath"], one.get("subPath")) for one in mounts] == [("/etc/floorcast", None)]


def test_two_replicas_elect_and_are_replaced_one_after_the_other(rendered: Chart) -> None:
    strategy = of(rendered(MATRIX["two replicas"]), "Deployment")[0]["spec"]["strategy"]
    assert strategy["type"] == "RollingUpdate"
    assert of(rendered(), "Deployment")[0]["spec"]["strategy"]["type"] == "Recreate"


# ------------------------------------------------------------------------------------------------------------- options


def test_alerts_that_are_left_out_are_left_out(rendered: Chart) -> None:
    (rule,) = of(rendered(EVERYTHING), "PrometheusRule")
    alerts = [one["alert"] for group in rule["spec"]["groups"] for one in group["rules"]]
    assert "FloorcastAbsent" not in alerts
    assert "FloorcastCappedAtMaximum" in alerts
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_the_dashboard_is_found_by_the_sidecar(rendered: Chart) -> None:
    (dashboard,) = (one for one in of(rendered(EVERYTHING), "ConfigMap") if "floorcast.json" in one["data"])
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["data"]["floorcast.json"].strip() == (chart.CHART / "files/dashboard.json").read_text().strip()


def test_monitors_and_policies_select_the_service_and_not_the_hook(rendered: Chart) -> None:
    objects = rendered(EVERYTHING)
    labels = of(objects, "Deployment")[0]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        *(
            one["spec"]["selector"]["matchLabels"]
            for kind in ("ServiceMonitor", "PodMonitor")
            for one in of(objects, kind)
        ),
        *(one["spec"]["selector"]["matchLabels"] for one in of(objects, "PodDisruptionBudget")),
        *(one["spec"]["podSelector"]["matchLabels"] for one in of(objects, "NetworkPolicy")),
        *(one["spec"]["selector"] for one in of(objects, "Service")),
    ]
    others = [
        of(objects, "Job")[0]["spec"]["template"]["metadata"]["labels"],
        of(objects, "Pod")[0]["metadata"]["labels"],
    ]
    assert len(selectors) == 5
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not any(selector.items() <= other.items() for other in others)


def test_the_external_scaler_is_reached_where_it_is_on(rendered: Chart) -> None:
    def ports(values: Json) -> tuple[list[Json], list[Json], list[Json]]:
        objects = rendered(values)
        container = of(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
        let_in = [rule for one in of(objects, "NetworkPolicy") for rule in one["spec"]["ingress"]]
        return container["ports"], of(objects, "Service")[0]["spec"]["ports"], let_in

    opened, served, let_in = ports(EVERYTHING)
    assert {"name": "scaler", "containerPort": 7000} in opened
    assert [(one["port"], one["targetPort"]) for one in served] == [(80, "http"), (7000, "scaler")]
    assert [rule["ports"][0]["port"] for rule in let_in] == ["http", "scaler"]
    opened, served, let_in = ports({"networkPolicy": {"enabled": True}})
    assert [one["name"] for one in (*opened, *served)] == ["http", "http"]
    assert [rule["ports"][0]["port"] for rule in let_in] == ["http"]


@pytest.mark.parametrize("verified", [True, False])
def test_the_external_scaler_answers_with_the_certificate_of_a_secret(rendered: Chart, *, verified: bool) -> None:
    """Which the kubelet exchanges when it is renewed: it is no subPath."""
    tls = {"secretName": "scaler-tls", "verifyClient": verified}
    config = {"external_scaler": {"enabled": True, "port": 7000}}
    objects = rendered({"config": config, "externalScaler": {"tls": tls}})
    pod = of(objects, "Deployment")[0]["spec"]["template"]["spec"]
    mount = next(one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "scaler")
    assert {"name": "scaler", "secret": {"secretName": "scaler-tls"}} in pod["volumes"]
    told = yaml.safe_load(of(objects, "ConfigMap")[0]["data"]["floorcast.yaml"])["external_scaler"]
    files = {"cert_file": "tls.crt", "key_file": "tls.key"} | ({"client_ca_file": "ca.crt"} if verified else {})
    folder = mount.pop("mountPath")
    assert mount == {"name": "scaler", "readOnly": True}
    assert told == config["external_scaler"] | {key: f"{folder}/{name}" for key, name in files.items()}
    for one in pod_specs(objects):
        assert one is pod or "scaler" not in {volume["name"] for volume in one["volumes"]}


def test_values_of_a_chart_without_certificates_are_taken(rendered: Chart) -> None:
    """As `helm upgrade --reuse-values` brings them."""
    told = rendered({"externalScaler": None})
    assert told == rendered()


def test_notes_say_what_to_do_next(rendered: Chart) -> None:
    def notes(values: Json) -> str:
        place = ("install", "floorcast", str(chart.CHART), "--dry-run=client", "--namespace=floorcast")
        return rendered.helm(*place, values=values).partition("NOTES:")[2]

    shadow = notes({})
    assert "shadow mode: it decides and reports, and writes nothing" in shadow
    assert "It has no targets yet" in shadow
    assert shadow.index("helm test") < shadow.index("backtest") < shadow.index("config.mode=control")
    control = notes(MATRIX["control"])
    assert "config.mode=shadow" in control
    assert "no targets" not in control
    assert "Note:" not in shadow + control
    doubtful = {"namespace": "llm", "name": "chat", "mode": "control"}
    said = notes({"config": {"targets": [doubtful]}, "rbac": IN_LLM})
    assert "Note: llm/chat: no capacity is given, and a cautious guess is planned with" in said
    assert "Note: llm/chat: its mode, control, takes effect once config.mode is control" in said
