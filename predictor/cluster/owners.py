"""Who owns a target's number: the highest object that does is the one to write."""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from predictor.cluster import errors
from predictor.cluster.inventory import Inventory
from predictor.ports import Owner, Workload
from predictor.targets import Target


@dataclasses.dataclass(frozen=True, slots=True)
class Object:
    """An object of the cluster, as others refer to it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """The number of a target as its owner has it; the fields that `Workload` has too mean the same.

    Attributes:
        owner: who owns it.
        thing: the object that it is written to.
        standing: the number as it stands.
        base: the user's own minimum.
        maximum: the owner's upper bound.
        problem: what the owner reports to be wrong with its scaling; empty when nothing.
        adopted: the live value is one that Floorcast wrote earlier.
    """

    owner: Owner
    thing: Object
    standing: int
    base: int
    maximum: int
    problem: str = ""
    adopted: bool = False


class Actuator(Protocol):
    """Reads and writes the number for one kind of owner. Every method may raise any ClusterError."""

    owner: Owner

    def number(self, target: Target, inventory: Inventory) -> Number | None:
        """The number; None where no owner of this kind has the target."""
        ...

    def write(self, target: Target, replicas: int, *, thing: Object, seen: Workload) -> int:
        """Sets the number if it still is what `seen` says, and returns what stands then."""
        ...

    def release(self, target: Target) -> int | None:
        """Gives the original number back; the number that stands, or None where no owner of this kind has it."""
        ...


def find(actuators: Sequence[Actuator], target: Target, inventory: Inventory) -> Number:
    """The number as the first of the actuators that knows the target has it; they stand from the highest owner down."""
    for actuator in actuators:
        number = actuator.number(target, inventory)
        if number is not None:
            return number
    raise errors.NotFoundError(f"nothing owns the replica count of {target.kind} {target.key}")
