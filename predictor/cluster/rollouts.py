"""Whether a workload is being rolled out. Pods that are merely still warming up after a scale-up are no rollout."""

from predictor.cluster import fields
from predictor.cluster.fields import Json
from predictor.targets import Kind


def under_way(kind: str, workload: Json) -> bool:
    """Whether pods of an old version run, or the controller has not looked at the newest version yet."""
    if kind == Kind.ROLLOUT:
        return _rollout(workload)
    seen = fields.integer(workload, "status", "observedGeneration")
    if seen is None and kind not in set(Kind):
        return False  # its controller need not say how far it has looked
    if (seen or 0) < fields.count(workload, "metadata", "generation"):
        return True
    if kind == Kind.LEADER_WORKER_SET:
        return fields.text(fields.condition(workload, "UpdateInProgress"), "status") == "True"
    if kind == Kind.DEPLOYMENT:
        return _deployment(workload)
    return kind == Kind.STATEFUL_SET and _stateful_set(workload)


def asked_for(workload: Json) -> int:
    """spec.replicas; one where it is left out."""
    replicas = fields.integer(workload, "spec", "replicas")
    return 1 if replicas is None else replicas


def one_by_one(kind: str, workload: Json) -> bool:
    """Whether its controller starts a pod only once the one before is Ready: n replicas take n warm-ups."""
    policy = fields.text(workload, "spec", "podManagementPolicy")
    return kind == Kind.STATEFUL_SET and policy != "Parallel"


def paused(kind: str, workload: Json) -> bool:
    """Whether the controller does not scale it for now: an Argo Rollout that somebody paused, unlike a Deployment."""
    return kind == Kind.ROLLOUT and fields.truth(workload, "spec", "paused")


def _deployment(workload: Json) -> bool:
    updated = fields.count(workload, "status", "updatedReplicas")
    if fields.count(workload, "status", "replicas") > updated:
        return True
    # Fewer of the new version than asked for, and no old ones: a Recreate between the two, unless a quota refuses
    # the pods, which may last for days and is no reason to hold.
    refused = fields.text(fields.condition(workload, "ReplicaFailure"), "status") == "True"
    return updated < asked_for(workload) and not refused


def _stateful_set(workload: Json) -> bool:
    current, update = (fields.text(workload, "status", key) for key in ("currentRevision", "updateRevision"))
    if current == update or not update:
        return False
    if fields.text(workload, "spec", "updateStrategy", "type") == "OnDelete":
        return False  # the old pods stay until somebody deletes them
    partition = fields.count(workload, "spec", "updateStrategy", "rollingUpdate", "partition")
    return fields.count(workload, "status", "updatedReplicas") < max(asked_for(workload) - partition, 0)


def _rollout(workload: Json) -> bool:
    """Argo's own way of telling: the version that is wanted is not the one that was found good."""
    stable, current = (fields.text(workload, "status", key) for key in ("stableRS", "currentPodHash"))
    return bool(stable and current) and stable != current
