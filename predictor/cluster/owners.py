"""The number of a target, and the object it stands in: what `ownership.py` finds and the actuators write."""

import dataclasses

from predictor.cluster.errors import NotOursError
from predictor.ports import Owner


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
        advice: why it must not be written, while it can be advised on; None when it may be.
        managers: the field managers who claim it, the last writer first.
    """

    owner: Owner
    thing: Object
    standing: int
    base: int
    maximum: int
    problem: str = ""
    adopted: bool = False
    advice: NotOursError | None = None
    managers: tuple[str, ...] = ()
