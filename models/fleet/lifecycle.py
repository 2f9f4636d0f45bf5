"""From asked for to gone: how replicas come, how long they warm up, what they cost.

The phases of a warm-up and their default ranges are an assumption, put together from published cold starts.
"""

import dataclasses
import enum

import numpy as np

HOUR = 3600.0
NEVER = float("inf")


class State(enum.StrEnum):
    """Where a replica is in its life."""

    PENDING = "pending"  # asked for, no free GPU
    WARMING = "warming"  # has its GPUs and does not serve yet: paid for
    READY = "ready"
    DRAINING = "draining"  # finishes what it runs: paid for


@dataclasses.dataclass(frozen=True, slots=True)
class WarmUp:
    """How the phases of a warm-up are drawn; seconds unless said otherwise.

    Attributes:
        schedule: least and most for scheduling.
        image: least and most for pulling the image; (0, 0) where it is on the node.
        weights_bytes: size of the weights.
        weights_rate: least and most bytes per second at which they are loaded.
        engine: for the engine to start: about 35 with warm caches, 90 without.
        variation: coefficient of variation of the engine's start.
    """

    schedule: tuple[float, float] = (1.0, 5.0)
    image: tuple[float, float] = (60.0, 180.0)
    weights_bytes: float = 65e9
    weights_rate: tuple[float, float] = (1.5e9, 2.5e9)
    engine: float = 90.0
    variation: float = 0.15

    def draw(self, rng: np.random.Generator) -> dict[str, float]:
        """One warm-up: phase -> seconds, in the order in which they pass."""
        return {
            "schedule": rng.uniform(*self.schedule),
            "image": rng.uniform(*self.image),
            "weights": self.weights_bytes / rng.uniform(*self.weights_rate),
            "engine": self.engine * max(rng.normal(1.0, self.variation), 0.5),
        }


@dataclasses.dataclass(slots=True)
class Member:
    """One replica from asked for to gone."""

    name: str
    asked_at: float
    phases: dict[str, float]
    state: State = State.PENDING
    placed_at: float = NEVER
    ready_at: float = NEVER

    @property
    def warm_up(self) -> float:
        """Seconds from asked for to ready."""
        return self.ready_at - self.asked_at

    def phase(self, now: float) -> str:
        """What it is doing: the state, or while warming the phase."""
        if self.state is not State.WARMING:
            return str(self.state)
        end = self.placed_at
        for name, seconds in self.phases.items():
            end += seconds
            if now < end:
                return name
        return str(self.state)


class Lifecycle:
    """The replicas of one fleet. Draws the n-th warm-up from the seed and n, so that two fleets can be compared."""

    def __init__(self, warm_up: WarmUp, *, seed: int, slots: int | None = None, name: str = "replica") -> None:
        """No replicas yet.

        Args:
            warm_up: how warm-ups are drawn.
            seed: of the draws.
            slots: replicas for which there are GPUs; None for no limit.
            name: what the replicas are called, followed by a number.
        """
        self._warm_up = warm_up
        self._seed = seed
        self._slots = slots
        self._name = name
        self._seconds = 0.0  # of replicas that are gone
        self.starts = 0
        self.members: list[Member] = []
        self.warm_ups: list[float] = []

    @property
    def asked(self) -> int:
        """Replicas asked for: all but the draining ones."""
        return sum(member.state is not State.DRAINING for member in self.members)

    def count(self, state: State) -> int:
        """Replicas in a state."""
        return sum(member.state is state for member in self.members)

    @property
    def next_ready(self) -> float:
        """When the next warming replica is ready, seconds; never when none is warming."""
        return min((member.ready_at for member in self.members if member.state is State.WARMING), default=NEVER)

    def hours(self, now: float) -> float:
        """Replica-hours so far: warming, ready and draining."""
        living = sum(now - member.placed_at for member in self.members if member.state is not State.PENDING)
        return (self._seconds + living) / HOUR

    def ask(self, replicas: int, now: float) -> tuple[str, ...]:
        """Asks for a number of replicas; returns the ready ones that must drain now, newest first.

        Those that serve last go first: pending, then warming (lost), then the newest ready.
        """
        for _ in range(replicas - self.asked):
            rng = np.random.default_rng([self._seed, self.starts])
            self.starts += 1
            self.members.append(Member(f"{self._name}-{self.starts}", now, self._warm_up.draw(rng)))
        drained = [self._give_up(now) for _ in range(self.asked - replicas)]
        self._place(now)
        return tuple(name for name in drained if name is not None)

    def warmed(self, now: float) -> tuple[str, ...]:
        """The replicas that have become ready by now, each once."""
        ready = [m for m in self.members if m.state is State.WARMING and m.ready_at <= now]
        for member in ready:
            member.state = State.READY
            self.warm_ups.append(member.warm_up)
        return tuple(member.name for member in sorted(ready, key=lambda member: member.ready_at))

    def gone(self, name: str, now: float) -> None:
        """A draining replica has finished; its GPUs are free."""
        member = next(m for m in self.members if m.name == name and m.state is State.DRAINING)
        self._end(member, now)
        self._place(now)

    def _give_up(self, now: float) -> str | None:
        """Gives up one replica; its name when it was ready and has to drain."""
        for state in (State.PENDING, State.WARMING, State.READY):
            candidates = [member for member in self.members if member.state is state]
            if candidates and state is State.READY:
                candidates[-1].state = State.DRAINING
                return candidates[-1].name
            if candidates:
                self._end(candidates[-1], now)
                return None
        return None

    def _end(self, member: Member, now: float) -> None:
        self.members.remove(member)
        if member.state is not State.PENDING:
            self._seconds += now - member.placed_at

    def _place(self, now: float) -> None:
        """Pending replicas get their GPUs while there are any; only then their warm-up begins."""
        pending = [member for member in self.members if member.state is State.PENDING]
        free = len(pending) if self._slots is None else self._slots - (len(self.members) - len(pending))
        for member in pending[: max(free, 0)]:
            member.state = State.WARMING
            member.placed_at = now
            member.ready_at = now + sum(member.phases.values())
