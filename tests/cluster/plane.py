"""A real control plane on this machine: etcd, API server, controllers, scheduler; only kubelets are simulated."""

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
from kubernetes import client, config

from tests.cluster import (
    audit,
    binaries,
    certificates,
    commands,
    external_metrics,
    kubeconfig,
    kubectl,
    nodes,
)
from tests.servers import addresses, processes, waiting

# On SIGTERM the API server keeps its port for up to a minute; nobody here needs it to be polite.
GRACE_S = 1.0
READY_WITHIN_S = 120.0  # 3 s on an idle machine


@dataclass(frozen=True)
class Users:
    """Who the API server knows by token; everybody else comes by service account."""

    admin: kubeconfig.User
    controllers: kubeconfig.User
    scheduler: kubeconfig.User
    kwok: kubeconfig.User
    keda: kubeconfig.User

    def all(self) -> tuple[kubeconfig.User, ...]:
        return (self.admin, self.controllers, self.scheduler, self.kwok, self.keda)


def _users() -> Users:
    return Users(
        admin=kubeconfig.user("admin", "system:masters"),
        controllers=kubeconfig.user("system:kube-controller-manager"),
        scheduler=kubeconfig.user("system:kube-scheduler"),
        kwok=kubeconfig.user("kwok", "system:masters"),
        keda=kubeconfig.user("keda", "system:masters"),
    )


class ControlPlane:
    """One control plane in one state folder; a context manager: ready on entry, gone on exit.

    Start it from the main thread: its processes die with the thread that started them. The folder has to exist; it
    holds keys, data, `logs/` and `audit.jsonl` and is left to the caller.

    Attributes:
        kubeconfig: file of an administrator.
        kubectl: calls kubectl as that administrator.
        audit: what was asked of the API server, by whom.
        metrics: what the external metrics API answers.
        users: who the API server knows by token.
    """

    def __init__(self, state: Path, settings: commands.Settings | None = None) -> None:
        self.state = state
        self.settings = settings or commands.Settings()
        self.kubeconfig = state / "kubeconfig.yaml"
        self.kubectl = kubectl.Kubectl(self.kubeconfig)
        self.audit = audit.AuditLog(state / "audit.jsonl")
        self.metrics = external_metrics.Queries(state / "queries.json")
        self.children: dict[str, processes.Child] = {}
        self.users = _users()
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        for program in binaries.CONTROL_PLANE:
            binaries.ensure(program)  # before anything waits for anything
        try:
            self._start()
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    @property
    def url(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def network(self) -> str:
        """Where the pods' addresses come from."""
        return f"127.{self._network}.0.0/16"

    def api(self, token: str | None = None) -> client.ApiClient:
        """Return a client of the Python library, as administrator or as whoever `token` belongs to."""
        path = self.kubeconfig if token is None else self.kubeconfig_for(token)
        return config.new_client_from_config(config_file=str(path))

    def kubeconfig_for(self, token: str) -> Path:
        """Return a kubeconfig file that logs in with `token`, for programs under test."""
        name = hashlib.sha256(token.encode()).hexdigest()[:12]
        return self._kubeconfig(self.state / "kubeconfigs" / f"{name}.yaml", token)

    def service_account_token(self, namespace: str, name: str, *, valid_s: int = 3600) -> str:
        """Return a real token of a service account that exists; RBAC binds whoever uses it."""
        return self.kubectl("create", "token", name, f"--namespace={namespace}", f"--duration={valid_s}s").strip()

    def config_of(self, who: kubeconfig.User) -> Path:
        """Return the kubeconfig file of one of `users`."""
        return self._kubeconfig(self.state / "kubeconfigs" / f"{who.name.replace(':', '-')}.yaml", who.token)

    @property
    def authority(self) -> certificates.Pair:
        """Who signs the certificates of this control plane."""
        return self._keys.authority

    def hold_metrics(self, objects: list[dict[str, Any]] | None = None) -> None:
        """Give the external metrics API to the server that `objects` register, by default to the rig's own again."""
        (api_service,) = (one["metadata"]["name"] for one in self._own_metrics if one["kind"] == "APIService")
        self.kubectl("delete", "apiservice", api_service)  # so that nobody takes the old one's health for the new one's
        self.kubectl.apply(objects or self._own_metrics)

    def check(self) -> None:
        """Raise DiedError if a part of the control plane ended by itself."""
        for child in self.children.values():
            child.check()

    def _start(self) -> None:
        for folder in ("pki", "logs", "kubeconfigs"):
            (self.state / folder).mkdir(exist_ok=True)
        self._keys = commands.keys(self.state / "pki")
        self._port = self._lease_port()
        self._network = self._exits.enter_context(addresses.network()).number
        self._kubeconfig(self.kubeconfig, self.users.admin.token)
        self._start_storage_and_api()
        self._start_controllers()
        self._start_metrics()
        with self.api() as api:
            for group in self.settings.groups:
                nodes.create(api, group)
        waiting.until(self._usable, within_s=READY_WITHIN_S, what="nodes, service accounts and metrics API")

    def _start_storage_and_api(self) -> None:
        etcd_port = self._lease_port()
        data = self.state / "etcd"
        self._run("etcd", commands.etcd(data, client_port=etcd_port, peer_port=self._lease_port()))
        tokens = kubeconfig.token_file(self.state / "pki" / "tokens.csv", self.users.all())
        log = self.audit.path
        server = commands.api_server(self._keys, etcd_port=etcd_port, port=self._port, tokens=tokens, audit_log=log)
        self._run("kube-apiserver", server)
        waiting.until(self._answers, within_s=READY_WITHIN_S, what="API server ready")

    def _start_controllers(self) -> None:
        users = self.users
        manager = commands.controllers(self._keys, self.settings, config=self.config_of(users.controllers))
        self._run("kube-controller-manager", manager)
        self._run("kube-scheduler", commands.scheduler(config=self.config_of(users.scheduler)))
        self._run("kwok", commands.kwok(config=self.config_of(users.kwok), network=self._network))

    def _start_metrics(self) -> None:
        authority = self._keys.authority
        pair = certificates.issue(authority, "external-metrics", names=external_metrics.NAMES)
        port = self._lease_port()
        self._run("external-metrics", commands.external_metrics(self.metrics.path, pair, port=port))
        self._own_metrics = external_metrics.objects(port=port, authority=authority.certificate)
        self.kubectl.apply(self._own_metrics)

    def _run(self, name: str, command: list[str]) -> None:
        child = processes.Child(name, command, log=self.state / "logs" / f"{name}.log", grace_s=GRACE_S)
        self.children[name] = self._exits.enter_context(child)

    def _lease_port(self) -> int:
        return self._exits.enter_context(addresses.port()).number

    def _kubeconfig(self, path: Path, token: str) -> Path:
        return kubeconfig.write(path, server=self.url, authority=self._keys.authority.certificate, token=token)

    def _answers(self) -> bool:
        self.check()
        headers = {"Authorization": f"Bearer {self.users.admin.token}"}
        trust = str(self._keys.authority.certificate)
        try:
            return requests.get(f"{self.url}/readyz", headers=headers, verify=trust, timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    def _usable(self) -> bool:
        self.check()
        if nodes.ready(self.kubectl) < sum(group.count for group in self.settings.groups):
            return False
        accounts = self.kubectl.json("get", "serviceaccounts", "--namespace=default")["items"]
        return bool(accounts) and external_metrics.available(self.kubectl)
