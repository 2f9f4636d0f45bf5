"""What a pod mounts, as folders of this machine: ConfigMaps, Secrets, tokens, the downward API, empty folders."""

import base64
import itertools
import re
import shutil
from collections.abc import Callable  # noqa: TC003  (the annotation of a local)
from pathlib import Path
from typing import Any

from kubernetes import client

Json = dict[str, Any]
Files = dict[str, bytes]
TOKEN_VALID_S = 3600
_generations = itertools.count(1)


class UnsupportedError(RuntimeError):
    """The pod asks for something that the rig's kubelet cannot do."""


class NotYetError(RuntimeError):
    """A ConfigMap or Secret that the pod needs does not exist (yet)."""


class Sources:
    """Reads what stands behind the volumes and variables of one pod."""

    def __init__(self, api: client.ApiClient, pod: Json) -> None:
        self._core = client.CoreV1Api(api)
        self.pod = pod
        self.namespace: str = pod["metadata"]["namespace"]

    def files(self, volume: Json) -> Files | None:
        """Return the files of a volume by name; None for an empty folder that belongs to the pod."""
        if "emptyDir" in volume:
            return None
        if "projected" in volume:
            parts = [self._source(kind, body) for one in volume["projected"]["sources"] for kind, body in one.items()]
            return {name: content for part in parts for name, content in part.items()}
        (kind,) = (name for name in volume if name != "name")
        return self._source(kind, volume[kind])

    def data(self, kind: str, name: str, *, optional: bool = False) -> Files:
        """Return what a ConfigMap (`configMap`) or Secret (`secret`) holds."""
        read = {"configMap": self._core.read_namespaced_config_map, "secret": self._core.read_namespaced_secret}[kind]
        try:
            found = read(name, self.namespace)
        except client.ApiException as error:
            if error.status == 404 and optional:
                return {}
            raise NotYetError(f"{kind} {self.namespace}/{name}: {error.reason}") from error
        if kind == "secret":
            return {key: base64.b64decode(value) for key, value in (found.data or {}).items()}
        texts = {key: value.encode() for key, value in (found.data or {}).items()}
        return texts | {key: base64.b64decode(value) for key, value in (found.binary_data or {}).items()}

    def field(self, path: str) -> str:
        """Return a field of the pod, as the downward API does."""
        keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        if keyed:
            return str(self.pod["metadata"].get(keyed[1], {}).get(keyed[2], ""))
        value: Any = self.pod
        for part in path.split("."):
            value = value.get(part, {})
        if isinstance(value, dict):
            raise UnsupportedError(f"fieldRef {path}")
        return str(value)

    def hosts(self) -> str:
        """Return the file of host names: the Services of the namespace and who answers, in place of a DNS."""
        lines = ["127.0.0.1 localhost"]
        for service in self._core.list_namespaced_service(self.namespace).items:
            selector = ",".join(f"{key}={value}" for key, value in (service.spec.selector or {}).items())
            pods = self._core.list_namespaced_pod(self.namespace, label_selector=selector).items if selector else []
            name = f"{service.metadata.name}.{self.namespace}"
            lines += [f"{pod.status.pod_ip} {name} {name}.svc" for pod in pods if pod.status.pod_ip]
        return "\n".join(lines) + "\n"

    def _source(self, kind: str, body: Json) -> Files:
        readers: dict[str, Callable[[Json], Files]] = {
            "configMap": lambda one: _chosen(self.data(kind, one["name"], optional=one.get("optional", False)), one),
            "secret": lambda one: _chosen(
                self.data(kind, one.get("secretName") or one["name"], optional=one.get("optional", False)), one
            ),
            "downwardAPI": lambda one: {
                item["path"]: self.field(item["fieldRef"]["fieldPath"]).encode() for item in one.get("items", [])
            },
            "serviceAccountToken": self._token,
        }
        if kind not in readers:
            raise UnsupportedError(f"volume of kind {kind}")
        return readers[kind](body)

    def _token(self, body: Json) -> Files:
        """A real token, bound to the pod: it dies with the pod."""
        place = self.pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": place["name"], "uid": place["uid"]}
        wanted = {"boundObjectRef": bound, "audiences": [body["audience"]] if body.get("audience") else []}
        wanted["expirationSeconds"] = body.get("expirationSeconds", TOKEN_VALID_S)
        account = self.pod["spec"].get("serviceAccountName", "default")
        made = self._core.create_namespaced_service_account_token(account, self.namespace, {"spec": wanted})
        return {body["path"]: made.status.token.encode()}


def write(folder: Path, files: Files) -> None:
    """Bring `folder` to these files, all at once, by the exchange of a link as a kubelet does it."""
    data = folder / f"..{next(_generations)}"
    data.mkdir(parents=True)
    for name, content in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(content)
    before = (folder / "..data").resolve() if (folder / "..data").exists() else None
    fresh = folder / "..data_new"
    fresh.symlink_to(data.name)
    fresh.replace(folder / "..data")
    tops = {name.split("/")[0] for name in files}
    for path in folder.iterdir():
        if not path.name.startswith("..") and path.name not in tops:
            path.unlink()
    for name in tops:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    if before is not None:
        shutil.rmtree(before)


def _chosen(files: Files, source: Json) -> Files:
    items = source.get("items")
    return files if items is None else {item["path"]: files[item["key"]] for item in items}
