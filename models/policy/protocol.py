"""The protocol which Floorcast and its rivals share, so that one simulator drives either."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

from models.policy.context import Supply
from models.policy.decision import Decision
from models.signals import Reading, Signal


@dataclasses.dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a target and what its page last said; None is not known.

    Attributes:
        name: unique among the pods of the target.
        ready: it serves.
        pending: it waits for a node or an image: no container runs yet.
        deleting: it drains, or has failed.
        running: requests in its batch.
        waiting: requests it has accepted and not yet put into a batch.
        kv_usage: share of its KV-cache tokens in use, 0 to 1.
    """

    name: str
    ready: bool = True
    pending: bool = False
    deleting: bool = False
    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None


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
        pods: the pods one by one, for rules that look at each; None where only the sums above are known.
    """

    now: float
    replicas: int
    minimum: int
    maximum: int
    supply: Supply
    readings: Mapping[Signal, Reading]
    pods: Sequence[Pod] | None = None


class Autoscaler(Protocol):
    """Anything that turns what it sees into a replica count."""

    def decide(self, observation: Observation) -> Decision:
        """The decision for this moment; called once per `interval`, never with time going back."""
        ...
