"""What the loops need from the outside world, in their own words. Adapters live in signals/ and cluster/."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from models.capacity.warmup import Usual
from models.policy.context import Supply
from models.policy.decision import Decision
from models.series import Series
from models.signals import Reading, Signal, Unknown
from predictor.targets import Target


class Clock(Protocol):
    """The only way to the time of day."""

    def now(self) -> float:
        """Unix time, seconds."""
        ...


Readings: TypeAlias = Mapping[Signal, Reading]


class SignalSource(Protocol):
    """Where readings come from: a Prometheus, or the pods' own metrics pages."""

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Readings]:
        """Readings by target key. Every target and every signal it may need is present, if only as Unknown.

        Never raises for a source that is down or talks nonsense: that is Unknown with a cause.
        """
        ...

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        """Values by target key on the grid of `step` seconds; Unknown where the source has or keeps none."""
        ...


MIXED_GPUS = "mixed"


class Owner(enum.StrEnum):
    """Who owns the number that Floorcast sets. The value is also the metric label."""

    HPA = "hpa"  # spec.minReplicas of a HorizontalPodAutoscaler
    KEDA = "keda"  # spec.minReplicaCount of a ScaledObject
    KSERVE = "kserve"  # spec.predictor.minReplicas of an InferenceService
    SCALE = "scale"  # no autoscaler: spec.replicas through the scale subresource


@dataclasses.dataclass(frozen=True, slots=True)
class Stuck:
    """A pod that has not been Ready for far longer than starts take, and why, in the cluster's words.

    Attributes:
        pod: its name.
        waited: seconds.
        reason: one word: "Unschedulable", "ImagePullBackOff", "CrashLoopBackOff", ...
        message: the scheduler's, or the kubelet's.
    """

    pod: str
    waited: float
    reason: str
    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """A target that cannot be observed or written, why, and what to do about it."""

    reason: str  # a CamelCase word, for labels and Events: "Forbidden", "NotFound", "AmbiguousOwner", ...
    detail: str


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """State of a target in the cluster.

    Attributes:
        owner: who owns the number.
        standing: the number as it stands (the live minReplicas, or the replica count).
        base: the user's own minimum.
        maximum: the owner's upper bound.
        replicas: replicas the workload asks for now (spec.replicas).
        supply: replicas by what they can do.
        warm_up: what its starts say so far; None where nobody looks at them.
        stuck: the pods that do not count as supply, and why.
        gpu: type of GPU its replicas select their nodes by; empty where they take any; MIXED_GPUS when they differ.
        gpus: GPUs that one replica asks for; 0 where it asks for none, or there is no pod to tell.
        rollout: a rollout is under way.
        owner_problem: what the owner reports to be wrong with its scaling; empty when nothing.
        adopted: the live value is one that Floorcast wrote earlier.
        advice: why the number is only advised on and not written, whatever the target's mode; None when it is written.
        rival: field manager who keeps changing the number back, while the target is only advised on for it; else empty.
        one_by_one: a new replica is started only once the one before is Ready: n of them take n warm-ups.
    """

    owner: Owner
    standing: int
    base: int
    maximum: int
    replicas: int
    supply: Supply
    warm_up: Usual | None = None
    stuck: tuple[Stuck, ...] = ()
    gpu: str = ""
    gpus: int = 0
    rollout: bool = False
    owner_problem: str = ""
    adopted: bool = False
    advice: Refused | None = None
    rival: str = ""
    one_by_one: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """The number that stands after a write."""

    replicas: int


class Workloads(Protocol):
    """The cluster: what runs, and where the number is written. Never raises for what the API server answers."""

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload | Refused]:
        """State by target key; every target is present."""
        ...

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written | Refused:
        """Sets the number.

        `seen` is what the decision rested on: a live value that differs from it is a conflict, answered with
        Refused("Conflict", ...) and never overwritten.
        """
        ...

    def announce(self, target: Target, decision: Decision) -> None:
        """Tells the cluster's people (an Event) of a decision that says something new; may be a no-op."""
        ...

    def release(self, target: Target) -> Written | Refused:
        """Gives the original number back and forgets the target; safe to repeat."""
        ...
