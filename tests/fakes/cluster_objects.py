"""Objects of a cluster as the API server shows them, with what the adapters look at."""

import datetime as dt
from typing import Any

from models.capacity.profile import Profile
from models.policy.planning import Objectives
from predictor.targets import Kind, Mode, Target

Json = dict[str, Any]
NOW = 1_800_000_000.0
NAMESPACE = "llm"


def target(name: str = "vllm", **changes: Any) -> Target:  # noqa: ANN401  (any field of Target)
    values: Json = {
        "namespace": NAMESPACE,
        "name": name,
        "kind": Kind.DEPLOYMENT,
        "engine": "vllm",
        "model": "llama",
        "mode": Mode.CONTROL,
        "objectives": Objectives(Profile(concurrency=40.0)),
        "warm_up": 100.0,
        "minimum": 2,
        "maximum": 10,
    }
    return Target(**{**values, **changes})


def at(seconds: float) -> str:
    """The API server's writing of NOW + seconds."""
    return dt.datetime.fromtimestamp(NOW + seconds, tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def meta(name: str, uid: str = "", **more: object) -> Json:
    return {"name": name, "namespace": NAMESPACE, "uid": uid or f"uid-{name}", **more}


def owned_by(kind: str, name: str, uid: str = "") -> Json:
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}]}


def deployment(name: str = "vllm", *, replicas: int | None = 3, **status: object) -> Json:
    spec: Json = {"selector": {"matchLabels": {"app": name}}}
    if replicas is not None:
        spec["replicas"] = replicas
    count = 1 if replicas is None else replicas
    steady = {"observedGeneration": 1, "replicas": count, "updatedReplicas": count}
    return {"metadata": meta(name, generation=1), "spec": spec, "status": {**steady, **status}}


def stateful_set(name: str = "vllm", *, replicas: int = 3, **status: object) -> Json:
    steady = {"observedGeneration": 1, "replicas": replicas, "currentRevision": "a", "updateRevision": "a"}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    return {"metadata": meta(name, generation=1), "spec": spec, "status": {**steady, **status}}


def replica_set(deployment_name: str = "vllm", *, revision: str = "1") -> Json:
    return {"metadata": meta(f"{deployment_name}-{revision}", **owned_by("Deployment", deployment_name))}


def hpa(name: str = "vllm-hpa", *, low: int | None = 2, high: int = 10, aim: str = "vllm", **metadata: object) -> Json:
    spec: Json = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": aim}, "maxReplicas": high}
    if low is not None:
        spec["minReplicas"] = low
    return {"metadata": meta(name, **metadata), "spec": spec, "status": {"conditions": None}}


def condition(kind: str, status: str, *, since: float = 0.0, reason: str = "", message: str = "") -> Json:
    turned = {"lastTransitionTime": at(since)}
    return {"type": kind, "status": status, "reason": reason, "message": message, **turned}


def pod(
    name: str,
    *,
    created: float,
    ready: float | None = None,
    fallen: float | None = None,
    **more: Any,  # noqa: ANN401
) -> Json:
    """A pod of the Deployment vllm; times are seconds from NOW.

    Args:
        name: its name.
        created: when it was made; scheduled at once, its container started a second later.
        ready: since when it is Ready; None while it never was.
        fallen: since when it is not Ready any more.
        more: `restarts`, `phase`, `deleted` (when), `owner` (ReplicaSet).
    """
    ready_condition = condition("Ready", "False", since=created)
    if ready is not None:
        ready_condition = condition("Ready", "True", since=ready)
    if fallen is not None:
        ready_condition = condition("Ready", "False", since=fallen)
    container = {"restartCount": more.get("restarts", 0), "state": {"running": {"startedAt": at(created + 1)}}}
    owner = owned_by("ReplicaSet", more.get("owner", "vllm-1"))
    deleted = {"deletionTimestamp": at(more["deleted"])} if "deleted" in more else {}
    return {
        "metadata": meta(name, creationTimestamp=at(created), **owner, **deleted),
        "status": {
            "phase": more.get("phase", "Running"),
            "conditions": [condition("PodScheduled", "True", since=created), ready_condition],
            "containerStatuses": [container],
        },
    }
