"""A fleet that fills up: what is in flight follows the replicas there are, and requests take longer in a crowd."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from models.capacity import warmup
from models.policy.context import Supply
from models.policy.decision import Decision
from models.series import Series
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.ports import Owner, Readings, Workload, Written
from predictor.targets import Target

STEP = 0.25
WINDOW = 60.0  # seconds over which arrivals and durations are means
USUAL = 15.0  # in flight a replica, in the past that it remembers


@dataclasses.dataclass
class FillingFleet:
    """Both ports at once: the signals of a fleet, and its replica count, which is the floor at all times.

    Attributes:
        rate: requests per second at a time; they come with the scatter of a Poisson process.
        now: Unix time, seconds.
        ready: replicas that serve.
        places: requests that a replica runs at once; more wait.
        alone: seconds a request takes on an idle replica.
        crowding: share by which each request beside it makes that longer.
        takes: seconds from asking for a replica until it serves.
        remembers: seconds before the beginning for which there is a history.
        seed: of the scatter.
        running: requests in batches.
        waiting: requests without a place.
        queued: requests that waited, times the seconds they did.
    """

    rate: Callable[[float], float]
    now: float
    ready: int = 3
    places: int = 32
    alone: float = 10 / 1.5
    crowding: float = 0.02
    takes: float = 300.0
    remembers: float = 86400.0
    seed: int = 1
    running: float = 0.0
    waiting: float = 0.0
    queued: float = 0.0

    def __post_init__(self) -> None:
        self.base, self.began = self.ready, self.now
        self.coming: list[float] = []
        self.floors: list[tuple[float, int]] = []
        self._rng = np.random.default_rng(self.seed)
        self._came: list[float] = []
        self._ended: list[tuple[float, float]] = []  # requests and the seconds each took, a step
        self.running = self.rate(self.now) * self.alone * (1 + USUAL * self.crowding)

    @property
    def standing(self) -> int:
        """The floor."""
        return self.floors[-1][1] if self.floors else self.base

    def advance(self, until: float) -> None:
        """Lets time pass."""
        while self.now < until - 1e-9:
            self.now += STEP
            self.ready += sum(at <= self.now for at in self.coming)
            self.coming = [at for at in self.coming if at > self.now]
            came = float(self._rng.poisson(self.rate(self.now) * STEP))
            takes = self.alone * (1 + self.crowding * self.running / self.ready)
            ended = self.running / takes * STEP
            let_in = min(self.ready * self.places - self.running + ended, self.waiting + came)
            self.running += let_in - ended
            self.waiting += came - let_in
            self.queued += self.waiting * STEP
            self._came.append(came)
            self._ended.append((ended, takes + (self.waiting / ended * STEP if ended else 0.0)))
            del self._came[: -int(WINDOW / STEP)], self._ended[: -int(WINDOW / STEP)]

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Readings]:
        """What its pages say."""
        readings: dict[Signal, Reading] = dict.fromkeys(Signal, Unknown(Cause.NOT_ASKED))
        readings |= {Signal.IN_FLIGHT: Known(self.running, now), Signal.WAITING: Known(self.waiting, now)}
        readings[Signal.REPORTING] = Known(self.ready, now)
        ended = sum(count for count, _ in self._ended)
        if ended:
            took = sum(count * seconds for count, seconds in self._ended)
            readings[Signal.ARRIVALS] = Known(sum(self._came) / (len(self._came) * STEP), now)
            readings[Signal.DURATION_MEAN] = Known(took / ended, now)
        return {target.key: readings for target in targets}

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        """The days before: the same rate, with scatter, on replicas that were never crowded."""
        times = np.arange(max(since, self.began - self.remembers) // step * step, until - step / 2, step)
        rates, rng = np.array([self.rate(time) for time in times]), np.random.default_rng(5)
        seconds = self.alone * (1 + USUAL * self.crowding)
        past = {
            Signal.ARRIVALS: lambda: rng.poisson(rates * WINDOW) / WINDOW,
            Signal.IN_FLIGHT: lambda: rng.poisson(rates * seconds).astype(float),
            Signal.DURATION_MEAN: lambda: np.full(len(times), seconds),
        }
        known = Series(float(times[0]), step, past[signal]()) if signal in past else Unknown(Cause.EMPTY)
        return {target.key: known for target in targets}

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload]:
        """Its replicas."""
        state = Workload(
            owner=Owner.HPA,
            standing=self.standing,
            base=self.base,
            maximum=40,
            replicas=self.ready + len(self.coming),
            supply=Supply(self.ready, len(self.coming), ready_in=tuple(at - now for at in self.coming)),
            warm_up=warmup.of_seconds(*[self.takes] * 5),
        )
        return {target.key: state for target in targets}

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written:  # noqa: ARG002
        """An HPA that wants nothing of its own follows the floor at once; what warms goes first."""
        self.floors.append((now, replicas))
        more = replicas - self.ready - len(self.coming)
        self.coming += [now + self.takes] * max(more, 0)
        stopped = min(max(-more, 0), len(self.coming))
        self.coming = self.coming[: len(self.coming) - stopped]
        self.ready -= max(-more, 0) - stopped
        return Written(replicas)

    def announce(self, target: Target, decision: Decision) -> None:
        """Nobody to tell."""

    def release(self, target: Target) -> Written:  # noqa: ARG002
        """Its base."""
        return Written(self.base)
