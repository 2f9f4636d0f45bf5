"""A scaled workload as the loops see it."""

import dataclasses
import enum

from models.capacity.trusting import Learn
from models.forecasting.events import Event
from models.policy.planning import Objectives
from models.signals import Signal


class Mode(enum.StrEnum):
    """What Floorcast may do for a target."""

    SHADOW = "shadow"  # decide and report, write nothing
    CONTROL = "control"  # write


class Kind(enum.StrEnum):
    """Kinds of workload whose resource is known; any other with a scale subresource is named by its `resource`."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    ROLLOUT = "Rollout"
    INFERENCE_SERVICE = "InferenceService"


@dataclasses.dataclass(frozen=True, slots=True)
class KnownEvent:
    """Load that is known to come: what it is called, when and how much, and the signals it raises."""

    name: str
    event: Event
    signals: tuple[Signal, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Learning:
    """What is learned of a replica's capacity while it serves.

    Attributes:
        ttft: objective, p95 of the time to the first token, seconds; None: nothing is learned.
        learn: what that may do to the profile.
        headroom: share by which load may step up and still stay under what was observed.
    """

    ttft: float | None = None
    learn: Learn = Learn.LOWER
    headroom: float = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class GpuLimits:
    """GPUs a target may take; None is no limit.

    Attributes:
        budget: of all its replicas together.
        per_replica: of one replica; None: as its pods ask for.
        pool: name of what it shares with others; empty for nothing.
        pooled: GPUs in that pool.
    """

    budget: int | None = None
    per_replica: int | None = None
    pool: str = ""
    pooled: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One scaled workload, from the configuration.

    Attributes:
        namespace: where it lives.
        name: name of the workload object.
        kind: kind of the workload object, one of `Kind` unless `resource` is given.
        engine: entry of the signal catalogue ("vllm", ...).
        model: served model name as the engine labels it; empty where the engine has no such label.
        mode: shadow or control.
        objectives: how it is planned for.
        warm_up: seconds a new replica takes, until it has been measured.
        minimum: base where there is no autoscaler to take it from.
        maximum: upper bound where there is no autoscaler to take it from.
        events: load that is known to come.
        learning: what is learned of its capacity.
        gpus: GPUs it may take.
        resource: plural.version.group of a kind that is not in `Kind`; empty for one that is.
        from_zero: a workload that has no replicas is started again; else it is left asleep.
        gitops_ignored: the GitOps tool that applies the field is known to leave it alone.
    """

    namespace: str
    name: str
    kind: str
    engine: str
    model: str
    mode: Mode
    objectives: Objectives
    warm_up: float = 300.0
    minimum: int = 1
    maximum: int = 10
    events: tuple[KnownEvent, ...] = ()
    learning: Learning = Learning()
    gpus: GpuLimits = GpuLimits()
    resource: str = ""
    from_zero: bool = False
    gitops_ignored: bool = False

    @property
    def key(self) -> str:
        """Namespace and name with a slash between: what the target is called in metrics, logs and the API."""
        return f"{self.namespace}/{self.name}"
