"""Workloads without an autoscaler: `spec.replicas` through the scale subresource.

Nothing is written to the workload object itself: a permission to patch it would be one to change its image. There is
no need either. Base and maximum come from the configuration, and who set the count last stands in the object's
managedFields. Nor is there a minimum of the user's to give back: a release leaves the count as it is, because the count
of the day Floorcast came may be far too small for the load of the day it goes.
"""

from predictor.cluster import client, errors, fields, rollouts
from predictor.cluster.fields import Json
from predictor.cluster.inventory import Inventory
from predictor.cluster.owners import Number, Object
from predictor.cluster.resources import WORKLOADS
from predictor.ports import Owner, Workload
from predictor.targets import Mode, Target

TRIES = 3  # the workload's status changes with every pod, and its version with it


class ScaleActuator:
    """Sets the replica count itself: here Floorcast is the autoscaler."""

    owner = Owner.SCALE

    def __init__(self, api: client.Api) -> None:
        self._api = api

    def number(self, target: Target, inventory: Inventory) -> Number:
        """The replica count.

        Raises:
            OwnedElsewhereError: the workload is made by a controller, and would have to be written.
        """
        workload = inventory.workload(target)
        maker = fields.controller(workload)
        if maker and target.mode is Mode.CONTROL:
            above = f"{fields.text(maker, 'kind')} {fields.text(maker, 'name')}"
            raise errors.OwnedElsewhereError(
                f"{target.kind} {target.key} is made by {above}, which would undo a change of its replicas;"
                " set them there, and keep the target in shadow mode"
            )
        api_version = WORKLOADS[target.kind].api_version
        return Number(
            owner=self.owner,
            thing=Object(api_version, target.kind, target.namespace, target.name, fields.uid(workload)),
            standing=rollouts.asked_for(workload),
            base=target.minimum,
            maximum=target.maximum,
            adopted=fields.manager_of(workload, "spec", "replicas") == client.FIELD_MANAGER,
        )

    def write(self, target: Target, replicas: int, *, thing: Object, seen: Workload) -> int:
        """Sets the count, at least one and at most the target's maximum."""
        wanted = min(max(replicas, 1), target.maximum)
        for _ in range(TRIES):
            scale = self._read(target)
            _refuse_if_changed(scale, thing, seen)
            if not fields.text(scale, "status", "selector"):
                raise errors.NoSelectorError(f"the scale of {target.kind} {target.key} names no pods")
            try:
                after = self._patch(target, scale, wanted)
            except errors.ConflictError:
                continue
            return fields.count(after, "spec", "replicas")
        raise errors.ConflictError(f"{target.kind} {target.key} changed during each of {TRIES} tries")

    def release(self, target: Target) -> int:
        """Leaves the count as it is; see the module."""
        return fields.count(self._read(target), "spec", "replicas")

    def _read(self, target: Target) -> Json:
        resource = WORKLOADS[target.kind].scale()
        return self._api.get(resource, namespace=target.namespace, name=target.name)

    def _patch(self, target: Target, scale: Json, replicas: int) -> Json:
        version = fields.text(scale, "metadata", "resourceVersion")
        change = {"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}}
        resource = WORKLOADS[target.kind].scale()
        return self._api.patch(resource, change, namespace=target.namespace, name=target.name)


def _refuse_if_changed(scale: Json, thing: Object, seen: Workload) -> None:
    live = fields.count(scale, "spec", "replicas")
    if fields.uid(scale) != thing.uid:
        raise errors.ConflictError(f"{thing.kind} {thing.name} is another one than the one that was decided on")
    if live != seen.standing:
        raise errors.ConflictError(
            f"{thing.kind} {thing.name} has {live} replicas; {seen.standing} stood when this was decided"
        )
