"""What holds for every context whatever."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from models.capacity.sizing import Planned
from models.policy import floor, rules
from models.policy.context import Context, FloorSettings, Memory, Supply
from models.policy.decision import Reason
from models.signals import Cause, Signal
from tests.models.policy.cases import NO_PLAN, NOW, plan

plans: st.SearchStrategy[Planned] = st.one_of(st.just(NO_PLAN), st.integers(0, 40).map(plan))
unknowns = st.lists(st.tuples(st.sampled_from(Signal), st.sampled_from(Cause)), max_size=2).map(tuple)
settings = st.builds(
    FloorSettings,
    hold=st.floats(0, 1000),
    step_down=st.integers(1, 5),
    step_down_percent=st.floats(0, 100),
    step_period=st.floats(0, 500),
    step_up=st.one_of(st.none(), st.integers(1, 5)),
    unknown_ttl=st.floats(0, 5000),
)
memories = st.builds(
    Memory,
    needed_at=st.floats(NOW - 5000, NOW),
    lowered_at=st.floats(NOW - 5000, NOW),
    unknown_since=st.one_of(st.none(), st.floats(NOW - 9000, NOW)),
    unsized_since=st.one_of(st.none(), st.floats(NOW - 9000, NOW)),
    missed_since=st.one_of(st.none(), st.floats(NOW - 2000, NOW)),
)


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    base = draw(st.integers(0, 10))
    maximum = draw(st.integers(max(base, 1), 30))
    return Context(
        now=NOW,
        standing=draw(st.integers(0, 30)),
        base=base,
        maximum=maximum,
        raising=draw(plans),
        lowering=draw(plans),
        reacting=draw(plans),
        supply=Supply(ready=draw(st.integers(0, 30)), warming=draw(st.integers(0, 5))),
        unknown=draw(unknowns),
        loading=draw(st.booleans()),
        rollout=draw(st.booleans()),
        owner_problem=draw(st.sampled_from(["", "broken"])),
        breach=draw(st.sampled_from(["", "ttft 9 s"])),
        unsized=draw(st.sampled_from(["", "few requests were seen"])),
    )


@given(contexts(), settings, memories)
def test_the_bounds_always_hold(context: Context, numbers: FloorSettings, memory: Memory) -> None:
    decision, _ = floor.decide(context, numbers, memory)
    assert context.base <= decision.replicas <= max(context.maximum, context.standing)
    if context.standing > context.maximum:
        assert decision.replicas <= context.standing  # on the way down, or held


@given(contexts(), settings, memories)
def test_nothing_is_lowered_on_unknown_before_the_time_to_live(
    context: Context, numbers: FloorSettings, memory: Memory
) -> None:
    blind = bool(context.unknown) or NO_PLAN in (context.raising, context.lowering)
    since = memory.unknown_since if blind else memory.unsized_since
    decision, _ = floor.decide(context, numbers, memory)
    if context.loading or ((blind or context.unsized) and NOW - (since or NOW) < numbers.unknown_ttl):
        assert decision.replicas >= context.standing


@given(contexts(), settings, memories)
def test_a_descent_is_at_most_one_step(context: Context, numbers: FloorSettings, memory: Memory) -> None:
    decision, after = floor.decide(context, numbers, memory)
    if decision.replicas < context.standing:
        allowed = max(numbers.step_down, context.standing * numbers.step_down_percent / 100)
        assert context.standing - decision.replicas <= allowed
        assert after.lowered_at == NOW


@given(contexts(), settings, memories)
def test_nothing_comes_down_while_an_objective_is_missed(
    context: Context, numbers: FloorSettings, memory: Memory
) -> None:
    missed = dataclasses.replace(context, breach="ttft 9 s", maximum=max(context.maximum, context.standing))
    decision, _ = floor.decide(missed, numbers, memory)
    assert decision.replicas >= context.standing or decision.reason is Reason.DECAYED_ONE_STEP


@given(contexts(), settings, memories, st.integers(0, 10))
def test_more_demand_never_gives_fewer_replicas(
    context: Context, numbers: FloorSettings, memory: Memory, more: int
) -> None:
    def raised(planned: Planned) -> Planned:
        return planned if planned == NO_PLAN else plan(planned.replicas + more)  # type: ignore[union-attr]

    busier = dataclasses.replace(
        context,
        raising=raised(context.raising),
        lowering=raised(context.lowering),
        reacting=raised(context.reacting),
    )
    calm, _ = floor.decide(context, numbers, memory)
    busy, _ = floor.decide(busier, numbers, memory)
    assert busy.replicas >= calm.replicas


@given(contexts(), settings, memories)
def test_the_number_covers_the_present_load_unless_a_limit_says_so(
    context: Context, numbers: FloorSettings, memory: Memory
) -> None:
    decision, _ = floor.decide(context, numbers, memory)
    needed = 0 if context.reacting == NO_PLAN else context.reacting.replicas  # type: ignore[union-attr]
    if decision.reason is not Reason.CAPPED_BY_STEP:
        assert decision.replicas >= min(needed, context.maximum)


@given(contexts(), settings, memories)
def test_the_same_arguments_give_the_same_decision(context: Context, numbers: FloorSettings, memory: Memory) -> None:
    assert floor.decide(context, numbers, memory) == floor.decide(context, numbers, memory)


@given(contexts(), settings, memories)
def test_the_last_rule_that_spoke_is_the_decision_and_each_before_it_said_what_it_made(
    context: Context, numbers: FloorSettings, memory: Memory
) -> None:
    decision, _ = floor.decide(context, numbers, memory)
    assert (decision.at, decision.before) == (NOW, context.standing)
    last = decision.trail[-1]
    assert (last.replicas, last.reason, last.note) == (decision.replicas, decision.reason, decision.note)
    for number, verdict in enumerate(decision.trail):
        upto = [rule.__name__ for rule in rules.RULES].index(verdict.rule) + 1
        sooner = floor.decide(context, numbers, memory, active=rules.RULES[:upto])[0]
        assert sooner.trail == decision.trail[: number + 1]
        assert (sooner.replicas, sooner.reason, sooner.note) == (verdict.replicas, verdict.reason, verdict.note)


@given(contexts(), settings, memories)
def test_without_any_rule_the_number_stays_and_nothing_is_said(
    context: Context, numbers: FloorSettings, memory: Memory
) -> None:
    decision, _ = floor.decide(context, numbers, memory, active=())
    assert not decision.changes
    assert (decision.reason, decision.note, decision.trail) == (Reason.AT_PLAN, "", ())
