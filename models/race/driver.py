"""Drives autoscalers on a simulated cluster: time passes, requests come, each policy decides at its interval."""

import dataclasses
from collections.abc import Iterator, Mapping

from models.fleet import seen
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment, Phase
from models.fleet.seen import Sight
from models.fleet.workload import Source
from models.policy.context import Supply
from models.policy.decision import Decision
from models.policy.protocol import Autoscaler, Observation
from models.race import pods
from models.race.looks import Looks


@dataclasses.dataclass(frozen=True, slots=True)
class Lane:
    """One pool in a run.

    Attributes:
        policy: who sets its replica count.
        source: its requests.
        minimum: replicas at least.
        maximum: replicas at most.
        sight: how its pages are looked at.
        stuck_after: seconds without getting ready after which a pod no longer counts as supply.
        warm_up: seconds from being asked for to Ready that are expected; None where nothing is.
    """

    policy: Autoscaler
    source: Source
    minimum: int = 1
    maximum: int = 1000
    sight: Sight = dataclasses.field(default_factory=Sight)
    stuck_after: float = 1200.0
    warm_up: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.maximum:
            raise ValueError(f"minimum {self.minimum!r} and maximum {self.maximum!r}: must be 0 <= minimum <= maximum")


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """One decision in a run: what was seen and what was decided, by pool."""

    now: float
    observations: Mapping[str, Observation]
    decisions: Mapping[str, Decision]


def drive(cluster: Cluster, lanes: Mapping[str, Lane], *, until: float, interval: float) -> Iterator[Moment]:
    """Runs a cluster until a time, one decision a pool each `interval` seconds, and tells of each moment.

    A run goes on where the last one ended if that was at a multiple of the interval; the results are then the same bits
    as those of one run. A decision outside the lane's bounds is cut to them, as the API would.

    Raises ValueError when lanes and deployments have different names, or `interval` is not positive.
    """
    if set(lanes) != set(cluster.deployments):
        raise ValueError(f"lanes {sorted(lanes)} and deployments {sorted(cluster.deployments)} differ")
    if interval <= 0:
        raise ValueError(f"interval is {interval!r} s: must be positive")
    while cluster.now < until:
        observations = {name: observe(cluster.deployments[name], lane) for name, lane in lanes.items()}
        decisions = {name: lane.policy.decide(observations[name]) for name, lane in lanes.items()}
        for name, lane in lanes.items():
            cluster.scale(name, min(max(decisions[name].replicas, lane.minimum), lane.maximum))
        yield Moment(cluster.now, observations, decisions)
        end = min(cluster.now + interval, until)
        for name, lane in lanes.items():
            cluster.deployments[name].pool.offer(lane.source.between(cluster.now, end))
        cluster.advance(end)


def observe(target: Deployment, lane: Lane) -> Observation:
    """What an autoscaler sees of a pool now."""
    return Observation(
        now=target.pool.now,
        replicas=target.wanted,
        minimum=lane.minimum,
        maximum=lane.maximum,
        supply=supply(target, lane),
        readings=seen.readings(target.pool, lane.sight),
        pods=pods.Pods(target, Looks(target.pool, lane.sight).each, pods.Shown()),
    )


def supply(target: Deployment, lane: Lane) -> Supply:
    """The pods by what they can do; draining ones are none."""
    ready, coming = 0, []
    for pod in target.pods:
        if pod.phase is Phase.READY:
            ready += 1
        elif pod.phase is not Phase.DRAINING:
            coming.append(pod)
    if not coming:
        return Supply(ready)
    now = target.pool.now
    ages = [now - pod.created for pod in coming]
    warming = [age for age in ages if age <= lane.stuck_after]
    expected = [] if lane.warm_up is None else sorted(max(lane.warm_up - age, 0.0) for age in warming)
    return Supply(ready, len(warming), len(ages) - len(warming), tuple(expected))
