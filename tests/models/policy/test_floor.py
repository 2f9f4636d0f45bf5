"""Each rule by example; the order where it matters."""

import dataclasses

import pytest

from models.policy import floor, rules
from models.policy.context import Context, FloorSettings, Memory, Supply
from models.policy.decision import Decision, Reason
from models.signals import Cause, Signal
from tests.models.policy.cases import LONG_AGO, NO_PLAN, NOW, SETTINGS, context, plan

UNKNOWN = ((Signal.ARRIVALS, Cause.SOURCE_DOWN),)


def decide(context: Context, memory: Memory = LONG_AGO, settings: FloorSettings = SETTINGS) -> Decision:
    return floor.decide(context, settings, memory)[0]


def outcome(decision: Decision) -> tuple[int, Reason]:
    return decision.replicas, decision.reason


def test_stays_at_the_plan() -> None:
    decision = decide(context())
    assert outcome(decision) == (5, Reason.AT_PLAN)
    assert not decision.changes


def test_raises_to_the_plan_in_one_write_and_says_for_what() -> None:
    decision = decide(context(raising=plan(9), lowering=plan(9)))
    assert outcome(decision) == (9, Reason.RAISED_FOR_FORECAST)
    assert decision.note == "forecast in_flight 360.0 at 40 a replica needs 9"
    assert decision.wanted == 9


def test_a_backlog_lifts_the_number_that_the_forecast_would_leave() -> None:
    decision = decide(context(reacting=plan(8)))
    assert outcome(decision) == (8, Reason.RAISED_FOR_BACKLOG)


def test_the_present_load_keeps_what_the_forecast_would_lower() -> None:
    decision = decide(context(raising=plan(3), lowering=plan(3), reacting=plan(5)))
    assert outcome(decision) == (5, Reason.AT_PLAN)


def test_lowers_no_further_than_the_present_load() -> None:
    settings = dataclasses.replace(SETTINGS, step_down=9)
    decision = decide(context(raising=plan(2), lowering=plan(2), reacting=plan(4)), settings=settings)
    assert outcome(decision) == (4, Reason.LOWERED_ONE_STEP)


def test_lowers_one_step_after_the_hold() -> None:
    lower = context(raising=plan(2), lowering=plan(2))
    assert outcome(decide(lower)) == (4, Reason.LOWERED_ONE_STEP)
    assert outcome(decide(lower, Memory(needed_at=NOW - 299))) == (5, Reason.HELD_RECENT_NEED)


def test_lowers_only_to_what_the_longer_horizon_agrees_to() -> None:
    settings = dataclasses.replace(SETTINGS, step_down=9)
    decision = decide(context(raising=plan(2), lowering=plan(4)), settings=settings)
    assert outcome(decision) == (4, Reason.LOWERED_ONE_STEP)


def test_waits_a_period_between_two_steps() -> None:
    memory = dataclasses.replace(LONG_AGO, lowered_at=NOW - 59)
    assert outcome(decide(context(raising=plan(2), lowering=plan(2)), memory)) == (5, Reason.HELD_STEP_PERIOD)


def test_a_percentage_makes_larger_steps_where_there_are_many() -> None:
    settings = dataclasses.replace(SETTINGS, step_down_percent=20)
    many = context(standing=50, maximum=100, raising=plan(2), lowering=plan(2))
    assert decide(many, settings=settings).replicas == 40
    assert decide(context(raising=plan(2), lowering=plan(2)), settings=settings).replicas == 4


def test_never_below_the_base() -> None:
    assert outcome(decide(context(standing=2, raising=plan(1), lowering=plan(1)))) == (2, Reason.AT_PLAN)
    settings = dataclasses.replace(SETTINGS, step_down=9)
    assert decide(context(raising=plan(1), lowering=plan(1)), settings=settings).replicas == 2


def test_a_raised_base_is_followed_at_once() -> None:
    assert outcome(decide(context(base=7))) == (7, Reason.RAISED_TO_BASE)


def test_a_cap_binds_what_the_backlog_asks_for_and_is_reported() -> None:
    decision = decide(context(reacting=plan(14)))
    assert outcome(decision) == (10, Reason.CAPPED_AT_MAXIMUM)
    assert decision.wanted == 14
    assert decision.note.endswith("wanted 14, max 10")


def test_a_lowered_maximum_is_followed_by_steps_like_any_descent() -> None:
    assert outcome(decide(context(maximum=3))) == (4, Reason.CAPPED_AT_MAXIMUM)
    assert outcome(decide(context(maximum=3, unknown=UNKNOWN))) == (5, Reason.HELD_UNKNOWN)
    assert outcome(decide(context(maximum=3, loading=True))) == (5, Reason.HELD_LOADING)


def test_a_plan_above_the_maximum_does_not_keep_what_stands_above_it() -> None:
    memory, standing = Memory(needed_at=NOW), 8
    for tick in range(0, 900, 30):
        busy = context(now=NOW + tick, standing=standing, maximum=3, raising=plan(9), lowering=plan(9))
        decision, memory = floor.decide(busy, SETTINGS, memory)
        standing = decision.replicas
    assert standing == 3


def test_a_step_up_can_be_limited() -> None:
    settings = dataclasses.replace(SETTINGS, step_up=2)
    assert outcome(decide(context(raising=plan(9)), settings=settings)) == (7, Reason.CAPPED_BY_STEP)


@pytest.mark.parametrize("why", ["rollout", "owner"])
def test_nothing_comes_down_while_the_owner_is_busy(why: str) -> None:
    lower = context(raising=plan(2), lowering=plan(2))
    if why == "rollout":
        assert outcome(decide(dataclasses.replace(lower, rollout=True))) == (5, Reason.HELD_ROLLOUT)
    else:
        busy = dataclasses.replace(lower, owner_problem="ScalingActive is False: FailedGetExternalMetric")
        assert outcome(decide(busy)) == (5, Reason.HELD_OWNER_UNHEALTHY)


def test_a_rollout_does_not_keep_a_raise_back() -> None:
    assert decide(context(raising=plan(8), rollout=True, owner_problem="broken")).replicas == 8


def test_nothing_comes_down_while_a_signal_is_unknown_and_it_is_named() -> None:
    decision = decide(context(raising=plan(2), lowering=plan(2), unknown=UNKNOWN))
    assert outcome(decision) == (5, Reason.HELD_UNKNOWN)
    assert decision.note == "arrivals source_down"


def test_nothing_comes_down_while_the_size_of_requests_is_unknown_and_it_is_said() -> None:
    lower = context(raising=plan(2), lowering=plan(2), unsized="3 of 30 requests were seen")
    decision = decide(lower)
    assert outcome(decision) == (5, Reason.HELD_UNKNOWN)
    assert decision.note == "3 of 30 requests were seen"
    assert decide(dataclasses.replace(lower, unknown=UNKNOWN)).note == "arrivals source_down"
    assert outcome(decide(dataclasses.replace(lower, lowering=NO_PLAN))) == (5, Reason.HELD_NO_FORECAST)


def test_sizes_that_are_unknown_matter_only_where_the_number_would_come_down() -> None:
    assert outcome(decide(context(unsized="few"))) == (5, Reason.AT_PLAN)
    assert outcome(decide(context(raising=plan(8), unsized="few"))) == (8, Reason.RAISED_FOR_FORECAST)


def test_after_a_long_time_without_knowing_sizes_it_comes_down_to_the_plan() -> None:
    lower = context(raising=plan(2), lowering=plan(2), unsized="few")
    _, memory = floor.decide(lower, SETTINGS, LONG_AGO)
    assert memory.unsized_since == NOW
    memory = dataclasses.replace(memory, unsized_since=NOW - 3600)
    assert outcome(decide(lower, memory)) == (4, Reason.DECAYED_ONE_STEP)


def test_sizes_that_were_never_known_shorten_no_hold_of_signals_that_get_lost() -> None:
    memory = dataclasses.replace(LONG_AGO, unsized_since=NOW - 9999)
    for lost in ({"unknown": ((Signal.IN_FLIGHT, Cause.SOURCE_DOWN),)}, {"raising": NO_PLAN}, {"lowering": NO_PLAN}):
        lower = context(**{"raising": plan(2), "lowering": plan(2), "unsized": "few", **lost})
        assert decide(lower, memory).replicas == 5


def test_no_forecast_holds() -> None:
    assert outcome(decide(context(raising=NO_PLAN))) == (5, Reason.HELD_NO_FORECAST)
    assert outcome(decide(context(raising=plan(2), lowering=NO_PLAN))) == (5, Reason.HELD_NO_FORECAST)


def test_a_backlog_lifts_the_number_without_any_forecast() -> None:
    decision = decide(context(raising=NO_PLAN, lowering=NO_PLAN, reacting=plan(7)))
    assert outcome(decision) == (7, Reason.RAISED_FOR_BACKLOG)


def test_nothing_comes_down_while_the_history_is_being_loaded() -> None:
    assert outcome(decide(context(raising=plan(2), lowering=plan(2), loading=True))) == (5, Reason.HELD_LOADING)
    assert decide(context(raising=plan(8), loading=True)).replicas == 8


def blind(**changes: object) -> Context:
    return context(raising=NO_PLAN, lowering=NO_PLAN, reacting=NO_PLAN, unknown=UNKNOWN, **changes)


def test_after_a_long_time_without_signals_it_decays_one_step() -> None:
    memory = dataclasses.replace(LONG_AGO, unknown_since=NOW - 3600)
    assert outcome(decide(blind(), memory)) == (4, Reason.DECAYED_ONE_STEP)
    assert outcome(decide(blind(), dataclasses.replace(memory, unknown_since=NOW - 3599))) == (5, Reason.HELD_UNKNOWN)


def test_a_decay_stops_at_the_base_and_at_any_plan_there_still_is() -> None:
    memory = dataclasses.replace(LONG_AGO, unknown_since=NOW - 9999)
    assert outcome(decide(blind(standing=2), memory)) == (2, Reason.HELD_UNKNOWN)
    known = context(raising=plan(5), lowering=plan(5), unknown=UNKNOWN)
    assert outcome(decide(known, memory)) == (5, Reason.HELD_UNKNOWN)


def test_the_time_of_blindness_is_counted_from_its_first_tick_and_forgotten_with_its_last() -> None:
    _, memory = floor.decide(blind(), SETTINGS, LONG_AGO)
    assert memory.unknown_since == NOW
    _, memory = floor.decide(blind(now=NOW + 30), SETTINGS, memory)
    assert memory.unknown_since == NOW
    _, memory = floor.decide(context(now=NOW + 60), SETTINGS, memory)
    assert memory.unknown_since is None


def test_the_trail_tells_the_rules_that_spoke_in_order() -> None:
    decision = decide(context(reacting=plan(14)))
    assert [verdict.rule for verdict in decision.trail] == [
        "follow_the_plan",
        "cover_the_backlog",
        "stay_below_maximum",
    ]


def test_settings_refuse_nonsense_by_name() -> None:
    for name, bad in [
        ("hold", -1),
        ("step_period", -1),
        ("unknown_ttl", -1),
        ("step_down", 0),
        ("step_up", 0),
        ("step_down_percent", 101),
    ]:
        with pytest.raises(ValueError, match=name):
            dataclasses.replace(SETTINGS, **{name: bad})


def test_a_day_walked_by_the_clock_comes_down_in_steps_and_not_before_the_hold() -> None:
    """The plan falls from 8 to 3 at t = 0; hold 300 s, a step a minute: 7 at 300 s, 3 at 540 s."""
    memory, standing, seen = Memory(needed_at=NOW), 8, {}
    for tick in range(0, 900, 30):
        now = NOW + tick
        quiet = context(now=now, standing=standing, raising=plan(3), lowering=plan(3), reacting=plan(2))
        decision, memory = floor.decide(quiet, SETTINGS, memory)
        standing = decision.replicas
        seen.setdefault(standing, tick)
    assert seen == {8: 0, 7: 300, 6: 360, 5: 420, 4: 480, 3: 540}


MISSED = "TTFT p95 3.1 s over 2 s"


MISSING = dataclasses.replace(LONG_AGO, missed_since=NOW - SETTINGS.hold)


def test_an_objective_missed_for_the_hold_time_adds_one_replica_where_none_is_on_its_way() -> None:
    decision = decide(context(breach=MISSED), MISSING)
    assert outcome(decision) == (6, Reason.RAISED_FOR_OBJECTIVE)
    assert decision.note == "TTFT p95 3.1 s over 2 s for 300 s with 5 replicas"
    assert decide(context(breach=MISSED, supply=Supply(ready=5, warming=1)), MISSING).replicas == 5


def test_a_missed_objective_neither_adds_nor_takes_away_where_pods_that_were_asked_for_are_stuck() -> None:
    for planned in (3, 8, 10):
        stuck = context(
            breach=MISSED, standing=10, supply=Supply(ready=5), raising=plan(planned), lowering=plan(planned)
        )
        decision = decide(stuck, MISSING)
        assert decision.replicas == 10
        assert planned == 10 or decision.reason is Reason.HELD_OBJECTIVE_MISSED


def test_a_miss_that_has_not_lasted_adds_nothing_and_one_that_ended_begins_anew() -> None:
    begun = floor.decide(context(breach=MISSED), SETTINGS, LONG_AGO)[1]
    ended = floor.decide(context(now=NOW + 200), SETTINGS, begun)[1]
    again, memory = floor.decide(context(breach=MISSED, now=NOW + SETTINGS.hold), SETTINGS, ended)
    assert (again.replicas, memory.missed_since) == (5, NOW + SETTINGS.hold)
    assert floor.decide(context(breach=MISSED, now=NOW + SETTINGS.hold), SETTINGS, begun)[0].replicas == 6


def test_a_missed_objective_adds_to_what_an_autoscaler_has_above_the_floor() -> None:
    above = context(breach=MISSED, supply=Supply(ready=8))
    assert outcome(decide(above, MISSING)) == (9, Reason.RAISED_FOR_OBJECTIVE)


def test_the_next_replica_for_a_missed_objective_takes_another_hold_time() -> None:
    memory = floor.decide(context(breach=MISSED), SETTINGS, MISSING)[1]
    soon = context(breach=MISSED, now=NOW + SETTINGS.hold - 1, standing=6, supply=Supply(ready=6))
    later = dataclasses.replace(soon, now=NOW + SETTINGS.hold)
    assert floor.decide(soon, SETTINGS, memory)[0].replicas == 6
    assert floor.decide(later, SETTINGS, memory)[0].replicas == 7


def test_a_missed_objective_adds_nothing_to_a_larger_plan_nor_to_a_fleet_without_a_single_replica() -> None:
    assert outcome(decide(context(breach=MISSED, raising=plan(9)), MISSING)) == (9, Reason.RAISED_FOR_FORECAST)
    assert decide(context(breach=MISSED, supply=Supply(ready=0)), MISSING).replicas == 5


def test_nothing_comes_down_while_an_objective_is_missed() -> None:
    falling = context(breach=MISSED, raising=plan(3), lowering=plan(3), supply=Supply(ready=5, warming=1))
    assert outcome(decide(falling)) == (5, Reason.HELD_OBJECTIVE_MISSED)


def test_a_missed_objective_does_not_go_beyond_the_maximum() -> None:
    assert outcome(decide(context(breach=MISSED, maximum=5), MISSING)) == (5, Reason.CAPPED_AT_MAXIMUM)


def test_a_rule_can_be_left_out_to_see_what_it_is_good_for() -> None:
    without = tuple(rule for rule in rules.RULES if rule is not rules.cover_the_backlog)
    assert floor.decide(context(reacting=plan(8)), SETTINGS, LONG_AGO, active=without)[0].replicas == 5
