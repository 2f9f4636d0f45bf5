"""A kubelet for one namespace: its pods are processes of this machine, run as their manifests describe.

What is real: arguments, variables, mounted ConfigMaps and Secrets (exchanged when they change), the token of the
ServiceAccount bound to the pod, a read-only root, readiness probes, restarts, the exit codes of Jobs, SIGTERM and
grace on deletion. The names of Services are those of the namespace, as they stand when the pod starts. What is not:
images (the program is the checkout's), users, cgroups, seccomp, init containers and networks. Every pod shares this
machine's; so that two can listen on the same port, a server is told to listen on the pod's own loopback address
(`ADDRESS`), the one variable that the manifest does not name.
"""

import dataclasses
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
from kubernetes import client

from tests.cluster import containers, kubectl, plane, podroot, volumes
from tests.servers import processes, waiting

Json = dict[str, Any]
ADDRESS = "FLOORCAST__SERVER__HOST"
SELECTOR = "rig.floorcast.dev/kubelet=processes"  # every node has the label; stages.yaml leaves pods that ask for it
_LOOK_S = 0.25
_REFRESH_EVERY = 4  # looks between two comparisons of what is mounted; a real kubelet takes up to a minute


@dataclasses.dataclass
class Pod:
    """One pod with its process; `process.pause()` and `.resume()` are a machine that stalls."""

    manifest: Json
    folder: Path
    process: processes.Child
    mounted: dict[str, volumes.Files]
    restarts: int = 0
    said: Json = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the pod."""
        return str(self.manifest["metadata"]["name"])

    @property
    def container(self) -> Json:
        """Its one container."""
        found: Json = self.manifest["spec"]["containers"][0]
        return found

    @property
    def url(self) -> str:
        """Where its first declared port answers."""
        return f"http://{self.manifest['status']['podIP']}:{self.container['ports'][0]['containerPort']}"

    def crash(self) -> None:
        """SIGKILL; the kubelet starts it again if the pod says so."""
        os.killpg(self.process.pid, signal.SIGKILL)

    @property
    def log(self) -> str:
        """What it has written so far."""
        path = self.folder / "container.log"
        return path.read_text() if path.exists() else ""


class Kubelet:
    """Runs every pod of `namespace`, which is made if there is none; a context manager.

    Enter it before pods are made there. On exit all processes end; the namespace stays.
    """

    def __init__(self, control_plane: plane.ControlPlane, namespace: str) -> None:
        self.plane = control_plane
        self.namespace = namespace
        self._folder = control_plane.state / "pods" / namespace
        self._pods: dict[str, Pod] = {}
        self._leave = threading.Event()
        self._trouble: list[Exception] = []
        self._looks = 0
        # Children die with the thread that started them: this one starts them all, and ends them.
        self._thread = threading.Thread(target=self._run, name=f"kubelet {namespace}", daemon=True)

    def __enter__(self) -> Self:
        key = "scheduler.alpha.kubernetes.io/node-selector"
        metadata = {"name": self.namespace, "annotations": {key: SELECTOR}}
        self.plane.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}], manager="kubelet")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave.set()
        self._thread.join()
        if self._trouble and error is None:
            raise self._trouble[0]

    def pods(self) -> list[Pod]:
        """Return the pods that have a process, by name."""
        return sorted(self._pods.values(), key=lambda pod: pod.name)

    def await_pods(self, count: int, *, within_s: float = 60.0) -> list[Pod]:
        """Return `count` pods once that many have a process and no others have."""

        def exactly() -> bool:
            if self._trouble:
                raise self._trouble[0]
            return len(self.pods()) == count

        waiting.until(exactly, within_s=within_s, what=f"{count} pods as processes in {self.namespace}")
        return self.pods()

    def _run(self) -> None:
        with self.plane.api() as api:
            try:
                while not self._leave.wait(_LOOK_S):
                    self._look(api)
            except Exception as error:  # noqa: BLE001  (told to whoever waits, and on exit)
                self._trouble.append(error)
            finally:
                for pod in self._pods.values():
                    pod.process.stop()

    def _look(self, api: client.ApiClient) -> None:
        core = client.CoreV1Api(api)
        listed = json.loads(core.list_namespaced_pod(self.namespace, _preload_content=False).data)["items"]
        for manifest in listed:
            key, gone = manifest["metadata"]["uid"], "deletionTimestamp" in manifest["metadata"]
            if key in self._pods:
                self._pods[key].manifest = manifest
                self._end(self._pods[key]) if gone else self._tend(api, self._pods[key])
            elif gone:
                self._remove(manifest)
            elif manifest.get("status", {}).get("podIP") and manifest["status"]["phase"] == "Pending":
                self._start(api, manifest)
        for key in set(self._pods) - {one["metadata"]["uid"] for one in listed}:
            self._pods.pop(key).process.stop()
        self._looks += 1

    def _start(self, api: client.ApiClient, manifest: Json) -> None:
        if manifest["spec"].get("initContainers") or len(manifest["spec"]["containers"]) != 1:
            raise volumes.UnsupportedError(f"pod {manifest['metadata']['name']} has not exactly one container")
        sources = volumes.Sources(api, manifest)
        folder = self._folder / manifest["metadata"]["name"]
        try:
            spec, mounted = _prepare(sources, folder, self.plane.url)
        except volumes.NotYetError:
            return  # as a kubelet: tried again until it is there
        file = spec.write(folder / "spec.json")
        command = [
            "unshare",
            "--mount",
            "--propagation=private",
            sys.executable,
            str(Path(podroot.__file__)),
            str(file),
        ]
        grace = manifest["spec"].get("terminationGracePeriodSeconds", 30)
        name = manifest["metadata"]["name"]
        child = processes.Child(name, command, log=folder / "container.log", grace_s=grace)
        child.start()
        self._pods[manifest["metadata"]["uid"]] = Pod(manifest, folder, child, mounted)

    def _tend(self, api: client.ApiClient, pod: Pod) -> None:
        code = pod.process.exit_code
        if code is not None and pod.said.get("phase") not in ("Succeeded", "Failed"):
            self._ended(pod, code)
        elif code is None:
            self._say(pod, _running(pod, ready=_ready(pod)))
            if self._looks % _REFRESH_EVERY == 0:
                _refresh(volumes.Sources(api, pod.manifest), pod)

    def _ended(self, pod: Pod, code: int) -> None:
        policy = pod.manifest["spec"]["restartPolicy"]
        if policy == "Always" or (policy == "OnFailure" and code != 0):
            pod.restarts += 1
            pod.process.stop()
            pod.process.start()
            self._say(pod, _running(pod, ready=False))
        else:
            self._say(pod, _finished(pod, code))

    def _end(self, pod: Pod) -> None:
        pod.process.stop()
        self._remove(pod.manifest)
        self._pods.pop(pod.manifest["metadata"]["uid"])

    def _remove(self, manifest: Json) -> None:
        name = manifest["metadata"]["name"]
        place = f"--namespace={self.namespace}"
        self.plane.kubectl("delete", "pod", name, place, "--grace-period=0", "--force", "--ignore-not-found")

    def _say(self, pod: Pod, status: Json) -> None:
        """Write the pod's status, if it differs from what was written before."""
        if status == pod.said:
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told = {**status, "conditions": [{**one, "lastTransitionTime": now} for one in status["conditions"]]}
        place = ("pod", pod.name, f"--namespace={self.namespace}", "--subresource=status", "--type=strategic")
        try:
            self.plane.kubectl("patch", *place, f"--patch={json.dumps({'status': told})}")
        except kubectl.KubectlError:
            return  # deleted meanwhile: the next look sees it
        pod.said = status


def _prepare(sources: volumes.Sources, folder: Path, api_server: str) -> tuple[podroot.Spec, dict[str, volumes.Files]]:
    container = sources.pod["spec"]["containers"][0]
    variables = containers.environment(container, sources, api_server)
    mounted = {}
    for volume in sources.pod["spec"].get("volumes", []):
        place = folder / "volumes" / volume["name"]
        place.mkdir(parents=True, exist_ok=True)
        files = sources.files(volume)
        if files is not None:
            mounted[volume["name"]] = files
            volumes.write(place, files)
    root = folder / "root"
    root.mkdir(exist_ok=True)
    hosts = folder / "hosts"
    hosts.write_text(sources.hosts())
    spec = podroot.Spec(
        root=str(root),
        mounts=(
            podroot.Mount(str(hosts), "/etc/hosts", read_only=True),
            *(_mount(one, folder) for one in container.get("volumeMounts", [])),
        ),
        keep=(str(processes.CHECKOUT), sys.prefix),
        read_only=containers.is_read_only(container),
        command=containers.command(container, variables),
        environment={**variables, ADDRESS: sources.field("status.podIP")},
    )
    return spec, mounted


def _mount(given: Json, folder: Path) -> podroot.Mount:
    source = folder / "volumes" / given["name"] / given.get("subPath", "")
    return podroot.Mount(str(source), given["mountPath"], read_only=bool(given.get("readOnly")))


def _refresh(sources: volumes.Sources, pod: Pod) -> None:
    """Exchange the files of ConfigMaps and Secrets that have changed; tokens stay, they are valid for an hour."""
    for volume in pod.manifest["spec"].get("volumes", []):
        if "configMap" not in volume and "secret" not in volume:
            continue
        try:
            files = sources.files(volume) or {}
        except volumes.NotYetError:
            continue  # removed: what is mounted stays, as with a kubelet
        if files != pod.mounted[volume["name"]]:
            volumes.write(pod.folder / "volumes" / volume["name"], files)
            pod.mounted[volume["name"]] = files


def _ready(pod: Pod) -> bool:
    probe: Json | None = pod.container.get("readinessProbe")
    if probe is None:
        return True
    asked = probe["httpGet"]
    number = containers.port(pod.container, asked["port"])
    try:
        return requests.get(f"http://{pod.manifest['status']['podIP']}:{number}{asked['path']}", timeout=1).ok
    except requests.RequestException:
        return False


def _running(pod: Pod, *, ready: bool) -> Json:
    return _status(pod, "Running", ready=ready, state={"running": {}, "terminated": None, "waiting": None})


def _finished(pod: Pod, code: int) -> Json:
    ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
    phase = "Failed" if code else "Succeeded"
    return _status(pod, phase, ready=False, state={"terminated": ended, "running": None, "waiting": None})


def _status(pod: Pod, phase: str, *, ready: bool, state: Json) -> Json:
    truth = "True" if ready else "False"
    container = {"name": pod.container["name"], "image": pod.container["image"], "imageID": "", "state": state}
    counts = {"ready": ready, "started": True, "restartCount": pod.restarts}
    return {
        "phase": phase,
        "conditions": [{"type": kind, "status": truth} for kind in ("Ready", "ContainersReady")],
        "containerStatuses": [{**container, **counts}],
    }
