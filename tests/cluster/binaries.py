"""The programs of the control plane, built from source by the Go of the virtual environment and kept in the cache.

Each folder of `modules` pins one program with all it depends on (go.mod, go.sum): their dependencies must not mix.
"""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.servers import cache, processes

MODULES = Path(__file__).parent / "modules"
VERSION_OF_KUBERNETES = "v1.36.3"
VERSION_OF_KEDA = "v2.21.0"
_KEDA = "github.com/kedacore/keda/v2"
_STAMP = "k8s.io/component-base/version"
_KUBERNETES_FLAGS = (  # without them the API server calls itself v0.0.0, and clients choose features by its version
    f"-X {_STAMP}.gitVersion={VERSION_OF_KUBERNETES} -X {_STAMP}.gitMajor=1 -X {_STAMP}.gitMinor=36"
)


class BuildError(RuntimeError):
    """Go could not build a program; carries the end of its output."""


@dataclass(frozen=True)
class Program:
    """What to build: `package` of the module folder, linked with `flags`."""

    name: str
    module: str
    package: str
    version: str
    flags: str = ""

    def key(self) -> str:
        """Name the cache folder: it changes with everything the binary depends on but the Go version."""
        pins = [(MODULES / self.module / name).read_bytes() for name in ("go.mod", "go.sum")]
        digest = hashlib.sha256(b"".join([*pins, self.flags.encode()])).hexdigest()
        return f"{self.name}-{self.version}-{digest[:12]}"


def _of_kubernetes(name: str) -> Program:
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", VERSION_OF_KUBERNETES, _KUBERNETES_FLAGS)


def _of_keda(name: str) -> Program:
    flags = f"-X {_KEDA}/version.Version={VERSION_OF_KEDA.removeprefix('v')}"
    return Program(f"keda-{name}", "keda", f"{_KEDA}/cmd/{name}", VERSION_OF_KEDA, flags)


ETCD = Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", "v3.6.16")
KWOK = Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "v0.8.0")
API_SERVER = _of_kubernetes("kube-apiserver")
CONTROLLERS = _of_kubernetes("kube-controller-manager")
SCHEDULER = _of_kubernetes("kube-scheduler")
CONTROL_PLANE = (ETCD, KWOK, API_SERVER, CONTROLLERS, SCHEDULER)
HELM = Program(
    "helm", "helm", "helm.sh/helm/v4/cmd/helm", "v4.3.1", "-X helm.sh/helm/v4/internal/version.version=v4.3.1"
)
KEDA_OPERATOR = _of_keda("operator")
KEDA_ADAPTER = _of_keda("adapter")
KEDA = (KEDA_OPERATOR, KEDA_ADAPTER)
ALL = (*CONTROL_PLANE, HELM, *KEDA)  # in the order in which tests need them


def ensure(program: Program) -> Path:
    """Return the path of the binary, built first if the cache lacks it (minutes; see docs/cluster-rig.md).

    Raises:
        BuildError: Go is missing or failed.
    """
    return cache.entry(program.key(), lambda folder: _build(program, folder)) / program.name


def sources(program: Program) -> Path:
    """Return the folder of the module that a program is built from, fetched first if Go's cache lacks it.

    Raises:
        BuildError: Go cannot fetch it.
    """
    module = program.package.split("/cmd/")[0]
    got = subprocess.run(  # noqa: S603  (the command is ours)
        [str(tool("go")), "mod", "download", "-json", module],
        cwd=MODULES / program.module,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if got.returncode != 0:
        raise BuildError(f"fetching {module} failed: {got.stdout}{got.stderr}")
    return Path(json.loads(got.stdout)["Dir"])


def tool(name: str) -> Path:
    """Return a program the virtual environment brings: `go` or `kubectl`.

    Raises:
        BuildError: the dependency group `rig` is not installed.
    """
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise BuildError(f"{path} is missing: install requirements-dev.lock (group rig)")
    return path


def _build(program: Program, folder: Path) -> None:
    output = folder / program.name
    log = folder / "build.log"
    linking = f"-s -w {program.flags}"
    command = ["nice", str(tool("go")), "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    command += ["-ldflags", linking, "-o", str(output), program.package]
    with log.open("wb") as lines:
        built = subprocess.run(  # noqa: S603  (the command is ours)
            command,
            cwd=MODULES / program.module,
            env=_environment(),
            stdout=lines,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if built.returncode != 0:
        raise BuildError(f"building {program.name} failed:\n{processes.tail(log)}")


def _environment() -> dict[str, str]:
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}
