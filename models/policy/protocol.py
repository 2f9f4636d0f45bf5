"""The protocol which Floorcast and its rivals share, so that one simulator drives either."""

import dataclasses
from collections.abc import Mapping
from typing import Protocol

from models.policy.context import Supply
from models.policy.decision import Decision
from models.signals import Reading, Signal


@dataclasses.dataclass(frozen=True, slots=True)
class Observation:
    """What an autoscaler sees of one target.

    Attributes:
        now: Unix time, seconds.
        replicas: the replica count the workload asks for (spec.replicas).
        minimum: the smallest count the autoscaler may ask for.
        maximum: the largest count the autoscaler may ask for.
        supply: replicas by what they can do.
        readings: the signals, known or not.
    """

    now: float
    replicas: int
    minimum: int
    maximum: int
    supply: Supply
    readings: Mapping[Signal, Reading]


class Autoscaler(Protocol):
    """Anything that turns what it sees into a replica count."""

    def decide(self, observation: Observation) -> Decision:
        """The decision for this moment; called once per `interval`, never with time going back."""
        ...
