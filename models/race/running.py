"""One policy serves one workload: what came of it, and on request how it went."""

import dataclasses
from collections.abc import Callable

import numpy as np

from models.fleet import scorecard
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.profiles import Profile
from models.fleet.requests import Requests
from models.fleet.scorecard import Scorecard
from models.fleet.warmup import Drawn
from models.fleet.workload import Source
from models.policy.context import Supply
from models.policy.protocol import Autoscaler
from models.race import glance
from models.race.driver import Lane
from models.race.glance import Watcher

WHOLE = 4 * 3600.0  # seconds of requests handed over at once
HOUR = 3600.0


@dataclasses.dataclass(frozen=True, slots=True)
class Course:
    """What is run: everything but the policy.

    Attributes:
        profile: of a replica.
        source: the requests.
        start: when the run begins, seconds.
        end: when it ends.
        warm_up: seconds from asking for a replica to its first Ready, that are planned with.
        objective: seconds to the first token.
        initial: replicas that are ready at the start.
        minimum: replicas at least.
        maximum: replicas at most.
        drawn: shortest and longest of the actual ones, drawn evenly between; None where all are `warm_up`.
        timeout: seconds after which a client without a first token gives up.
        retries: how often it comes back after that.
        settling: seconds for which the initial replicas are kept: a policy that has seen nothing yet, with no memory
            of the minutes before, would take them away.
        seed: of the fleet.
    """

    profile: Profile
    source: Source
    start: float
    end: float
    warm_up: float
    objective: float
    initial: int = 1
    minimum: int = 1
    maximum: int = 100
    drawn: tuple[float, float] | None = None
    timeout: float = 60.0
    retries: int = 0
    settling: float = 600.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.end > self.start:
            raise ValueError(f"end is {self.end!r} s: must lie after the start, {self.start!r} s")
        if self.warm_up < 0:
            raise ValueError(f"warm_up is {self.warm_up!r} s: must not be negative")
        if self.drawn is not None and not 0 <= self.drawn[0] <= self.drawn[1]:
            raise ValueError(f"drawn is {self.drawn!r} s: must be a shortest and a longest warm-up")
        if not 0 <= self.minimum <= self.initial <= self.maximum:
            raise ValueError(
                f"minimum {self.minimum}, initial {self.initial}, maximum {self.maximum}: must not fall, from 0 up"
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run; hours are replica-hours, times seconds.

    Attributes:
        requests: arrived.
        missed: without a first token in time.
        replica_hours: warming and draining counted.
        gpu_hours: the same times the GPUs of a replica.
        warming_hours: of the replica-hours.
        starts: replicas started, the first ones included.
        wasted: of these, gone without a single request.
        hours_short: hours in which no ready replica had room.
        ttft_p50: to the first token.
        ttft_p99: likewise.
    """

    requests: int
    missed: int
    replica_hours: float
    gpu_hours: float
    warming_hours: float
    starts: int
    wasted: int
    hours_short: float
    ttft_p50: float
    ttft_p99: float

    @property
    def attainment(self) -> float:
        """Share of the requests that met the objective; 1 without any."""
        return 1 - self.missed / self.requests if self.requests else 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Glimpse:
    """One moment of a run.

    Attributes:
        now: seconds.
        supply: replicas by what they can do.
        asked: replicas asked for.
        arrived: requests so far.
        in_system: requests being served or waiting.
        running: requests in batches.
        card: the scorecard so far.
    """

    now: float
    supply: Supply
    asked: int
    arrived: int
    in_system: int
    running: int
    card: Scorecard


@dataclasses.dataclass(slots=True)
class _Standing:
    """Starts that take no time for the replicas of the beginning, and a warm-up between two for all others."""

    initial: int
    shortest: float
    longest: float

    def draw(self, rng: np.random.Generator, weights_bytes: float) -> Drawn:
        """One start."""
        del weights_bytes
        self.initial -= 1
        engine = 0.0 if self.initial >= 0 else float(rng.uniform(self.shortest, self.longest))
        return Drawn(schedule=0, node=0, image=0, weights=0, engine=engine, lives=np.inf, stuck=0)


def run(
    course: Course,
    policy: Autoscaler,
    *,
    interval: float,
    watch: Callable[[Glimpse], None] | None = None,
    every: float = 60.0,
) -> Outcome:
    """Runs a policy that decides each `interval` seconds; `watch` is shown a glimpse each `every` seconds.

    The replicas of the beginning are ready at once; they are paid for, and counted as starts, like all others.
    """
    settings = PoolSettings(
        ttft_objective=course.objective, timeout=course.timeout, retries=course.retries, seed=course.seed
    )
    pool = Pool(course.profile, settings, start=course.start)
    starts = _Standing(course.initial, *(course.drawn or (course.warm_up, course.warm_up)))
    target = Deployment(pool, starts, seed=(course.seed,))
    cluster = Cluster({"target": target})
    lane = Lane(policy, course.source, minimum=course.minimum, maximum=course.maximum, warm_up=course.warm_up)
    watcher = glance.Watcher(target, lane)
    cluster.scale("target", course.initial)
    offered, shown = course.start, course.start
    ticks = int(np.ceil((course.end - course.start) / interval - 1e-9))
    for k in range(ticks):
        then = min(course.start + (k + 1) * interval, course.end)
        if then > offered:
            until = min(then + WHOLE, course.end)
            pool.offer(course.source.between(offered, until))
            offered = until
        wanted = policy.decide(watcher.observe()).replicas
        least = course.initial if cluster.now < course.start + course.settling else course.minimum
        if (allowed := min(max(wanted, least), course.maximum)) != target.wanted:
            cluster.scale("target", allowed)
        if watch and cluster.now >= shown:
            watch(_glimpse(target, watcher))
            shown += every
        cluster.advance(then)
    return _outcome(target)


def _glimpse(target: Deployment, watcher: Watcher) -> Glimpse:
    state = target.pool.state
    running = int(target.pool.replicas["running"].sum())
    seen = watcher.observe()
    card = scorecard.of(target)
    return Glimpse(seen.now, seen.supply, target.wanted, int(state["arrived"]), card.in_system, running, card)


def _outcome(target: Deployment) -> Outcome:
    card = scorecard.of(target)
    return Outcome(
        requests=card.requests,
        missed=card.missed,
        replica_hours=card.replica_hours,
        gpu_hours=card.costs.gpu_seconds / HOUR,
        warming_hours=card.costs.warming_seconds / HOUR,
        starts=card.costs.starts,
        wasted=card.costs.wasted,
        hours_short=card.seconds_below / HOUR,
        ttft_p50=card.ttft.quantile(0.5) or 0.0,
        ttft_p99=card.ttft.quantile(0.99) or 0.0,
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Requests that are all there."""

    requests: Requests

    def between(self, start: float, end: float) -> Requests:
        """Those at or after `start` and before `end`, seconds."""
        return self.requests.between(start, end)
