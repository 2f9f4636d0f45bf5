"""A decision explained: what it was made from, the rules that spoke, and what would have changed it."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from models.capacity import limits, sizing
from models.forecasting.forecast import Forecast, Outlook
from models.policy import floor, planning
from models.policy.context import Context, FloorSettings
from models.policy.decision import Decision
from models.signals import Signal
from predictor import deciding, learning
from predictor.board import Basis, Entry, Plans
from predictor.ports import Workload
from predictor.telemetry import snapshot

SILENT = sizing.NoPlan("left out")


@dataclasses.dataclass(frozen=True, slots=True)
class WhatIf:
    """Another decision: what would have been different, and what would have come of it."""

    change: str
    decision: Decision


def explain(entry: Entry) -> Mapping[str, Any] | None:
    """All about a target's last decision as plain data; None before the first."""
    decision, basis = entry.decision, entry.basis
    if decision is None or basis is None:
        return None
    return {
        "target": entry.target.key,
        "mode": entry.target.mode,
        "at": decision.at,
        "decision": snapshot.decision(decision),
        "inputs": {signal: snapshot.reading(one, now=decision.at) for signal, one in entry.readings.items()},
        "cluster": snapshot.workload(entry.workload),
        "refused": snapshot.refused(entry.refused),
        "capacity": capacity(entry),
        "limits": {one.name: one.replicas for one in entry.limits},
        "stalled": entry.stalled,
        "plans": snapshot.plans(entry.plans),
        "reacting": snapshot.planned(basis.context.reacting),
        "what_if": [
            {"change": one.change, "replicas": one.decision.replicas, "reason": one.decision.reason}
            for one in what_if(entry, basis, decision)
        ],
    }


def capacity(entry: Entry) -> Mapping[str, Any] | None:
    """The profile in use, where it comes from, and what was seen of it."""
    chosen, seen = entry.capacity, learning.observed(entry)
    if chosen is None:
        return None
    return {
        "source": chosen.source,
        "concurrency": chosen.profile.concurrency,
        "throughput": chosen.profile.throughput,
        "kv_tokens": chosen.profile.kv_tokens,
        "tokens_in": chosen.profile.tokens_in,
        "tokens_out": chosen.profile.tokens_out,
        "sizes": _sizes(entry),
        "note": chosen.note,
        "observed": dataclasses.asdict(seen) if seen else None,
    }


def _sizes(entry: Entry) -> Mapping[str, Any] | None:
    """Mean tokens of the requests of now, and what a replica is planned for with them."""
    if entry.sizes is None:
        return None
    profile = entry.objectives.profile
    return {
        "prompt": entry.sizes.prompt,
        "output": entry.sizes.output,
        "concurrency": profile.concurrency,
        "throughput": profile.throughput,
        "unknown": deciding.unsized(entry),
    }


def what_if(entry: Entry, basis: Basis, decision: Decision) -> list[WhatIf]:
    """The changes of one thing that would have changed the number, smallest difference first."""
    found = []
    for change, context, settings in _changes(entry, basis):
        other, _ = floor.decide(context, settings, basis.memory)
        if other.replicas != decision.replicas:
            found.append(WhatIf(change, other))
    return sorted(found, key=lambda one: abs(one.decision.replicas - decision.replicas))


def _changes(entry: Entry, basis: Basis) -> Iterator[tuple[str, Context, FloorSettings]]:
    context, settings = basis.context, basis.settings
    for change, other in (*_of_load(entry, context), *_of_limits(entry, context), *_of_circumstances(context)):
        yield change, other, settings
    free = dataclasses.replace(settings, hold=0.0, step_period=0.0)
    yield "without the hold and the time between steps", context, free
    yield "without any limit of a step", context, dataclasses.replace(free, step_down=10**6, step_up=None)


def _of_load(entry: Entry, context: Context) -> Iterator[tuple[str, Context]]:
    workload, plans = entry.workload, entry.plans
    if plans and plans.raising is context.raising:  # not too old, and no engine stalled
        for probability, planned in _at_quantiles(entry, plans):
            yield f"at quantile {probability:g}", dataclasses.replace(context, raising=planned)
        for raising, lowering in _following(entry, plans):
            change = "following the forecast, no room kept"
            yield change, dataclasses.replace(context, raising=raising, lowering=lowering)
    if isinstance(workload, Workload):
        calm = deciding.reacting(entry, workload, with_backlog=False)
        yield "without the backlog", dataclasses.replace(context, reacting=calm)
    yield "without the forecast", dataclasses.replace(context, raising=context.reacting, lowering=context.reacting)
    yield "without the load of this moment", dataclasses.replace(context, reacting=SILENT)


def _at_quantiles(entry: Entry, plans: Plans) -> Iterator[tuple[float, sizing.Planned]]:
    """Raising plans at the other probabilities that were forecast."""
    outlooks = {signal: raising for signal, (raising, _) in plans.outlooks.items()}
    known = {q for one in outlooks.values() if isinstance(one, Forecast) for q in one.quantiles}
    for probability in sorted(known - {entry.objectives.raise_quantile}):
        yield probability, _planned(entry, plans, outlooks, probability=probability)


def _following(entry: Entry, plans: Plans) -> Iterator[tuple[sizing.Planned, sizing.Planned]]:
    """The raising and the lowering plan by what was forecast, where room is planned for instead."""
    objectives = entry.objectives
    if any(isinstance(one, Forecast) and one.steady for pair in plans.outlooks.values() for one in pair):
        raising, lowering = ({s: _without_room(pair[i]) for s, pair in plans.outlooks.items()} for i in (0, 1))
        yield (
            _planned(entry, plans, raising, probability=objectives.raise_quantile),
            _planned(entry, plans, lowering, probability=objectives.lower_quantile),
        )


def _without_room(outlook: Outlook) -> Outlook:
    return dataclasses.replace(outlook, steady={}) if isinstance(outlook, Forecast) else outlook


def _planned(entry: Entry, plans: Plans, outlooks: Mapping[Signal, Outlook], *, probability: float) -> sizing.Planned:
    profile = entry.objectives.profile
    return planning.plan_for(outlooks, profile=profile, probability=probability, duration=plans.duration)


def _of_limits(entry: Entry, context: Context) -> Iterator[tuple[str, Context]]:
    wanted = [one.replicas for one in (context.raising, context.reacting) if isinstance(one, sizing.Plan)]
    most = max([context.maximum, *wanted])
    if most > context.maximum:
        yield f"at a maximum of {most}", dataclasses.replace(context, maximum=most)
    names = [one.name for one in entry.limits if one.name != limits.MAXIMUM]
    owner = next((one.replicas for one in entry.limits if one.name == limits.MAXIMUM), context.maximum)
    if names and owner > context.maximum:
        yield f"without {' and '.join(names)}", dataclasses.replace(context, maximum=owner)
    if context.base > 1:
        yield "at a minimum of 1", dataclasses.replace(context, base=1)


def _of_circumstances(context: Context) -> Iterator[tuple[str, Context]]:
    if context.unknown:
        yield "with all signals known", dataclasses.replace(context, unknown=())
    if context.unsized:
        yield "with the sizes of requests known", dataclasses.replace(context, unsized="")
    if context.breach:
        yield "with the objectives met", dataclasses.replace(context, breach="")
    if context.loading:
        yield "with the history loaded", dataclasses.replace(context, loading=False)
    if context.rollout:
        yield "without the rollout", dataclasses.replace(context, rollout=False)
    if context.owner_problem:
        yield "with a healthy owner", dataclasses.replace(context, owner_problem="")
