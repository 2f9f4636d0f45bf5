"""Why a pod is not Ready, in the words of whoever knows: the scheduler, the kubelet, the container runtime."""

from predictor.cluster import fields
from predictor.cluster.fields import Json

SHORT = 300  # characters of a message: a scheduler lists what is wrong with every node
UNKNOWN = "NotReady"


def of(pod: Json) -> tuple[str, str]:
    """A reason as the cluster writes it ("Unschedulable", "ImagePullBackOff", "CrashLoopBackOff"), and its message."""
    return _unscheduled(pod) or _waiting(pod) or _failing(pod) or (UNKNOWN, _unready(pod))


def unschedulable(pod: Json) -> bool:
    """Whether the scheduler has no node for it."""
    scheduled = fields.condition(pod, "PodScheduled")
    return fields.text(scheduled, "status") == "False"


def _unscheduled(pod: Json) -> tuple[str, str] | None:
    if not unschedulable(pod):
        return None
    scheduled = fields.condition(pod, "PodScheduled")
    return fields.text(scheduled, "reason") or "Unschedulable", fields.text(scheduled, "message")[:SHORT]


def _waiting(pod: Json) -> tuple[str, str] | None:
    """What a container waits for; the first one that says so, init containers before others."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in fields.mappings(pod, "status", kind):
            waiting = fields.mapping(container, "state", "waiting")
            if reason := fields.text(waiting, "reason"):
                return reason, fields.text(waiting, "message")[:SHORT]
    return None


def _failing(pod: Json) -> tuple[str, str] | None:
    """A container that ended before, and why."""
    for container in fields.mappings(pod, "status", "containerStatuses"):
        ended = fields.mapping(container, "lastState", "terminated")
        if reason := fields.text(ended, "reason"):
            code = fields.integer(ended, "exitCode")
            return reason, f"exit code {code}, {fields.count(container, 'restartCount')} restarts"
    return None


def _unready(pod: Json) -> str:
    return fields.text(fields.condition(pod, "Ready"), "message")[:SHORT] or "no container says why"
