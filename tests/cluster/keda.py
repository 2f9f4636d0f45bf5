"""KEDA beside a control plane: the real operator and the real metrics adapter, as processes of this machine.

While it runs it holds the external metrics API, of which a cluster has one: the HPAs of `serve` get no metric then.
Its admission webhooks are not there; what the API server itself checks of a ScaledObject, it checks.
"""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import requests
from prometheus_client.parser import text_string_to_metric_families as families

from tests.cluster import binaries, certificates, external_metrics, kubectl, plane
from tests.servers import addresses, cache, processes, waiting

NAMESPACE = "keda"
_ADAPTER = "keda-metrics-apiserver"  # the name of its Service
_NAMES = ("DNS:localhost", f"DNS:{_ADAPTER}.{NAMESPACE}.svc")
_LOOP_STARTS = "Initializing Scaling logic according to ScaledObject Specification"
_READY_WITHIN_S = 180.0


class Keda:
    """Operator and adapter; a context manager, from the main thread: ready on entry, on exit gone with its objects."""

    def __init__(self, control_plane: plane.ControlPlane) -> None:
        self.plane = control_plane
        self.children: dict[str, processes.Child] = {}
        self._folder = control_plane.state / "keda"
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        for program in binaries.KEDA:
            binaries.ensure(program)
        try:
            self._start()
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            # While the operator lives: it alone removes their finalizers, without which no namespace can go.
            self.plane.kubectl("delete", "scaledobjects", "--all", "--all-namespaces", "--timeout=60s")
        finally:
            self._exits.close()
            self.plane.hold_metrics()

    def loop_starts(self, namespace: str, name: str) -> int:
        """Return how often the operator has (re)started the scale loop of a ScaledObject: once for each change."""
        lines = [json.loads(line) for line in self._log("keda-operator") if line.startswith("{")]
        ours = [line for line in lines if (line.get("namespace"), line.get("name")) == (namespace, name)]
        return sum(line["msg"] == _LOOP_STARTS for line in ours)

    def metric(self, name: str, **labels: str) -> float | None:
        """Return one series of the operator's own metrics, None where there is none with these labels."""
        page = requests.get(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=5).text
        samples = [sample for family in families(page) for sample in family.samples if sample.name == name]
        return next((one.value for one in samples if labels.items() <= one.labels.items()), None)

    def _start(self) -> None:
        self._folder.mkdir()
        secrets = self._secrets()
        ports = [self._exits.enter_context(addresses.port()).number for _ in range(5)]
        service, self._metrics_port, health, adapter, adapter_metrics = ports
        self.plane.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        define(self.plane.kubectl)
        self._run("keda-operator", self._operator(secrets, service=service, health=health))
        self._run("keda-adapter", self._metrics_adapter(secrets, service=service, port=adapter, own=adapter_metrics))
        self.plane.hold_metrics(external_metrics.objects(port=adapter, authority=secrets / "ca.crt", **_place()))
        waiting.until(lambda: self._ready(health), within_s=_READY_WITHIN_S, what="KEDA ready", every_s=0.5)

    def _run(self, name: str, command: list[str]) -> None:
        environment = {
            "POD_NAMESPACE": NAMESPACE,
            "POD_NAME": f"{name}-0",
            "WATCH_NAMESPACE": "",
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
        }
        log = self.plane.state / "logs" / f"{name}.log"
        child = processes.Child(name, command, log=log, environment=environment, grace_s=plane.GRACE_S)
        self.children[name] = self._exits.enter_context(child)

    def _operator(self, secrets: Path, *, service: int, health: int) -> list[str]:
        return [
            str(binaries.ensure(binaries.KEDA_OPERATOR)),
            f"--kubeconfig={self._config()}",
            f"--cert-dir={secrets}",
            f"--metrics-service-bind-address=127.0.0.1:{service}",
            f"--metrics-bind-address=127.0.0.1:{self._metrics_port}",
            f"--health-probe-bind-address=127.0.0.1:{health}",
            "--enable-webhook-patching=false",
            "--enable-apiservice-patching=false",
            "--zap-encoder=json",
        ]

    def _metrics_adapter(self, secrets: Path, *, service: int, port: int, own: int) -> list[str]:
        config = self._config()
        return [
            str(binaries.ensure(binaries.KEDA_ADAPTER)),
            *(f"--{name}={config}" for name in ("kubeconfig", "lister-kubeconfig")),
            *(f"--{name}={config}" for name in ("authentication-kubeconfig", "authorization-kubeconfig")),
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--port={own}",
            f"--cert-dir={secrets}",
            f"--tls-cert-file={secrets / 'tls.crt'}",
            f"--tls-private-key-file={secrets / 'tls.key'}",
            f"--client-ca-file={secrets / 'ca.crt'}",
            f"--metrics-service-address=localhost:{service}",
        ]

    def _secrets(self) -> Path:
        """The folder of certificates that both programs read: each is a server and the other's client."""
        folder = self._folder / "certificates"
        folder.mkdir()
        authority = self.plane.authority
        pair = certificates.issue(authority, "keda", names=_NAMES)
        for source, name in ((authority.certificate, "ca.crt"), (pair.certificate, "tls.crt"), (pair.key, "tls.key")):
            shutil.copy(source, folder / name)
        return folder

    def _config(self) -> Path:
        return self.plane.config_of(self.plane.users.keda)

    def _ready(self, health: int) -> bool:
        for child in self.children.values():
            child.check()
        try:
            ready = requests.get(f"http://127.0.0.1:{health}/readyz", timeout=2).ok
        except requests.ConnectionError:
            return False
        return ready and external_metrics.available(self.plane.kubectl)

    def _log(self, name: str) -> list[str]:
        return (self.plane.state / "logs" / f"{name}.log").read_text().splitlines()


def crds() -> Path:
    """Return the folder of KEDA's resource definitions, from its own module."""
    return cache.entry(f"keda-crds-{binaries.VERSION_OF_KEDA}", _copy_crds)


def define(call: kubectl.Kubectl) -> None:
    """Define KEDA's resources; without KEDA that is enough for tests of what is written."""
    call("apply", "--server-side", "--force-conflicts", "--field-manager=rig", f"--filename={crds()}")
    waiting.until(lambda: _is_established(call), within_s=60, what="KEDA's resources")


def _is_established(call: kubectl.Kubectl) -> bool:
    # Not `kubectl wait`: it fails on an object whose conditions are not there yet.
    told = call.json("get", "crd", "scaledobjects.keda.sh").get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in told)


def _copy_crds(folder: Path) -> None:
    for path in (binaries.sources(binaries.KEDA_OPERATOR) / "config" / "crd" / "bases").glob("*.yaml"):
        shutil.copyfile(path, folder / path.name)


def _place() -> dict[str, str]:
    return {"namespace": NAMESPACE, "name": _ADAPTER}
