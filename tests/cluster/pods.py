"""Which pods of one Deployment take requests, as a kube-proxy would see it."""

import threading
from dataclasses import dataclass
from typing import Any

import urllib3
from kubernetes import client, watch


@dataclass(frozen=True)
class Pod:
    """A Ready pod that is not being deleted."""

    name: str
    address: str


class ServingPods:
    """Follows the pods of a Deployment in a thread of its own, for as long as the process lives."""

    def __init__(self, api: client.ApiClient, *, namespace: str, deployment: str) -> None:
        self._core = client.CoreV1Api(api)
        self._namespace = namespace
        found = client.AppsV1Api(api).read_namespaced_deployment(deployment, namespace)
        self._selector = ",".join(f"{key}={value}" for key, value in found.spec.selector.match_labels.items())
        self._lock = threading.Lock()
        self._serving: dict[str, Pod] = {}
        self._pause = threading.Event()
        threading.Thread(target=self._follow, daemon=True).start()

    def now(self) -> dict[str, Pod]:
        """Return the serving pods by name."""
        with self._lock:
            return dict(self._serving)

    def _follow(self) -> None:
        while True:
            try:
                self._watch(self._list())
            except (client.ApiException, urllib3.exceptions.HTTPError):
                self._pause.wait(1.0)  # the API server is away or our place in its history is gone: list again

    def _list(self) -> str:
        listed = self._core.list_namespaced_pod(self._namespace, label_selector=self._selector)
        with self._lock:
            self._serving = {pod.metadata.name: _serving(pod) for pod in listed.items if _takes_requests(pod)}
        version: str = listed.metadata.resource_version
        return version

    def _watch(self, since: str) -> None:
        asked = {"label_selector": self._selector, "resource_version": since, "timeout_seconds": 300}
        for event in watch.Watch().stream(self._core.list_namespaced_pod, self._namespace, **asked):
            pod = event["object"]
            with self._lock:
                if event["type"] != "DELETED" and _takes_requests(pod):
                    self._serving[pod.metadata.name] = _serving(pod)
                else:
                    self._serving.pop(pod.metadata.name, None)


def _takes_requests(pod: Any) -> bool:  # noqa: ANN401  (the library's models carry no types)
    if pod.metadata.deletion_timestamp is not None or not pod.status.pod_ip:
        return False
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or [])


def _serving(pod: Any) -> Pod:  # noqa: ANN401  (likewise)
    return Pod(pod.metadata.name, pod.status.pod_ip)
