"""KEDA for real, asking the external scaler of a running Floorcast, or Prometheus: operator, adapter, their HPAs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from predictor.cluster.permissions import Purpose
from tests.cluster import accounts, certificates, manifests, plane
from tests.cluster import audit as audit_log
from tests.cluster import kubectl as kubectl_tool
from tests.cluster.floorcast import Service
from tests.cluster.needed import CONCURRENCY, Needed
from tests.servers import prometheus, waiting

KINDS = ("external", "external-push")  # of triggers that ask the scaler; each names the workload that it scales
METRIC = "prometheus"  # the kind that asks Prometheus for the metric
MINIMUM, MAXIMUM = 2, 12
STABILISATION_S = 10.0  # after which the rig's HPA lowers
RECOMMENDED = "floorcast_recommended_replicas"
TOLERANCE = 0.1  # of an HPA
Trigger = dict[str, Any]
PATIENCE_S = 180.0  # for KEDA to ask, the HPA to look and the API server to answer, on a machine with other work


def scalers(address: str, *, authentication: str = "") -> dict[str, Trigger]:
    """The triggers that ask the external scaler; with the name of a TriggerAuthentication over TLS."""
    more = {"authenticationRef": {"name": authentication}} if authentication else {}
    encrypted = {"enableTLS": "true"} if authentication else {}
    return {
        kind: {"type": kind, "metadata": {"scalerAddress": address, "target": kind, **encrypted}, **more}
        for kind in KINDS
    }


def by_metric(namespace: str, address: str) -> dict[str, Trigger]:
    """The trigger of docs/publishing.md that asks Prometheus."""
    query = f'max({RECOMMENDED}{{target="{namespace}/{METRIC}"}})'
    asked = {"serverAddress": address, "query": query, "threshold": "1", "ignoreNullValues": "false"}
    return {METRIC: {"type": METRIC, "metadata": asked}}


class Scaled:
    """A Deployment for each trigger, by its name, as KEDA scales it by what is answered."""

    def __init__(self, kubectl: kubectl_tool.Kubectl, namespace: str, triggers: Mapping[str, Trigger]) -> None:
        self._kubectl = kubectl
        self._namespace = namespace
        self._triggers = triggers

    def apply(self) -> None:
        workloads = [manifests.Workload(self._namespace, kind, replicas=MINIMUM, gpus=0) for kind in self._triggers]
        self._kubectl.apply([manifests.deployment(one) for one in workloads])
        self._kubectl.apply([self._scaled_object(kind) for kind in self._triggers])

    def _scaled_object(self, kind: str) -> dict[str, Any]:
        return {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"namespace": self._namespace, "name": f"by-{kind}"},
            "spec": {
                "scaleTargetRef": {"name": kind},
                "pollingInterval": 2,
                "minReplicaCount": MINIMUM,
                "maxReplicaCount": MAXIMUM,
                "triggers": [self._triggers[kind]],
            },
        }

    def replicas(self) -> dict[str, int]:
        items = self._kubectl.json("get", "deployments", f"--namespace={self._namespace}")["items"]
        return {one["metadata"]["name"]: int(one["spec"]["replicas"]) for one in items}

    def await_number(self, service: Service, count: range) -> None:
        """Every workload has what the service says now, which is one of these, as nearly as an HPA looks."""

        def follows() -> bool:
            said = {kind: service.metric(RECOMMENDED, target=f"{self._namespace}/{kind}") for kind in self._triggers}
            runs = self.replicas()
            return all(
                number in count and abs(runs[kind] - number) <= TOLERANCE * number for kind, number in said.items()
            )

        waiting.until(follows, within_s=PATIENCE_S, what=f"the published number, within {count}", every_s=1)

    def await_errors(self) -> None:
        """Every HPA says that it has no number."""
        waiting.until(
            lambda: self._scaling() == ["False"] * len(self._triggers),
            within_s=PATIENCE_S,
            what="errors in the HPAs",
            every_s=1,
        )

    def await_told(self, parts: Mapping[str, str]) -> None:
        """Events of each ScaledObject say what is named for its kind."""

        def told() -> bool:
            events = self._kubectl.json("get", "events", f"--namespace={self._namespace}")["items"]
            return all(
                any(part in one["message"] for one in events if one["involvedObject"]["name"] == f"by-{kind}")
                for kind, part in parts.items()
            )

        waiting.until(told, within_s=PATIENCE_S, what=f"{parts} in the ScaledObjects' events", every_s=1)

    def stand(self) -> None:
        """Nothing changes for longer than the HPA needs to lower."""
        before = self.replicas()
        with pytest.raises(TimeoutError):
            waiting.until(
                lambda: self.replicas() != before,
                within_s=3 * STABILISATION_S,
                what="other replicas",
                every_s=1,
            )

    def _scaling(self) -> list[str]:
        hpas = self._kubectl.json("get", "hpa", f"--namespace={self._namespace}")["items"]
        told = [one for hpa in hpas for one in hpa["status"].get("conditions") or ()]
        return [one["status"] for one in told if one["type"] == "ScalingActive"]


def settings(namespace: str, source: str, kubeconfig: Path | None, **scaler: object) -> dict[str, Any]:
    """Shadow mode: nothing but the scaler brings the number to anybody."""
    return {
        "mode": "shadow",
        "source": {"prometheus": {"url": source, "timeout": 2, "budget": 2}},
        "kubernetes": {"kubeconfig": str(kubeconfig)},
        "loops": {"slow": 5, "fast": 1},
        "server": {"host": "127.0.0.1", "port": 0},
        "external_scaler": {"enabled": True, "port": 0, **scaler},
        "defaults": {
            "quantiles": {"raise": 0.5, "lower": 0.5},
            "floor": {"hold": 5, "step_down": 1, "step_period": 2},
            "warm_up": 10,
            "maximum": MAXIMUM,
        },
        "targets": [
            {"namespace": namespace, "name": kind, "model": kind, "capacity": {"concurrency": CONCURRENCY}}
            for kind in (*KINDS, METRIC)
        ],
    }


@pytest.fixture
def needed(namespace: str) -> Iterator[Needed]:
    known = Needed((namespace, name) for name in (*KINDS, METRIC))
    with known.api:
        yield known


@pytest.fixture
def service(cluster: plane.ControlPlane, namespace: str, needed: Needed, tmp_path: Path) -> Iterator[Service]:
    """With an account that may look and nothing else."""
    access = accounts.login(cluster, namespace, "floorcast", [Purpose.OBSERVE])
    with Service(tmp_path, settings(namespace, needed.api.url, access.kubeconfig)) as running:
        yield running


@pytest.fixture
def published(service: Service, tmp_path: Path) -> Iterator[str]:
    """Address of a Prometheus that scrapes the service."""
    job = prometheus.at("floorcast", service.url.removeprefix("http://"), interval_s=1.0)
    with prometheus.PrometheusServer(tmp_path / "prometheus", [job]) as server:
        yield server.url


def scaler_of(service: Service) -> str:
    return f"127.0.0.1:{service.said('external scaler started')['port']}"


def trusting(namespace: str, authority: certificates.Pair) -> list[dict[str, Any]]:
    """A TriggerAuthentication with what KEDA believes, and with what it shows."""
    own = certificates.issue(authority, "keda")
    files = {"ca.crt": authority.certificate, "tls.crt": own.certificate, "tls.key": own.key}
    names = {"caCert": "ca.crt", "tlsClientCert": "tls.crt", "tlsClientKey": "tls.key"}
    place = {"namespace": namespace, "name": "floorcast"}
    refers = [{"parameter": parameter, "name": "floorcast", "key": key} for parameter, key in names.items()]
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": place,
            "stringData": {key: path.read_text() for key, path in files.items()},
        },
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "TriggerAuthentication",
            "metadata": place,
            "spec": {"secretTargetRef": refers},
        },
    ]


@pytest.mark.usefixtures("keda")
@pytest.mark.timeout(900, func_only=True)
def test_keda_asks_over_tls_and_shows_a_certificate_of_its_own(
    cluster: plane.ControlPlane, namespace: str, needed: Needed, tmp_path: Path
) -> None:
    authority = certificates.authority(tmp_path, "authority")
    pair = certificates.issue(authority, "floorcast", names=["IP:127.0.0.1"])
    files = {"cert_file": pair.certificate, "key_file": pair.key, "client_ca_file": authority.certificate}
    access = accounts.login(cluster, namespace, "floorcast", [Purpose.OBSERVE])
    told = settings(namespace, needed.api.url, access.kubeconfig, **{key: str(path) for key, path in files.items()})
    needed.replicas = 5
    cluster.kubectl.apply(trusting(namespace, authority))
    with Service(tmp_path, told) as service:
        scaled = Scaled(cluster.kubectl, namespace, scalers(scaler_of(service), authentication="floorcast"))
        scaled.apply()
        scaled.await_number(service, range(5, MAXIMUM))


@pytest.mark.usefixtures("keda")
@pytest.mark.timeout(900, func_only=True)
def test_keda_follows_the_number_and_keeps_it_when_there_is_none(
    kubectl: kubectl_tool.Kubectl,
    namespace: str,
    needed: Needed,
    service: Service,
    published: str,
    audit: audit_log.AuditLog,
) -> None:
    since = audit.mark()
    scaled = Scaled(kubectl, namespace, {**scalers(scaler_of(service)), **by_metric(namespace, published)})
    needed.replicas = 3  # a forecast that knows no past allows for an eighth more, which these three have
    scaled.apply()
    scaled.await_number(service, range(3, MAXIMUM))

    needed.silent = True  # the signals are unknown: an error, and not the number of before
    scaled.await_errors()
    scaled.await_told({**dict.fromkeys(KINDS, "HeldUnknownSignals"), METRIC: "the result is empty"})
    scaled.stand()
    needed.silent, needed.replicas = False, 8
    scaled.await_number(service, range(8, MAXIMUM + 1))
    needed.replicas = 3
    scaled.await_number(service, range(3, 7))

    service.process.kill()  # nobody answers
    scaled.await_errors()
    scaled.stand()
    user = f"system:serviceaccount:{namespace}:floorcast"
    written = {one.resource for one in audit.writes(since=since, user=user)}
    assert written <= {"selfsubjectaccessreviews"}
