"""What the page draws: one frame a simulated minute, and the present."""

import dataclasses
from typing import Any

from models.fleet.lifecycle import State
from models.forecasting.forecast import Forecast
from models.policy.decision import Decision
from models.signals import Signal
from predictor.board import Entry
from predictor.demo import scenario
from predictor.demo.cluster import Autoscaled


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
        floorcast: the fleet under Floorcast.
        hpa: the fleet under the plain HPA.
    """

    t: float
    arrivals: float
    band: dict[str, float]
    ahead: float
    floorcast: Standing
    hpa: Standing


def standing(side: Autoscaled, *, floor: int | None) -> Standing:
    """The present of one fleet."""
    fleet, life = side.deployment.fleet, side.deployment.lifecycle
    card = fleet.scorecard()
    return Standing(
        floor=floor,
        asked=life.asked,
        ready=life.count(State.READY),
        warming=life.count(State.WARMING) + life.count(State.PENDING),
        queued=fleet.queued,
        running=fleet.running,
        requests=card.requests,
        missed=card.missed_ttft,
        rejected=card.rejected,
        hours=round(life.hours(fleet.now), 3),
        starts=life.starts,
    )


def band(entry: Entry) -> tuple[dict[str, float], float]:
    """The forecast of the arrivals over the warm-up horizon: quantiles and how far ahead (seconds)."""
    outlook = entry.plans.outlooks[Signal.ARRIVALS][0] if entry.plans else None
    if not isinstance(outlook, Forecast):
        return {}, 0.0
    return {f"{q:g}": round(value, 3) for q, value in sorted(outlook.quantiles.items())}, outlook.horizon


def replicas(side: Autoscaled) -> list[dict[str, Any]]:
    """Every replica: name, what it does, how full its batch is, how many wait for it."""
    fleet, now = side.deployment.fleet, side.deployment.now
    shown = []
    for member in side.deployment.lifecycle.members:
        serves = member.state in (State.READY, State.DRAINING)
        seen = fleet.snapshot(member.name) if serves else None
        shown.append(
            {
                "name": member.name,
                "state": str(member.state),
                "phase": member.phase(now),
                "load": round(seen.running / scenario.ENGINE.max_num_seqs, 3) if seen else 0,
                "waiting": seen.waiting if seen else 0,
            }
        )
    return shown


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
