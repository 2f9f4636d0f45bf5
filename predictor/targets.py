"""A scaled workload as the loops see it."""

import dataclasses
import enum

from models.forecasting.events import Event
from models.policy.planning import Objectives
from models.signals import Signal


class Mode(enum.StrEnum):
    """What Floorcast may do for a target."""

    SHADOW = "shadow"  # decide and report, write nothing
    CONTROL = "control"  # write


class Kind(enum.StrEnum):
    """Kinds of workload with a scale subresource."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"


@dataclasses.dataclass(frozen=True, slots=True)
class KnownEvent:
    """Load that is known to come: what it is called, when and how much, and the signals it raises."""

    name: str
    event: Event
    signals: tuple[Signal, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One scaled workload, from the configuration.

    Attributes:
        namespace: where it lives.
        name: name of the workload object.
        kind: kind of the workload object.
        engine: entry of the signal catalogue ("vllm", ...).
        model: served model name as the engine labels it; empty where the engine has no such label.
        mode: shadow or control.
        objectives: how it is planned for.
        warm_up: seconds a new replica takes, until it has been measured.
        minimum: base where there is no autoscaler to take it from.
        maximum: upper bound where there is no autoscaler to take it from.
        events: load that is known to come.
    """

    namespace: str
    name: str
    kind: Kind
    engine: str
    model: str
    mode: Mode
    objectives: Objectives
    warm_up: float = 300.0
    minimum: int = 1
    maximum: int = 10
    events: tuple[KnownEvent, ...] = ()

    @property
    def key(self) -> str:
        """Namespace and name with a slash between: what the target is called in metrics, logs and the API."""
        return f"{self.namespace}/{self.name}"
