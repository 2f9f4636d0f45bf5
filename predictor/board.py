"""What is known and decided of every target right now: written by the loops, read by the page and the tests."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping

from models import stall
from models.capacity import crowd, mix, sizing
from models.capacity.limits import Limit
from models.capacity.mix import Mix
from models.capacity.observing import Observer
from models.capacity.sizes import Sizes
from models.capacity.trusting import Chosen
from models.capacity.warmup import Horizons
from models.forecasting.forecast import Outlook
from models.policy.context import Context, FloorSettings, Memory
from models.policy.decision import Decision
from models.policy.planning import Objectives
from models.signals import Signal
from predictor.grading import Grade
from predictor.ports import Readings, Refused, Workload
from predictor.targets import Target

NOT_YET = sizing.NoPlan("no forecast has been made yet")
KEPT_DECISIONS = 50  # what a person scrolls through on the page; the metrics keep the counts


@dataclasses.dataclass(frozen=True, slots=True)
class Plans:
    """The outcome of a target's last slow tick.

    Attributes:
        made_at: Unix time, seconds.
        horizons: how far ahead it looked.
        outlooks: signal -> (over the raising horizon, over the lowering horizon).
        raising: plan over the raising horizon.
        lowering: plan over the lowering horizon.
        duration: seconds a request takes unloaded, as used in the plans; None where not known.
        grades: how good the forecasts over the raising horizon were so far, of signals that have a score.
    """

    made_at: float
    horizons: Horizons
    outlooks: Mapping[Signal, tuple[Outlook, Outlook]]
    raising: sizing.Planned
    lowering: sizing.Planned
    duration: float | None
    grades: Mapping[Signal, Grade] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Basis:
    """What the last decision was made from, so that it can be made again with one thing changed."""

    context: Context
    memory: Memory
    settings: FloorSettings


@dataclasses.dataclass(slots=True)
class Entry:
    """One target's row.

    `capacity` is the profile in use, `observers` what was seen of it by kind of replica, `limits` the upper bounds in
    replicas by their names, `stalled` the seconds for which requests run and none ends, `looks` how many requests were
    inside of late and `growth` by how many a second there are more, `mix` how large requests were of late.
    """

    target: Target
    readings: Readings = dataclasses.field(default_factory=dict)
    workload: Workload | Refused | None = None
    plans: Plans | None = None
    memory: Memory | None = None
    decision: Decision | None = None
    shadow_floor: int | None = None
    refused: Refused | None = None
    acted_at: float = float("-inf")  # monotonic seconds at which a loop last decided for it
    basis: Basis | None = None
    capacity: Chosen | None = None
    observers: dict[str, Observer] = dataclasses.field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    flow: stall.Watch = dataclasses.field(default_factory=stall.Watch)
    stalled: float = 0.0
    looks: crowd.Looks = ()
    growth: float = 0.0
    mix: Mix | None = None
    history: collections.deque[Decision] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=KEPT_DECISIONS)
    )

    @property
    def objectives(self) -> Objectives:
        """How the target is planned for, with what was learned of its replicas, and for requests as large as now."""
        given = self.target.objectives
        profile = given.profile if self.capacity is None else self.capacity.profile
        sized = profile if self.sizes is None else profile.sized(self.sizes)
        return given if sized is given.profile else dataclasses.replace(given, profile=sized)

    @property
    def sizes(self) -> Sizes | None:
        """Mean tokens of the requests of late; None where it is not known how they matter."""
        by_size = self.target.objectives.profile.by_size
        return None if by_size is None else mix.sizes(self.mix, by_size.tested)

    def remember(self, decision: Decision) -> bool:
        """Keeps the decision; answers whether it says something else than the one before."""
        before, self.decision = self.decision, decision
        news = before is None or (before.replicas, before.reason) != (decision.replicas, decision.reason)
        if news:
            self.history.append(decision)
        return news


class Board:
    """The rows of all targets, by target key."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self.entries = {target.key: Entry(target) for target in targets}

    @property
    def targets(self) -> list[Target]:
        """All targets, in the order of the configuration."""
        return [entry.target for entry in self.entries.values()]
