"""Workloads without an autoscaler: the replica count through the scale subresource of any kind that has one.

Nothing is written to the workload object itself: a permission to patch it would be one to change its image. There is
no need either. Base and maximum come from the configuration, and who set the count last stands in the object's
managedFields. Nor is there a minimum of the user's to give back: a release leaves the count as it is, because the count
of the day Floorcast came may be far too small for the load of the day it goes.
"""

from predictor.cluster import client, errors, fields, marks, permissions, resources, rollouts
from predictor.cluster.errors import NotOursError
from predictor.cluster.fields import Json
from predictor.cluster.owners import Number, Object
from predictor.ports import Owner, Workload
from predictor.targets import Target

TRIES = 3  # the workload's status changes with every pod, and its version with it

# Makers whose own field is worth naming: kind -> what to set instead.
MAKERS = {
    "Revision": "a new minimum on a Knative Service makes a new revision, which loads the model anew; raise"
    " autoscaling.knative.dev/min-scale with a deployment of yours, or serve through KServe's Standard mode",
    "PodAutoscaler": "set spec.minReplicas of the PodAutoscaler",
    "NIMService": "set spec.scale.hpa.minReplicas, or spec.replicas, of the NIMService",
    "DynamoComponentDeployment": "set the replicas of the service in the DynamoGraphDeployment",
    "DynamoGraphDeployment": "set the replicas of the service in the DynamoGraphDeployment",
    "VLLMRuntime": "set spec.deploymentConfig.replicas of the VLLMRuntime",
    "LLMInferenceService": "set spec.replicas of the LLMInferenceService",
    "EffectiveHorizontalPodAutoscaler": "set spec.minReplicas of the EffectiveHorizontalPodAutoscaler",
}


class ScaleActuator:
    """Sets the replica count itself: here Floorcast is the autoscaler."""

    owner = Owner.SCALE

    def __init__(self, api: client.Api) -> None:
        self._api = api
        self._proven: set[str] = set()  # uids of workloads for which the API server has accepted a write, if a dry run

    def number(self, workload: Json, target: Target) -> Number:
        """The replica count, whoever may write it."""
        return Number(
            owner=self.owner,
            thing=thing(workload, target),
            standing=self.count(workload, target),
            base=target.minimum,
            maximum=target.maximum,
            adopted=_is_ours(workload, target),
            advice=made(workload, target),
            problem=_problem(workload, target),
            managers=fields.managers_of(workload, "spec", "replicas"),
        )

    def count(self, workload: Json, target: Target) -> int:
        """The replicas a workload asks for; of a kind that is not known, by its scale subresource.

        Raises:
            NoSelectorError: the scale of a kind that is not known does not say which pods are meant.
        """
        if not target.resource:
            return rollouts.asked_for(workload)
        scale = self._read(target)
        _refuse_without_selector(scale, target)
        return fields.count(scale, "spec", "replicas")

    def manager(self, workload: Json) -> str:
        """Who set the count last; empty where that is not recorded."""
        return fields.manager_of(workload, "spec", "replicas")

    def read(self, target: Target) -> int:
        """The count at this moment."""
        return fields.count(self._read(target), "spec", "replicas")

    def write(self, target: Target, replicas: int, *, thing: Object, seen: Workload) -> int:
        """Sets the count, at least one and at most the maximum that was seen."""
        wanted = min(max(replicas, 1), seen.maximum)
        for _ in range(TRIES):
            scale = self._read(target)
            _refuse_if_changed(scale, thing, seen)
            _refuse_without_selector(scale, target)
            try:
                return self._set(scale, wanted, target=target)
            except errors.ConflictError:
                continue
        raise errors.ConflictError(f"{target.kind} {target.key} changed during each of {TRIES} tries")

    def forget(self, uid: str) -> None:
        """The workload is gone, or no target any more."""
        self._proven.discard(uid)

    def leave_note(self, workload: Json, target: Target, note: str | None) -> None:
        """Leaves the note of a release on the workload, or takes it away.

        That takes a permission to patch workloads, which the service does not have: it is for `floorcast release` in
        the hands of a person.

        Raises:
            ForbiddenError: the permission is missing; the text says how to do it by hand.
        """
        change = {"metadata": {"annotations": {marks.RELEASED: note}}}
        resource = resources.of(target)
        if not permissions.allowed(self._api, "patch", resource, namespace=target.namespace):
            given = f"{marks.RELEASED}-" if note is None else f"'{marks.RELEASED}={note}'"
            raise errors.ForbiddenError(
                f"may not patch {resource.rule_name} in namespace {target.namespace} to say that it is released: a"
                " Floorcast that runs in control mode goes on setting the replicas; whoever may runs: kubectl annotate"
                f" --namespace {target.namespace} {target.kind.lower()}/{fields.name(workload)} {given}"
            )
        self._api.patch(resource, change, namespace=target.namespace, name=fields.name(workload))

    def _set(self, scale: Json, wanted: int, *, target: Target) -> int:
        uid = fields.uid(scale)
        if uid not in self._proven:
            self._keeps(self._patch(target, scale, wanted, dry_run=True), wanted, target=target)
            self._proven.add(uid)
        return self._keeps(self._patch(target, scale, wanted), wanted, target=target)

    def _keeps(self, after: Json, wanted: int, *, target: Target) -> int:
        stands = fields.count(after, "spec", "replicas")
        if stands != wanted:
            raise errors.OverruledError(f"{target.kind} {target.key}: wrote {wanted} replicas, {stands} stand")
        return wanted

    def _read(self, target: Target) -> Json:
        resource = resources.of(target).scale()
        return self._api.get(resource, namespace=target.namespace, name=target.name)

    def _patch(self, target: Target, scale: Json, replicas: int, *, dry_run: bool = False) -> Json:
        version = fields.text(scale, "metadata", "resourceVersion")
        change = {"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}}
        resource = resources.of(target).scale()
        return self._api.patch(resource, change, namespace=target.namespace, name=target.name, dry_run=dry_run)


def thing(workload: Json, target: Target) -> Object:
    """The workload as others refer to it."""
    api_version = resources.of(target).api_version
    return Object(api_version, target.kind, target.namespace, target.name, fields.uid(workload))


def made(workload: Json, target: Target) -> NotOursError | None:
    """Why a workload that a controller makes is not written; None for one that nobody makes."""
    above = fields.maker(workload)
    if not above:
        return None
    kind = above.partition(" ")[0]
    return errors.OwnedElsewhereError(
        f"{target.kind} {target.key} is made by {above}, which would undo a change of its replicas; only advice is"
        f" given: {MAKERS.get(kind, f'set the replicas of the {kind} by hand')}"
    )


def _is_ours(workload: Json, target: Target) -> bool:
    """Whether we set the count last. Where the count stands in a kind that is not known, nobody tells.

    There it is ours as long as our entry for the scale subresource has not lost its field to somebody else.
    """
    if not target.resource:
        return fields.manager_of(workload, "spec", "replicas") == client.FIELD_MANAGER
    entries = fields.mappings(workload, "metadata", "managedFields")
    names = {fields.text(one, "manager") for one in entries if fields.text(one, "subresource") == "scale"}
    return client.FIELD_MANAGER in names


def _problem(workload: Json, target: Target) -> str:
    if rollouts.paused(target.kind, workload):
        return f"{target.kind} {target.key} is paused by hand and does not scale"
    return ""


def _refuse_without_selector(scale: Json, target: Target) -> None:
    if not fields.text(scale, "status", "selector"):
        raise errors.NoSelectorError(f"the scale of {target.kind} {target.key} names no pods")


def _refuse_if_changed(scale: Json, thing: Object, seen: Workload) -> None:
    live = fields.count(scale, "spec", "replicas")
    if fields.uid(scale) != thing.uid:
        raise errors.ConflictError(f"{thing.kind} {thing.name} is another one than the one that was decided on")
    if live != seen.standing:
        raise errors.ConflictError(
            f"{thing.kind} {thing.name} has {live} replicas; {seen.standing} stood when this was decided"
        )
