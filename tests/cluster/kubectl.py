"""kubectl of the virtual environment, bound to one kubeconfig."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import binaries


class KubectlError(RuntimeError):
    """kubectl ended with an error; carries what it said."""


class Kubectl:
    """Call it with the arguments of kubectl; it returns what kubectl prints.

    Raises (each method):
        KubectlError: kubectl ended with an error.
    """

    def __init__(self, config: Path) -> None:
        self._command = [str(binaries.tool("kubectl")), f"--kubeconfig={config}"]

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        ran = subprocess.run(  # noqa: S603  (the arguments are the tests' own)
            [*self._command, *arguments], input=stdin, text=True, capture_output=True, check=False
        )
        if ran.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {ran.stderr.strip()}")
        return ran.stdout

    def json(self, *arguments: str) -> dict[str, Any]:
        """Return the parsed answer of a command that takes `--output=json`."""
        answer: dict[str, Any] = json.loads(self(*arguments, "--output=json"))
        return answer

    def apply(self, manifests: Iterable[dict[str, Any]], *, manager: str = "rig") -> None:
        """Apply objects on the server's side under the field manager `manager`."""
        documents = yaml.safe_dump_all(manifests)
        self("apply", "--server-side", f"--field-manager={manager}", "--filename=-", stdin=documents)
