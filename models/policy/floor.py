"""From a context to a decision: the rules in their order, and what is remembered for the next time."""

import dataclasses

from models.capacity import sizing
from models.policy import rules
from models.policy.context import Context, FloorSettings, Memory
from models.policy.decision import Decision, Reason, Verdict


def decide(
    context: Context, settings: FloorSettings, memory: Memory, *, active: tuple[rules.Rule, ...] = rules.RULES
) -> tuple[Decision, Memory]:
    """The decision for one target, and the memory for its next decision.

    The order of the rules is explained at `rules.RULES`. Nothing but the arguments is looked at. `active` leaves rules
    out, to see what each is good for; the service leaves out none.
    """
    memory = dataclasses.replace(
        memory,
        unknown_since=_unknown_since(context, memory),
        unsized_since=_unsized_since(context, memory),
        needed_at=_needed_at(context, memory),
        missed_since=_missed_since(context, memory),
    )
    proposal = rules.Proposal(context.standing, Reason.AT_PLAN, "")
    trail: list[Verdict] = []
    for rule in active:
        after = rule(proposal, context, settings, memory)
        if after != proposal:
            trail.append(Verdict(rule.__name__, after.replicas, after.reason, after.note))
        proposal = after
    decision = Decision(
        at=context.now,
        before=context.standing,
        replicas=proposal.replicas,
        wanted=_wanted(context),
        reason=proposal.reason,
        note=proposal.note,
        trail=tuple(trail),
    )
    if decision.reason is Reason.RAISED_FOR_OBJECTIVE:
        memory = dataclasses.replace(memory, missed_since=context.now)
    if decision.replicas < context.standing:
        memory = dataclasses.replace(memory, lowered_at=context.now)
    return decision, memory


def _wanted(context: Context) -> int | None:
    """The largest of what the forecast and the present load ask for, uncapped."""
    plans = [plan.replicas for plan in (context.raising, context.reacting) if isinstance(plan, sizing.Plan)]
    return max(plans, default=None)


def _unknown_since(context: Context, memory: Memory) -> float | None:
    missing = any(isinstance(plan, sizing.NoPlan) for plan in (context.raising, context.lowering))
    if not (context.unknown or missing):
        return None
    return memory.unknown_since if memory.unknown_since is not None else context.now


def _unsized_since(context: Context, memory: Memory) -> float | None:
    """Apart from signals: a target of few requests never knows their size, and its signals may get lost as well."""
    if not context.unsized:
        return None
    return memory.unsized_since if memory.unsized_since is not None else context.now


def _missed_since(context: Context, memory: Memory) -> float | None:
    if not context.breach:
        return None
    return memory.missed_since if memory.missed_since is not None else context.now


def _needed_at(context: Context, memory: Memory) -> float:
    """Now, while any plan asks for at least what stands; a plan above the maximum asks for no more than that."""
    plans = (context.raising, context.lowering, context.reacting)
    needed = max((plan.replicas for plan in plans if isinstance(plan, sizing.Plan)), default=0)
    return context.now if min(needed, context.maximum) >= context.standing else memory.needed_at
