"""Whether a workload is being rolled out. Pods that are merely still warming up after a scale-up are no rollout."""

from predictor.cluster import fields
from predictor.cluster.fields import Json
from predictor.targets import Kind


def under_way(kind: Kind, workload: Json) -> bool:
    """Whether pods of an old version run, or the controller has not looked at the newest version yet."""
    seen = fields.count(workload, "status", "observedGeneration")
    if seen < fields.count(workload, "metadata", "generation"):
        return True
    return _deployment(workload) if kind is Kind.DEPLOYMENT else _stateful_set(workload)


def asked_for(workload: Json) -> int:
    """spec.replicas; one where it is left out."""
    replicas = fields.integer(workload, "spec", "replicas")
    return 1 if replicas is None else replicas


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
