"""A node group that grows: in place of a cluster autoscaler, which no machine without a cloud can have.

It does what counts for those who wait: a pod that the scheduler finds no node for gets one after a delay, until the
group is as large as it may be; then it stays Pending, and says why.
"""

import dataclasses
import threading
import time
from types import TracebackType
from typing import Any, Self

from kubernetes import client

from tests.cluster import nodes, plane

_LOOK_S = 0.5


class GrowingGroup:
    """Adds nodes of `group` (which has none at first) for pending pods; a context manager.

    Args:
        group: reserved, so that the pods it grows for are those that tolerate it.
        delay_s: seconds from the look that finds a pod waiting until its node is there.
        most: nodes at most.
    """

    def __init__(self, control_plane: plane.ControlPlane, group: nodes.Group, *, delay_s: float, most: int) -> None:
        self._plane = control_plane
        self._group = group
        self._delay_s = delay_s
        self._most = most
        self._made = 0
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"growth of {group.name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave.set()
        self._thread.join()
        chosen = f"--selector={nodes.GROUP}={self._group.name}"
        self._plane.kubectl("delete", "nodes", chosen, "--ignore-not-found")

    @property
    def size(self) -> int:
        """How many nodes it has added."""
        return self._made

    def _run(self) -> None:
        ordered: list[float] = []  # when each node that is on its way arrives
        with self._plane.api() as api:
            while not self._leave.wait(_LOOK_S):
                now = time.monotonic()
                arrived = [due for due in ordered if due <= now]
                ordered = [due for due in ordered if due > now]
                for _ in arrived:
                    self._add(api)
                missing = min(self._wanted(api) - len(ordered), self._most - self._made - len(ordered))
                ordered += [now + self._delay_s] * max(0, missing if not arrived else 0)

    def _wanted(self, api: client.ApiClient) -> int:
        """Nodes for the pods that wait for this group."""
        listed = client.CoreV1Api(api).list_pod_for_all_namespaces(field_selector="status.phase=Pending").items
        gpus = sum(_gpus(pod) for pod in listed if self._is_for(pod))
        return -(-gpus // self._group.gpus)

    def _is_for(self, pod: Any) -> bool:  # noqa: ANN401  (the library's models carry no types)
        scheduled = next((one for one in pod.status.conditions or [] if one.type == "PodScheduled"), None)
        tolerated = any(one.key == nodes.GROUP and one.value == self._group.name for one in pod.spec.tolerations or [])
        return tolerated and scheduled is not None and scheduled.reason == "Unschedulable"

    def _add(self, api: client.ApiClient) -> None:
        nodes.create(api, dataclasses.replace(self._group, count=1), first=self._made)
        self._made += 1


def _gpus(pod: Any) -> int:  # noqa: ANN401  (likewise)
    limits = (one.resources.limits or {} for one in pod.spec.containers)
    return sum(int(one.get("nvidia.com/gpu", 0)) for one in limits)
