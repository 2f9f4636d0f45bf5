"""The board as plain data: what /api/state answers and the live page shows."""

import dataclasses
from collections.abc import Mapping

from models.capacity import sizing
from models.capacity.warmup import Usual
from models.forecasting.forecast import Forecast, Outlook
from models.policy.decision import Decision
from models.signals import Known, Reading
from predictor.board import Board, Entry, Plans
from predictor.ports import Refused, Workload


def board(board: Board) -> dict[str, object]:
    """Every target's row, by target key. Values that are not known say why instead of being left out."""
    return {"targets": {key: _entry(entry) for key, entry in board.entries.items()}}


def _entry(entry: Entry) -> dict[str, object]:
    return {
        "mode": entry.target.mode,
        "readings": {signal: reading(one) for signal, one in entry.readings.items()},
        "workload": workload(entry.workload),
        "refused": refused(entry.refused),
        "plans": plans(entry.plans),
        "decision": decision(entry.decision) if entry.decision else None,
        "decisions": [decision(one) for one in reversed(tuple(entry.history))],  # a copy: the loops go on adding
    }


def decision(made: Decision) -> dict[str, object]:
    """A decision with the rules that spoke, in order."""
    return {
        "at": made.at,
        "before": made.before,
        "replicas": made.replicas,
        "wanted": made.wanted,
        "reason": made.reason,
        "note": made.note,
        "trail": [
            {"rule": one.rule, "replicas": one.replicas, "reason": one.reason, "note": one.note} for one in made.trail
        ],
    }


def reading(found: Reading, *, now: float | None = None) -> dict[str, object]:
    """A reading, with its age in seconds where the time is given."""
    if isinstance(found, Known):
        age = {} if now is None else {"age": max(now - found.at, 0.0)}
        return {"value": found.value, "at": found.at, **age}
    return {"unknown": found.cause, "detail": found.detail}


def workload(workload: Workload | Refused | None) -> dict[str, object] | None:
    """The state in the cluster; None where it is not known."""
    if not isinstance(workload, Workload):
        return None
    return {
        "owner": workload.owner,
        "standing": workload.standing,
        "base": workload.base,
        "maximum": workload.maximum,
        "replicas": workload.replicas,
        "ready": workload.supply.ready,
        "warming": workload.supply.warming,
        "stuck": workload.supply.stuck,
        "ready_in": list(workload.supply.ready_in),
        "stuck_pods": [dataclasses.asdict(one) for one in workload.stuck],
        "warm_up": _warm_up(workload.warm_up),
        "rollout": workload.rollout,
        "owner_problem": workload.owner_problem,
    }


def _warm_up(usual: Usual | None) -> dict[str, object] | None:
    if usual is None:
        return None
    return {
        "seconds": usual.seconds,
        "measured": usual.measured,
        "stuck_after": usual.longest,
        "phases": [dataclasses.asdict(one) for one in usual.spreads],
    }


def refused(refused: Refused | None) -> dict[str, str] | None:
    """What was refused; None where nothing was."""
    return {"reason": refused.reason, "detail": refused.detail} if refused else None


def plans(plans: Plans | None) -> dict[str, object] | None:
    """Forecasts and what they ask for; None before the first."""
    if plans is None:
        return None
    return {
        "made_at": plans.made_at,
        "horizons": {"raising": plans.horizons.raising, "lowering": plans.horizons.lowering},
        "duration": plans.duration,
        "raising": planned(plans.raising),
        "lowering": planned(plans.lowering),
        "forecasts": {
            signal: {"raising": _outlook(raising), "lowering": _outlook(lowering)}
            for signal, (raising, lowering) in plans.outlooks.items()
        },
    }


def planned(planned: sizing.Planned) -> dict[str, object]:
    """A plan with its needs, or why there is none."""
    if isinstance(planned, sizing.NoPlan):
        return {"none": planned.why}
    needs = {
        need.kind: {"demand": need.demand, "per_replica": need.per_replica, "replicas": need.replicas}
        for need in planned.needs
    }
    return {"replicas": planned.replicas, "binding": planned.binding.kind, "needs": needs}


def _outlook(outlook: Outlook) -> Mapping[str, object]:
    if not isinstance(outlook, Forecast):
        return {"none": f"{outlook.have} points of history, {outlook.need} needed"}
    return {
        "issued_at": outlook.issued_at,
        "horizon": outlook.horizon,
        "level": outlook.level,
        "quality": outlook.quality,
        "quantiles": {f"{probability:g}": value for probability, value in sorted(outlook.quantiles.items())},
        "steady": {f"{probability:g}": value for probability, value in sorted(outlook.steady.items())},
    }
