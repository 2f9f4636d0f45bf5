"""What the page draws: one frame a simulated minute, and the present."""

import dataclasses
from typing import Any

from models.fleet import page, scorecard
from models.fleet.deployment import Phase, Pod
from models.forecasting.forecast import Forecast, Outlook
from models.policy import planning
from models.policy.decision import Decision
from models.signals import Signal
from predictor.board import Entry
from predictor.demo import scenario
from predictor.demo.cluster import Autoscaled, name_of

STATES = {Phase.STARTING: "warming"}  # where the page has another word


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """Where one fleet stands at one moment; counts since midnight."""

    floor: int | None
    asked: int
    ready: int
    warming: int
    queued: int
    running: int
    requests: int
    missed: int
    rejected: int
    hours: float
    starts: int


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """One moment of both fleets.

    Attributes:
        t: seconds from midnight.
        arrivals: requests per second over the last minute.
        band: probability -> requests per second that the largest minute of the horizon stays under; empty without one.
        ahead: the horizon of the band, seconds.
        room: requests per second that are planned for instead of the band; None where the band is.
        floorcast: the fleet under Floorcast.
        hpa: the fleet under the plain HPA.
    """

    t: float
    arrivals: float
    band: dict[str, float]
    ahead: float
    room: float | None
    floorcast: Standing
    hpa: Standing


def standing(side: Autoscaled, *, floor: int | None) -> Standing:
    """The present of one fleet."""
    pool, card = side.deployment.pool, scorecard.of(side.deployment)
    return Standing(
        floor=floor,
        asked=side.deployment.wanted,
        ready=side.count(Phase.READY),
        warming=side.count(Phase.STARTING, Phase.PENDING),
        queued=int(pool.replicas["waiting"].sum() + pool.state["router_waiting"]),
        running=int(pool.replicas["running"].sum()),
        requests=card.requests,
        missed=late(card),
        rejected=unserved(card),
        hours=round(card.replica_hours, 3),
        starts=card.costs.starts,
    )


def late(card: scorecard.Scorecard) -> int:
    """Requests whose first token came later than the objective, or that still wait and are over it."""
    return card.late + card.overdue


def unserved(card: scorecard.Scorecard) -> int:
    """Requests without an answer: given up by their clients, turned away, or cut off."""
    return card.rejected + card.timed_out + card.failed


def band(entry: Entry) -> tuple[dict[str, float], float]:
    """The forecast of the arrivals over the warm-up horizon: quantiles and how far ahead (seconds)."""
    outlook = _arrivals(entry)
    if not isinstance(outlook, Forecast):
        return {}, 0.0
    return {f"{q:g}": round(value, 3) for q, value in sorted(outlook.quantiles.items())}, outlook.horizon


def room(entry: Entry) -> float | None:
    """Arrivals that room is kept for over that horizon, at the raising quantile; None where the band is planned for."""
    outlook, probability = _arrivals(entry), entry.objectives.raise_quantile
    if not isinstance(outlook, Forecast) or not planning.keeps_room(outlook, probability):
        return None
    return round(outlook.room(probability), 3)


def _arrivals(entry: Entry) -> Outlook | None:
    return entry.plans.outlooks[Signal.ARRIVALS][0] if entry.plans else None


def replicas(side: Autoscaled) -> list[dict[str, Any]]:
    """Every replica: name, what it does, how full its batch is, how many wait for it."""
    return [_replica(side, pod) for pod in side.deployment.pods]


def _replica(side: Autoscaled, pod: Pod) -> dict[str, Any]:
    serves = pod.phase in (Phase.READY, Phase.DRAINING)
    seen = page.gauges(side.deployment.pool, pod.slot) if serves else None
    return {
        "name": name_of(pod),
        "state": STATES.get(pod.phase, pod.phase.value),
        "phase": pod.doing(side.now),
        "load": round(seen.running / scenario.REPLICA.max_num_seqs, 3) if seen else 0,
        "waiting": seen.waiting if seen else 0,
    }


def decision(decision: Decision) -> dict[str, Any]:
    """One decision, its time in seconds from midnight."""
    return {
        "t": decision.at - scenario.MIDNIGHT,
        "before": decision.before,
        "replicas": decision.replicas,
        "wanted": decision.wanted,
        "reason": str(decision.reason),
        "note": decision.note,
    }
