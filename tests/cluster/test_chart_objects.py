"""What the chart renders, for every set of values, shown to a real API server: it takes all of it, and lets it run."""

from typing import Any

import pytest
import yaml

from tests.cluster import chart, plane
from tests.cluster import kubectl as kubectl_tool
from tests.helm import operators
from tests.helm.matrix import MATRIX

ENFORCED = "pod-security.kubernetes.io/enforce=restricted"
Json = dict[str, Any]


@pytest.fixture
def rendered(cluster: plane.ControlPlane, namespace: str) -> dict[str, list[Json]]:
    """The objects by the name of the values."""
    helm = chart.Helm(cluster.state, cluster.kubeconfig)
    place = ("template", "floorcast", str(chart.CHART), f"--namespace={namespace}")
    return {
        name: [one for one in yaml.safe_load_all(helm(*place, values=told)) if one] for name, told in MATRIX.items()
    }


def pods(objects: list[Json]) -> list[Json]:
    """Those that the controllers of Deployments and Jobs would make, and that of `helm test`."""
    made = []
    for one in objects:
        template = one if one["kind"] == "Pod" else one.get("spec", {}).get("template")
        if template is not None:
            metadata = {**template["metadata"], "name": one["kind"].lower()}
            spec = {**template["spec"], "serviceAccountName": "default"}  # the chart's own is not made by a dry run
            made.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return made


def dry_run(kubectl: kubectl_tool.Kubectl, objects: list[Json], *more: str) -> None:
    """All that the API server checks before it stores anything, fields that it does not know included."""
    told = ("--server-side", "--dry-run=server", "--filename=-", *more)
    kubectl("apply", *told, stdin=yaml.safe_dump_all(objects))


def test_the_api_server_takes_every_object_of_the_matrix(
    kubectl: kubectl_tool.Kubectl, rendered: dict[str, list[Json]]
) -> None:
    """Those for the Prometheus operator too: kubectl has the API server refuse what their CRDs do not name."""
    for name in ("llm", "search"):
        kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    kubectl("apply", "--server-side", f"--filename={operators.CRDS}")
    kubectl("wait", "--for=condition=Established", f"--filename={operators.CRDS}", "--timeout=60s")
    for objects in rendered.values():
        dry_run(kubectl, objects)
    (monitor,) = (one for one in rendered["everything"] if one["kind"] == "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["porrt"] = "http"
    with pytest.raises(kubectl_tool.KubectlError, match="porrt"):
        dry_run(kubectl, [monitor])


def test_every_pod_of_the_matrix_may_run_where_the_restricted_profile_is_enforced(
    kubectl: kubectl_tool.Kubectl, namespace: str, rendered: dict[str, list[Json]]
) -> None:
    kubectl("label", "namespace", namespace, ENFORCED)
    made = {name: pods(objects) for name, objects in rendered.items()}
    assert {name: len(found) for name, found in made.items() if len(found) < 2} == {}
    for found in made.values():
        dry_run(kubectl, found, f"--namespace={namespace}")
    loose = made["defaults"][0]
    del loose["spec"]["securityContext"]["seccompProfile"]
    with pytest.raises(kubectl_tool.KubectlError, match="violates PodSecurity"):
        dry_run(kubectl, [loose], f"--namespace={namespace}")
