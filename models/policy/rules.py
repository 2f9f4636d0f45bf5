"""The rules, one function each, and their order."""

import dataclasses
import math
from collections.abc import Callable

from models.capacity import sizing
from models.policy.context import Context, FloorSettings, Memory
from models.policy.decision import Reason


@dataclasses.dataclass(frozen=True, slots=True)
class Proposal:
    """The number so far, the reason it has, and that reason with its figures for a person."""

    replicas: int
    reason: Reason
    note: str


Rule = Callable[[Proposal, Context, FloorSettings, Memory], Proposal]


def describe(plan: sizing.Plan) -> str:
    """The binding need in words: "in_flight 192.0 at 40 a replica needs 5"."""
    need = plan.binding
    return f"{need.kind} {need.demand:.1f} at {need.per_replica:g} a replica needs {need.replicas}"


def _ahead(plan: sizing.Plan) -> str:
    """The same with what it is for: a forecast, or room for what came lately."""
    return f"{'room for' if plan.binding.room else 'forecast'} {describe(plan)}"


def _longer_ahead(plan: sizing.Plan) -> str:
    """The same over the longer horizon."""
    return f"{'room over the longer horizon for' if plan.binding.room else 'longer forecast'} {describe(plan)}"


def follow_the_plan(proposal: Proposal, context: Context, _settings: FloorSettings, _memory: Memory) -> Proposal:
    """Up to the plan over the warm-up horizon; down only as far as the plan over the longer horizon."""
    raising, lowering = context.raising, context.lowering
    if isinstance(raising, sizing.NoPlan):
        return dataclasses.replace(proposal, reason=Reason.HELD_NO_FORECAST, note=raising.why)
    if raising.replicas > context.standing:
        return Proposal(raising.replicas, Reason.RAISED_FOR_FORECAST, _ahead(raising))
    if isinstance(lowering, sizing.NoPlan):
        return dataclasses.replace(proposal, reason=Reason.HELD_NO_FORECAST, note=lowering.why)
    wanted = min(max(raising.replicas, lowering.replicas), context.standing)
    note = _ahead(raising) if raising.replicas >= wanted else _longer_ahead(lowering)
    return Proposal(wanted, Reason.LOWERED_ONE_STEP if wanted < context.standing else Reason.AT_PLAN, note)


def cover_the_backlog(proposal: Proposal, context: Context, _settings: FloorSettings, _memory: Memory) -> Proposal:
    """The load of this moment, waiting requests included, lifts the number whatever the forecast said."""
    reacting = context.reacting
    if isinstance(reacting, sizing.NoPlan) or reacting.replicas <= proposal.replicas:
        return proposal
    if reacting.replicas > context.standing:
        return Proposal(reacting.replicas, Reason.RAISED_FOR_BACKLOG, f"now {describe(reacting)}")
    if reacting.replicas == context.standing:
        return Proposal(context.standing, Reason.AT_PLAN, f"now {describe(reacting)}")
    return dataclasses.replace(proposal, replicas=reacting.replicas, note=f"now {describe(reacting)}")


def answer_a_missed_objective(
    proposal: Proposal, context: Context, settings: FloorSettings, memory: Memory
) -> Proposal:
    """A guardrail against a plan that is wrong: nothing comes down while users wait too long.

    After the hold time one replica is added where none is on its way. A moment's miss is noise that costs more to
    answer than to bear. What a replica did shows only after its warm-up, so the next one takes another hold time.
    It adds to what is there, which an autoscaler may have above the floor. Where fewer are there than were asked for,
    those that are missing are stuck: one more would be as well.
    """
    if not context.breach:
        return proposal
    there = context.supply.ready + context.supply.warming
    enough = there > 0 and max(proposal.replicas, context.standing) <= there
    lasted = context.now - (context.now if memory.missed_since is None else memory.missed_since)
    if lasted >= settings.hold and context.supply.warming == 0 and enough:
        note = f"{context.breach} for {lasted:.0f} s with {there} replicas"
        return Proposal(there + 1, Reason.RAISED_FOR_OBJECTIVE, note)
    if proposal.replicas < context.standing:
        return Proposal(context.standing, Reason.HELD_OBJECTIVE_MISSED, context.breach)
    return proposal


def stay_above_base(proposal: Proposal, context: Context, _settings: FloorSettings, _memory: Memory) -> Proposal:
    """The user's own minimum, which the rules below must already see: a step towards less than it is no step."""
    if proposal.replicas >= context.base:
        return proposal
    if context.base > context.standing:
        return Proposal(context.base, Reason.RAISED_TO_BASE, f"the user's own minimum is {context.base}")
    if context.base == context.standing:
        return Proposal(context.base, Reason.AT_PLAN, f"{proposal.note}; the user's own minimum is {context.base}")
    return dataclasses.replace(proposal, replicas=context.base)


def stay_below_maximum(proposal: Proposal, context: Context, _settings: FloorSettings, _memory: Memory) -> Proposal:
    """The owner's upper bound, after all wishes: a cap must also bind what the backlog asks for.

    Where more stands than the bound allows, coming down to it is a descent like any other: the rules below may hold it
    (nothing falls on unknown signals, not even to a maximum somebody mistyped), and it goes by steps.
    """
    if proposal.replicas <= context.maximum:
        return proposal
    note = f"{proposal.note}; wanted {proposal.replicas}, max {context.maximum}"
    return Proposal(context.maximum, Reason.CAPPED_AT_MAXIMUM, note)


def hold_when_blind(proposal: Proposal, context: Context, settings: FloorSettings, memory: Memory) -> Proposal:
    """Unknown is not zero: nothing comes down while a signal is unknown, until after a long time-to-live it decays.

    A decay stops at whatever plan there still is, and at the base. The size of requests is one thing more that may be
    unknown: they may be larger than is planned for.
    """
    if context.loading and proposal.replicas <= context.standing:
        return Proposal(context.standing, Reason.HELD_LOADING, "the history is still being loaded")
    missing = next((plan.why for plan in (context.raising, context.lowering) if isinstance(plan, sizing.NoPlan)), "")
    unsized = context.unsized if proposal.replicas < context.standing else ""
    if not (context.unknown or missing or unsized) or proposal.replicas > context.standing:
        return proposal
    named = ", ".join(f"{signal} {cause}" for signal, cause in context.unknown) or missing or unsized
    reason = Reason.HELD_NO_FORECAST if missing and not context.unknown else Reason.HELD_UNKNOWN
    since = memory.unknown_since if context.unknown or missing else memory.unsized_since
    since = context.now if since is None else since
    if context.now - since < settings.unknown_ttl:
        return Proposal(context.standing, reason, named)
    plans = (context.raising, context.lowering, context.reacting)
    least = max([context.base, *(plan.replicas for plan in plans if isinstance(plan, sizing.Plan))])
    if least >= context.standing:
        return Proposal(context.standing, reason, named)
    return Proposal(least, Reason.DECAYED_ONE_STEP, f"unknown for {context.now - since:.0f} s: {named}")


def hold_while_owner_is_busy(
    proposal: Proposal, context: Context, _settings: FloorSettings, _memory: Memory
) -> Proposal:
    """Nothing comes down during a rollout, or while the owner reports that its own scaling does not work."""
    if proposal.replicas >= context.standing:
        return proposal
    if context.rollout:
        return Proposal(context.standing, Reason.HELD_ROLLOUT, "the workload is being rolled out")
    if context.owner_problem:
        return Proposal(context.standing, Reason.HELD_OWNER_UNHEALTHY, context.owner_problem)
    return proposal


def hold_recently_needed(proposal: Proposal, context: Context, settings: FloorSettings, memory: Memory) -> Proposal:
    """Nothing comes down before it has gone unneeded for the hold time."""
    unneeded = context.now - memory.needed_at
    if proposal.replicas >= context.standing or unneeded >= settings.hold:
        return proposal
    note = f"needed {unneeded:.0f} s ago, held for {settings.hold:.0f} s"
    return Proposal(context.standing, Reason.HELD_RECENT_NEED, note)


def step_down(proposal: Proposal, context: Context, settings: FloorSettings, memory: Memory) -> Proposal:
    """One step at a time: an HPA drops the whole difference at its next sync, so the steps are ours to make."""
    if proposal.replicas >= context.standing:
        return proposal
    if context.now - memory.lowered_at < settings.step_period:
        note = f"the last step was {context.now - memory.lowered_at:.0f} s ago, one every {settings.step_period:.0f} s"
        return Proposal(context.standing, Reason.HELD_STEP_PERIOD, note)
    step = max(settings.step_down, math.floor(context.standing * settings.step_down_percent / 100))
    return dataclasses.replace(proposal, replicas=max(proposal.replicas, context.standing - step))


def limit_the_step_up(proposal: Proposal, context: Context, settings: FloorSettings, _memory: Memory) -> Proposal:
    """At most `step_up` replicas more in one write."""
    if settings.step_up is None or proposal.replicas <= context.standing + settings.step_up:
        return proposal
    note = f"{proposal.note}; wanted {proposal.replicas}, {settings.step_up} more at a time"
    return Proposal(max(context.standing + settings.step_up, context.base), Reason.CAPPED_BY_STEP, note)


# Wishes first, then the bounds, which bind whatever was wished; then what forbids a descent (blindness before
# politeness: "unknown" is the more useful reason), then the size of a step. No rule below the bounds adds anything.
RULES: tuple[Rule, ...] = (
    follow_the_plan,
    cover_the_backlog,
    answer_a_missed_objective,
    stay_above_base,
    stay_below_maximum,
    hold_when_blind,
    hold_while_owner_is_busy,
    hold_recently_needed,
    step_down,
    limit_the_step_up,
)
