"""Each rule by itself, to the last word: what it says is what people read and metrics count.

Written against mutants that the other tests let live (docs/decisions/0005-mutants.md).
"""

import dataclasses

import pytest

from models.policy import rules
from models.policy.context import Context, FloorSettings, Memory, Supply
from models.policy.decision import Reason
from models.policy.rules import Proposal, Rule
from models.signals import Cause, Signal
from tests.models.policy.cases import LONG_AGO, NO_PLAN, NOW, SETTINGS, context, plan

AT_REST = Proposal(5, Reason.AT_PLAN, "before")
UNKNOWN = ((Signal.ARRIVALS, Cause.STALE), (Signal.WAITING, Cause.EMPTY))
MISSED = dataclasses.replace(LONG_AGO, missed_since=NOW - 300)
LOWER = Proposal(2, Reason.LOWERED_ONE_STEP, "lower")


def need(replicas: int) -> str:
    return f"in_flight {replicas * 40}.0 at 40 a replica needs {replicas}"


CASES: list[tuple[Rule, Context, Proposal, Memory, tuple[int, Reason, str]]] = [
    (rules.follow_the_plan, context(raising=NO_PLAN), AT_REST, LONG_AGO, (5, Reason.HELD_NO_FORECAST, NO_PLAN.why)),
    (
        rules.follow_the_plan,
        context(raising=plan(4), lowering=NO_PLAN),
        AT_REST,
        LONG_AGO,
        (5, Reason.HELD_NO_FORECAST, NO_PLAN.why),
    ),
    (
        rules.follow_the_plan,
        context(raising=plan(2), lowering=plan(3)),
        AT_REST,
        LONG_AGO,
        (3, Reason.LOWERED_ONE_STEP, f"longer forecast {need(3)}"),
    ),
    (rules.follow_the_plan, context(), AT_REST, LONG_AGO, (5, Reason.AT_PLAN, f"forecast {need(5)}")),
    (
        rules.follow_the_plan,
        context(raising=plan(6, room=True)),
        AT_REST,
        LONG_AGO,
        (6, Reason.RAISED_FOR_FORECAST, f"room for {need(6)}"),
    ),
    (
        rules.follow_the_plan,
        context(raising=plan(2), lowering=plan(3, room=True)),
        AT_REST,
        LONG_AGO,
        (3, Reason.LOWERED_ONE_STEP, f"room over the longer horizon for {need(3)}"),
    ),
    (  # the larger of the two plans is why it does not fall further
        rules.follow_the_plan,
        context(raising=plan(4), lowering=plan(3, room=True)),
        AT_REST,
        LONG_AGO,
        (4, Reason.LOWERED_ONE_STEP, f"forecast {need(4)}"),
    ),
    (
        rules.follow_the_plan,
        context(raising=plan(3), lowering=plan(3)),
        AT_REST,
        LONG_AGO,
        (3, Reason.LOWERED_ONE_STEP, f"forecast {need(3)}"),
    ),
    (  # why it does not fall, where raising alone would let it
        rules.follow_the_plan,
        context(raising=plan(4, room=True), lowering=plan(7)),
        AT_REST,
        LONG_AGO,
        (5, Reason.AT_PLAN, f"longer forecast {need(7)}"),
    ),
    (
        rules.follow_the_plan,
        context(raising=plan(5), lowering=plan(7)),
        AT_REST,
        LONG_AGO,
        (5, Reason.AT_PLAN, f"forecast {need(5)}"),
    ),
    (
        rules.follow_the_plan,
        context(raising=plan(5, room=True)),
        AT_REST,
        LONG_AGO,
        (5, Reason.AT_PLAN, f"room for {need(5)}"),
    ),
    (rules.cover_the_backlog, context(reacting=plan(5)), AT_REST, LONG_AGO, (5, Reason.AT_PLAN, "before")),
    (
        rules.cover_the_backlog,
        context(reacting=plan(7)),
        AT_REST,
        LONG_AGO,
        (7, Reason.RAISED_FOR_BACKLOG, f"now {need(7)}"),
    ),
    (rules.cover_the_backlog, context(reacting=plan(5)), LOWER, LONG_AGO, (5, Reason.AT_PLAN, f"now {need(5)}")),
    (
        rules.cover_the_backlog,
        context(reacting=plan(3)),
        LOWER,
        LONG_AGO,
        (3, Reason.LOWERED_ONE_STEP, f"now {need(3)}"),
    ),
    (
        rules.answer_a_missed_objective,
        context(breach="ttft 9 s", standing=1, supply=Supply(ready=1)),
        Proposal(1, Reason.AT_PLAN, "before"),
        MISSED,
        (2, Reason.RAISED_FOR_OBJECTIVE, "ttft 9 s for 300 s with 1 replicas"),
    ),
    (
        rules.answer_a_missed_objective,
        context(breach="ttft 9 s", supply=Supply(ready=0)),
        Proposal(0, Reason.AT_PLAN, "before"),
        MISSED,
        (5, Reason.HELD_OBJECTIVE_MISSED, "ttft 9 s"),
    ),
    (
        rules.answer_a_missed_objective,
        context(breach="ttft 9 s", supply=Supply(ready=5, warming=1)),
        AT_REST,
        MISSED,
        (5, Reason.AT_PLAN, "before"),
    ),
    (  # a miss of which nobody remembers the beginning has only begun
        rules.answer_a_missed_objective,
        context(breach="ttft 9 s"),
        AT_REST,
        LONG_AGO,
        (5, Reason.AT_PLAN, "before"),
    ),
    (rules.stay_above_base, context(base=5), AT_REST, LONG_AGO, (5, Reason.AT_PLAN, "before")),
    (
        rules.stay_above_base,
        context(base=7),
        AT_REST,
        LONG_AGO,
        (7, Reason.RAISED_TO_BASE, "the user's own minimum is 7"),
    ),
    (
        rules.stay_above_base,
        context(base=5),
        LOWER,
        LONG_AGO,
        (5, Reason.AT_PLAN, "lower; the user's own minimum is 5"),
    ),
    (rules.stay_above_base, context(base=3), LOWER, LONG_AGO, (3, Reason.LOWERED_ONE_STEP, "lower")),
    (rules.stay_below_maximum, context(maximum=5), AT_REST, LONG_AGO, (5, Reason.AT_PLAN, "before")),
    (
        rules.stay_below_maximum,
        context(maximum=4),
        AT_REST,
        LONG_AGO,
        (4, Reason.CAPPED_AT_MAXIMUM, "before; wanted 5, max 4"),
    ),
    (
        rules.hold_when_blind,
        context(loading=True),
        LOWER,
        LONG_AGO,
        (5, Reason.HELD_LOADING, "the history is still being loaded"),
    ),
    (
        rules.hold_when_blind,
        context(loading=True),
        AT_REST,
        LONG_AGO,
        (5, Reason.HELD_LOADING, "the history is still being loaded"),
    ),
    (
        rules.hold_when_blind,
        context(unknown=UNKNOWN),
        LOWER,
        LONG_AGO,
        (5, Reason.HELD_UNKNOWN, "arrivals stale, waiting empty"),
    ),
    (rules.hold_when_blind, context(lowering=NO_PLAN), LOWER, LONG_AGO, (5, Reason.HELD_NO_FORECAST, NO_PLAN.why)),
    (
        rules.hold_when_blind,
        context(raising=NO_PLAN, lowering=NO_PLAN, reacting=plan(3)),
        LOWER,
        dataclasses.replace(LONG_AGO, unknown_since=NOW - 3600),
        (3, Reason.DECAYED_ONE_STEP, f"unknown for 3600 s: {NO_PLAN.why}"),
    ),
    (
        rules.hold_when_blind,
        context(unknown=UNKNOWN, raising=plan(5)),
        LOWER,
        dataclasses.replace(LONG_AGO, unknown_since=NOW - 3600),
        (5, Reason.HELD_UNKNOWN, "arrivals stale, waiting empty"),
    ),
    (
        rules.hold_while_owner_is_busy,
        context(rollout=True),
        LOWER,
        LONG_AGO,
        (5, Reason.HELD_ROLLOUT, "the workload is being rolled out"),
    ),
    (
        rules.hold_while_owner_is_busy,
        context(owner_problem="no metrics"),
        LOWER,
        LONG_AGO,
        (5, Reason.HELD_OWNER_UNHEALTHY, "no metrics"),
    ),
    (rules.hold_while_owner_is_busy, context(rollout=True), AT_REST, LONG_AGO, (5, Reason.AT_PLAN, "before")),
    (
        rules.hold_recently_needed,
        context(),
        LOWER,
        Memory(needed_at=NOW - 120),
        (5, Reason.HELD_RECENT_NEED, "needed 120 s ago, held for 300 s"),
    ),
    (rules.hold_recently_needed, context(), AT_REST, Memory(needed_at=NOW), (5, Reason.AT_PLAN, "before")),
    (
        rules.step_down,
        context(),
        LOWER,
        dataclasses.replace(LONG_AGO, lowered_at=NOW - 20),
        (5, Reason.HELD_STEP_PERIOD, "the last step was 20 s ago, one every 60 s"),
    ),
    (
        rules.step_down,
        context(),
        LOWER,
        dataclasses.replace(LONG_AGO, lowered_at=NOW - 60),
        (4, Reason.LOWERED_ONE_STEP, "lower"),
    ),
    (rules.step_down, context(), AT_REST, dataclasses.replace(LONG_AGO, lowered_at=NOW), (5, Reason.AT_PLAN, "before")),
]


@pytest.mark.parametrize(("rule", "seen", "before", "memory", "after"), CASES)
def test_a_rule_says_this_and_no_more(
    rule: Rule, seen: Context, before: Proposal, memory: Memory, after: tuple[int, Reason, str]
) -> None:
    numbers = dataclasses.replace(SETTINGS, step_down_percent=0)
    assert rule(before, seen, numbers, memory) == Proposal(*after)


@pytest.mark.parametrize(
    ("proposed", "base", "after"),
    [
        (7, 2, (7, Reason.AT_PLAN, "before")),
        (8, 2, (7, Reason.CAPPED_BY_STEP, "before; wanted 8, 2 more at a time")),
        (9, 9, (9, Reason.CAPPED_BY_STEP, "before; wanted 9, 2 more at a time")),
    ],
)
def test_a_step_up_goes_as_far_as_it_may(proposed: int, base: int, after: tuple[int, Reason, str]) -> None:
    numbers = dataclasses.replace(SETTINGS, step_up=2)
    before = Proposal(proposed, Reason.AT_PLAN, "before")
    assert rules.limit_the_step_up(before, context(base=base), numbers, LONG_AGO) == Proposal(*after)


def test_a_step_may_be_the_whole_and_a_hold_none() -> None:
    assert FloorSettings(step_down_percent=100, hold=0, step_period=0, unknown_ttl=0).step_down_percent == 100
    assert FloorSettings(step_down=1, step_up=1).step_up == 1
