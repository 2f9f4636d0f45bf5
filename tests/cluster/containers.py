"""What a container of a pod runs: command, variables and mounts, as the manifest and the Dockerfile say."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.cluster import volumes
from tests.servers import processes

Json = dict[str, Any]
IMAGE = processes.CHECKOUT / "Dockerfile"
_PROGRAMS = Path(sys.executable).parent  # in place of the image's /opt/floorcast/bin


def command(container: Json, environment: dict[str, str]) -> tuple[str, ...]:
    """Return program and arguments: the manifest's, else the image's."""
    entry = container.get("command") or _words("ENTRYPOINT")
    arguments = container.get("args") or ([] if container.get("command") else _words("CMD"))
    return tuple(_expanded(word, environment) for word in [*entry, *arguments])


def environment(container: Json, sources: volumes.Sources, api_server: str) -> dict[str, str]:
    """Return every variable the program sees: the image's, the kubelet's, the manifest's, and no others."""
    host, port = api_server.removeprefix("https://").split(":")
    found = _of_image() | {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    found["HOSTNAME"] = sources.field("metadata.name")
    for one in container.get("envFrom", []):
        found |= _all_of(one, sources)
    for one in container.get("env", []):
        value = _value(one, sources)
        if value is not None:
            found[one["name"]] = _expanded(value, found)
    return found


def is_read_only(container: Json) -> bool:
    """Whether its root file system refuses writes."""
    return bool(container.get("securityContext", {}).get("readOnlyRootFilesystem"))


def port(container: Json, named: int | str) -> int:
    """Return the number of a port that a probe names."""
    if isinstance(named, int):
        return named
    found: int = next(one["containerPort"] for one in container["ports"] if one.get("name") == named)
    return found


def _value(variable: Json, sources: volumes.Sources) -> str | None:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    ((kind, source),) = variable["valueFrom"].items()
    if kind == "fieldRef":
        return sources.field(source["fieldPath"])
    if kind in ("configMapKeyRef", "secretKeyRef"):
        optional = source.get("optional", False)
        content = sources.data(kind.removesuffix("KeyRef"), source["name"], optional=optional).get(source["key"])
        if content is None and not optional:
            raise volumes.NotYetError(f"no key {source['key']} in {kind.removesuffix('KeyRef')} {source['name']}")
        return None if content is None else content.decode()
    raise volumes.UnsupportedError(f"variable {variable['name']} from {kind}")


def _all_of(source: Json, sources: volumes.Sources) -> dict[str, str]:
    ((kind, reference),) = ((name, body) for name, body in source.items() if name.endswith("Ref"))
    found = sources.data(kind.removesuffix("Ref"), reference["name"], optional=reference.get("optional", False))
    return {source.get("prefix", "") + key: content.decode() for key, content in found.items()}


def _expanded(text: str, known: dict[str, str]) -> str:
    """Replace $(NAME) where NAME is known, as the kubelet does."""
    return re.sub(r"\$\((\w+)\)", lambda match: known.get(match[1], match[0]), text)


def _of_image() -> dict[str, str]:
    (line,) = re.findall(r"^ENV (.+)$", IMAGE.read_text(), re.MULTILINE)
    given = dict(one.split("=", maxsplit=1) for one in line.split())
    return given | {"PATH": f"{_PROGRAMS}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def _words(instruction: str) -> list[str]:
    """Return the list behind an instruction of the Dockerfile's last stage."""
    found: list[str] = json.loads(re.findall(rf"^{instruction} (\[.+\])$", IMAGE.read_text(), re.MULTILINE)[-1])
    return found
