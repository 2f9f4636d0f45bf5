"""The chart's external scaler with a certificate from a Secret, and with the one that takes its place."""

from pathlib import Path

import grpc
import pytest

from tests.cluster import certificates, chart, kubectl, kubelet, plane
from tests.cluster.test_chart_run import await_alive, values
from tests.servers import waiting

SECRET = "scaler-tls"  # noqa: S105  (a name)
PATIENCE_S = 120.0


class Authority:
    """Signs the Secret's certificate."""

    def __init__(self, folder: Path, home: str) -> None:
        folder.mkdir()
        self._pair = certificates.authority(folder, "authority")
        self._home = home
        self.name = f"floorcast.{home}"  # what KEDA would call it

    def put(self, call: kubectl.Kubectl) -> None:
        """Make the Secret, or renew it."""
        pair = certificates.issue(self._pair, "server", names=[f"DNS:{self.name}"])
        files = {"tls.crt": pair.certificate, "tls.key": pair.key}
        data = {key: path.read_text() for key, path in files.items()}
        metadata = {"namespace": self._home, "name": SECRET}
        call.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}])

    def answered_by(self, pod: kubelet.Pod) -> bool:
        """Whether who believes this authority gets a connection."""
        port = next(one["containerPort"] for one in pod.container["ports"] if one["name"] == "scaler")
        believed = grpc.ssl_channel_credentials(self._pair.certificate.read_bytes())
        options = (("grpc.ssl_target_name_override", self.name), ("grpc.use_local_subchannel_pool", 1))
        with grpc.secure_channel(f"{pod.manifest['status']['podIP']}:{port}", believed, options) as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=2)
            except grpc.FutureTimeoutError:
                return False
        return True


@pytest.mark.timeout(600, func_only=True)
def test_it_answers_with_the_secrets_certificate_and_with_the_renewed_one_without_a_restart(
    cluster: plane.ControlPlane, namespace: str, tmp_path: Path
) -> None:
    home = f"{namespace}-floorcast"
    first, second = (Authority(tmp_path / name, home) for name in ("first", "second"))
    told = values(namespace, external_scaler={"enabled": True})
    told |= {"externalScaler": {"tls": {"secretName": SECRET}}}
    helm = chart.Helm(cluster.state, cluster.kubeconfig)
    with kubelet.Kubelet(cluster, home) as pods:
        first.put(cluster.kubectl)
        helm("install", "floorcast", str(chart.CHART), f"--namespace={home}", values=told)
        pod = await_alive(pods)
        waiting.until(lambda: first.answered_by(pod), within_s=PATIENCE_S, what="an answer over TLS")
        assert not second.answered_by(pod)
        second.put(cluster.kubectl)
        waiting.until(lambda: second.answered_by(pod), within_s=PATIENCE_S, what="the renewed certificate")
        assert not first.answered_by(pod)
        assert pod.restarts == 0
        assert pod.log.count('"certificate of the external scaler renewed"') == 1
        cluster.kubectl("delete", "namespace", home, "--wait=false")
