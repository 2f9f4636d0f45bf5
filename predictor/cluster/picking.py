"""What is kept of a watched object. Pods come by the thousand, and nine tenths of one is nothing we look at."""

import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from predictor.cluster.fields import Json
from predictor.cluster.resources import PODS, Resource

Shape: TypeAlias = Mapping[str, Any]  # key -> shape of the value; None: as it is. A list has the shape of its items

_OWNER: Shape = dict.fromkeys(("apiVersion", "kind", "name", "uid", "controller"))
_METADATA: Shape = {
    **dict.fromkeys(("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")),
    "ownerReferences": _OWNER,
}
_CONDITION: Shape = dict.fromkeys(("type", "status", "lastTransitionTime", "reason", "message"))
_CONTAINER: Shape = {
    **dict.fromkeys(("name", "restartCount", "ready", "started")),
    "state": {
        "running": {"startedAt": None},
        "waiting": dict.fromkeys(("reason", "message")),
        "terminated": dict.fromkeys(("reason", "exitCode", "startedAt", "finishedAt")),
    },
    "lastState": {"terminated": dict.fromkeys(("reason", "exitCode"))},
}
_POD: Shape = {
    "metadata": _METADATA,
    "spec": {
        "nodeName": None,
        "nodeSelector": None,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
        "containers": {"name": None, "resources": {"requests": None, "limits": None}},
    },
    "status": {
        **dict.fromkeys(("phase", "reason", "message", "podIP", "startTime")),
        "conditions": _CONDITION,
        "containerStatuses": _CONTAINER,
        "initContainerStatuses": _CONTAINER,
    },
}
SHORT = 64  # characters of a text that is likely to come again: a name, a reason, a time
READ_CONDITIONS = frozenset({"Ready", "PodScheduled"})


def picked(resource: Resource, thing: Json, *, names_only: bool) -> Json:
    """The object with what is read of it; another resource than pods whole, for there are few."""
    if names_only:
        return _shaped(thing, {"metadata": _METADATA})
    if resource != PODS:
        return thing
    pod = _shaped(thing, _POD)
    conditions = pod.get("status", {}).get("conditions")
    if conditions:
        pod["status"]["conditions"] = [one for one in conditions if one.get("type") in READ_CONDITIONS]
    return pod


def _shaped(thing: Json, shape: Shape) -> Json:
    """Its keys are those of the shape, the same objects in every pod."""
    found: Json = {}
    for key, inner in shape.items():
        value = thing.get(key)
        if value is not None:
            found[key] = _value(value, inner)
    return found


def _value(value: Any, shape: Shape | None) -> Any:  # noqa: ANN401  (JSON)
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= SHORT else value
    if isinstance(value, list):
        return [_value(one, shape) for one in value]
    if isinstance(value, dict):
        return value if shape is None else _shaped(value, shape)
    return value
