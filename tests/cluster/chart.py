"""The chart, installed by real Helm, and run: its pods are processes as the rendered manifests describe (kubelet.py).

`installed` is the short way; `Helm` is the command, for upgrade, rollback, test and uninstall.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import binaries, kubelet, plane
from tests.servers import processes

CHART = processes.CHECKOUT / "helm" / "floorcast"
TIMEOUT_S = 90


class HelmError(RuntimeError):
    """Helm ended with an error; carries what it said."""


class Helm:
    """Call it with the arguments of helm; it returns what helm prints.

    Args:
        state: folder for Helm's own files, so that nothing of the user's is read.
        kubeconfig: who it is; None for what needs no cluster, such as template and lint.

    Raises (when called):
        HelmError: helm ended with an error.
    """

    def __init__(self, state: Path, kubeconfig: Path | None = None) -> None:
        self._command = [str(binaries.ensure(binaries.HELM))]
        self._command += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
        self._homes = {name: str(state / "helm" / name) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME")}
        self._homes["HELM_DATA_HOME"] = str(state / "helm" / "data")

    def __call__(self, *arguments: str, values: dict[str, Any] | None = None) -> str:
        command = [*self._command, *arguments, *(["--values=-"] if values is not None else [])]
        ran = subprocess.run(  # noqa: S603  (the arguments are the tests' own)
            command,
            input=yaml.safe_dump(values or {}),
            env={"PATH": "/usr/bin:/bin", "HOME": self._homes["HELM_DATA_HOME"], **self._homes},
            text=True,
            capture_output=True,
            check=False,
        )
        if ran.returncode != 0:
            raise HelmError(f"helm {' '.join(arguments)}: {ran.stderr.strip()}")
        return ran.stdout


@contextmanager
def installed(
    control_plane: plane.ControlPlane, namespace: str, values: dict[str, Any], *, release: str = "floorcast"
) -> Iterator[kubelet.Kubelet]:
    """Install the chart and wait until its pods are Ready; uninstalls afterwards."""
    helm = Helm(control_plane.state, control_plane.kubeconfig)
    place = (f"--namespace={namespace}", "--wait", f"--timeout={TIMEOUT_S}s")
    with kubelet.Kubelet(control_plane, namespace) as running:
        helm("install", release, str(CHART), *place, values=values)
        try:
            yield running
        finally:
            helm("uninstall", release, *place)
