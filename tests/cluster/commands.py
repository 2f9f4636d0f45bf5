"""How each program of the control plane is started."""

from dataclasses import dataclass
from pathlib import Path

from tests.cluster import binaries, certificates, nodes
from tests.servers import processes

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Settings:
    """What a test may want different.

    Args:
        hpa_sync_s: seconds between two looks of the HPA controller (Kubernetes' default: 15).
        downscale_stabilisation_s: seconds an HPA waits before it lowers, unless its `behavior` says so (default: 300).
        groups: the simulated nodes.
    """

    hpa_sync_s: float = 2.0
    downscale_stabilisation_s: float = 10.0
    groups: tuple[nodes.Group, ...] = nodes.USUAL


@dataclass(frozen=True)
class Keys:
    """The key pairs of one control plane."""

    authority: certificates.Pair
    server: certificates.Pair
    front_authority: certificates.Pair
    front_client: certificates.Pair
    accounts: Path


def keys(folder: Path) -> Keys:
    """Make them all in `folder`."""
    authority = certificates.authority(folder, "rig-ca")
    # An authority of its own: the API server refuses one that also signs its users.
    front = certificates.authority(folder, "rig-front-proxy-ca")
    names = ["IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"]
    return Keys(
        authority=authority,
        server=certificates.issue(authority, "kube-apiserver", names=names),
        front_authority=front,
        front_client=certificates.issue(front, "front-proxy-client"),
        accounts=certificates.signing_key(folder, "service-accounts"),
    )


def etcd(data: Path, *, client_port: int, peer_port: int) -> list[str]:
    """One member, without waiting for the disk: its data is thrown away."""
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        str(binaries.ensure(binaries.ETCD)),
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(pki: Keys, *, etcd_port: int, port: int, tokens: Path, audit_log: Path) -> list[str]:
    """With RBAC, service-account tokens, aggregation and the audit log."""
    return [
        str(binaries.ensure(binaries.API_SERVER)),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={pki.server.certificate}",
        f"--tls-private-key-file={pki.server.key}",
        f"--client-ca-file={pki.authority.certificate}",
        f"--token-auth-file={tokens}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki.accounts.with_suffix('.pub')}",
        f"--service-account-signing-key-file={pki.accounts}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=PodNodeSelector",  # by which kubelet.py marks the pods of its namespaces
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--requestheader-client-ca-file={pki.front_authority.certificate}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={pki.front_client.certificate}",
        f"--proxy-client-key-file={pki.front_client.key}",
        f"--audit-policy-file={HERE / 'audit-policy.yaml'}",
        f"--audit-log-path={audit_log}",
        "--audit-log-maxsize=4096",  # MB: one file, never rotated under the reader
    ]


def controllers(pki: Keys, settings: Settings, *, config: Path) -> list[str]:
    """Each controller under its own service account, so that the audit log tells them apart."""
    return [
        str(binaries.ensure(binaries.CONTROLLERS)),
        f"--kubeconfig={config}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki.accounts}",
        f"--root-ca-file={pki.authority.certificate}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--horizontal-pod-autoscaler-sync-period={settings.hpa_sync_s}s",
        f"--horizontal-pod-autoscaler-downscale-stabilization={settings.downscale_stabilisation_s}s",
    ]


def scheduler(*, config: Path) -> list[str]:
    """Place pods by what they request, GPUs included."""
    return [
        str(binaries.ensure(binaries.SCHEDULER)),
        f"--kubeconfig={config}",
        "--leader-elect=false",
        "--secure-port=0",
    ]


def kwok(*, config: Path, network: int) -> list[str]:
    """In place of the kubelets; pods get addresses of 127.`network`.0.0/16, on which this machine can listen."""
    return [
        str(binaries.ensure(binaries.KWOK)),
        f"--kubeconfig={config}",
        "--manage-all-nodes",
        "--node-ip=127.0.0.1",
        "--node-lease-duration-seconds=40",
        f"--cidr=127.{network}.0.0/16",
        f"--config={HERE / 'stages.yaml'}",
    ]


def external_metrics(queries: Path, pair: certificates.Pair, *, port: int) -> list[str]:
    """The rig's own metrics API, a Python process."""
    module = processes.module("tests.cluster.external_metrics")
    secured = [f"--certificate={pair.certificate}", f"--key={pair.key}"]
    return [*module, f"--port={port}", f"--queries={queries}", *secured]
