"""Scenarios: both loops walked by the clock over a world of fakes."""

import dataclasses
import itertools

import pytest

from models.capacity import warmup
from models.capacity.profile import Profile
from models.policy.context import Supply
from models.policy.decision import Reason
from models.signals import Signal
from predictor.ports import Refused, Written
from predictor.targets import Mode
from tests.fakes.stage import FLOOR, PACE, SEASON, TARGET, Stage, demand
from tests.fakes.world import CALM, FakeSource


def test_the_floor_rises_before_a_recurring_load_and_comes_down_in_steps_after_it() -> None:
    # a rise in one horizon of some sixty is what p95 may leave out
    objectives = dataclasses.replace(TARGET.objectives, raise_quantile=0.975)
    stage = Stage(demand(), target=dataclasses.replace(TARGET, objectives=objectives))
    stage.pass_time(SEASON / 3 - 60)
    assert stage.standing() >= 6  # 230 in flight at 40 a replica, asked for a warm-up ahead
    stage.pass_time(SEASON / 3 + 60)
    assert stage.standing() >= 6
    stage.pass_time(SEASON / 4)
    assert stage.standing() == 2
    numbers = [replicas for _, _, replicas in stage.workloads.writes]
    down = [b - a for a, b in itertools.pairwise(numbers) if b < a]
    assert set(down) == {-1}


def test_a_load_that_no_forecast_saw_is_met_by_the_fast_loop() -> None:
    stage = Stage(demand(lambda time: 70.0 if time < SEASON * 300 + 95 else 390.0))
    stage.pass_time(110)
    assert stage.standing() == 10
    assert stage.entry.decision.reason is Reason.RAISED_FOR_BACKLOG


def test_nothing_comes_down_while_the_source_is_down_and_the_loops_go_on_when_it_returns() -> None:
    stage = Stage(demand(lambda time: 310.0 if time < SEASON * 300 + 60 else 40.0))
    stage.pass_time(60)
    assert stage.standing() == 8
    stage.source.down = True
    stage.pass_time(1800)
    assert stage.standing() == 8
    assert stage.entry.decision.reason is Reason.HELD_UNKNOWN
    assert "in_flight source_down" in stage.entry.decision.note
    stage.source.down = False
    stage.pass_time(1800)
    assert stage.standing() < 8
    assert {outcome for _, outcome in stage.recorder.ticks} == {"finished"}


@pytest.mark.parametrize("name", ["arrivals", "in_flight", "waiting", "kv_usage"])
def test_nothing_comes_down_while_any_signal_that_is_planned_for_is_unknown(name: str) -> None:
    values = {
        "arrivals": lambda _: 1.0,
        "in_flight": lambda _: 40.0,
        "waiting": lambda _: 0.0,
        "kv_usage": lambda _: 0.8,  # of 6 replicas at 800 tokens each: 6 are needed
    }
    planned = dataclasses.replace(TARGET.objectives, profile=Profile(concurrency=40, kv_tokens=1000))
    stage = Stage(
        FakeSource(**values),
        target=dataclasses.replace(TARGET, objectives=planned),
        workload=dataclasses.replace(CALM, supply=Supply(ready=6)),
    )
    stage.pass_time(60)
    assert stage.standing() == 6
    stage.source.missing = {Signal(name)}
    stage.pass_time(900)
    assert stage.standing() == 6
    assert stage.entry.decision.reason is Reason.HELD_UNKNOWN
    assert f"{name} empty" in stage.entry.decision.note


def test_kv_usage_that_nothing_is_planned_from_may_be_unknown() -> None:
    stage = Stage(FakeSource(in_flight=lambda _: 40.0, waiting=lambda _: 0.0, kv_usage=lambda _: 0.8))
    stage.source.missing = {Signal.KV_USAGE}
    stage.pass_time(60)
    assert stage.entry.decision.reason is Reason.AT_PLAN


def test_a_target_that_could_not_be_observed_for_long_is_held_before_it_is_lowered() -> None:
    """It was needed until a moment ago, but nobody decided anything meanwhile."""
    begin = SEASON * 300
    stage = Stage(demand(lambda time: 310.0 if time < begin + 3600 else 40.0))
    stage.pass_time(60)
    before = stage.workloads.state[TARGET.key]
    stage.workloads.state[TARGET.key] = Refused("Unreachable", "no answer")
    stage.pass_time(3600)
    stage.workloads.state[TARGET.key] = before
    stage.pass_time(FLOOR.hold - PACE.fast)
    assert stage.standing() == 8


def test_shadow_mode_decides_everything_and_writes_nothing() -> None:
    stage = Stage(demand(), target=dataclasses.replace(TARGET, mode=Mode.SHADOW))
    stage.pass_time(SEASON / 2)
    assert stage.workloads.writes == []
    assert stage.entry.shadow_floor >= 6
    assert stage.standing() == 2


def test_a_replica_that_does_not_lead_decides_everything_writes_nothing_and_is_ready_to_take_over() -> None:
    leads = False
    stage = Stage(demand(lambda _: 310.0), leads=lambda: leads)
    stage.pass_time(120)
    assert stage.loops.loaded
    assert (stage.workloads.writes, stage.workloads.announced) == ([], [])
    assert (stage.entry.decision.replicas, stage.entry.refused) == (8, None)
    leads = True
    stage.pass_time(PACE.fast)
    assert stage.standing() == 8


def test_shadow_decisions_are_those_of_control_mode() -> None:
    control, shadow = Stage(demand()), Stage(demand(), target=dataclasses.replace(TARGET, mode=Mode.SHADOW))
    for stage in (control, shadow):
        stage.pass_time(SEASON)
    assert [d.replicas for d, _ in shadow.recorder.decisions] == [d.replicas for d, _ in control.recorder.decisions]


def test_nothing_comes_down_until_the_history_is_loaded() -> None:
    busy = dataclasses.replace(CALM, standing=8, adopted=True)
    stage = Stage(demand(lambda _: 40.0), workload=busy)
    stage.source.down = True
    stage.pass_time(300)
    assert not stage.loops.loaded
    assert stage.standing() == 8
    stage.source.down = False
    stage.pass_time(60)
    assert stage.loops.loaded


def test_a_source_without_history_counts_as_loaded_and_the_forecast_grows_from_the_readings() -> None:
    stage = Stage(demand(lambda _: 70.0))
    stage.source.keeps_history = False
    stage.pass_time(300)
    assert stage.loops.loaded
    assert stage.entry.decision.reason is Reason.AT_PLAN


def test_a_restart_holds_before_it_lowers() -> None:
    raised = dataclasses.replace(CALM, standing=8, adopted=True)
    stage = Stage(demand(lambda _: 40.0), workload=raised)
    stage.pass_time(FLOOR.hold - 10)
    assert stage.standing() == 8
    stage.pass_time(120)
    assert stage.standing() < 8


def test_a_refused_write_is_recorded_and_tried_again_with_what_then_stands() -> None:
    stage = Stage(demand(lambda _: 310.0))
    stage.workloads.refuse = Refused("Forbidden", "patch horizontalpodautoscalers in llm")
    stage.pass_time(30)
    assert stage.standing() == 2
    assert stage.entry.refused == stage.workloads.refuse
    stage.workloads.refuse = None
    stage.pass_time(30)
    assert stage.standing() == 8
    assert stage.entry.refused is None


def test_a_target_that_cannot_be_observed_is_left_alone_and_reported() -> None:
    refused = Refused("NotFound", "Deployment llm/chat")
    stage = Stage(demand(), workload=refused)
    stage.pass_time(60)
    assert stage.workloads.writes == []
    assert stage.entry.decision is None
    assert stage.recorder.seen[-1] == refused


def test_a_foreign_raise_of_the_base_is_followed() -> None:
    stage = Stage(demand(lambda _: 40.0))
    stage.pass_time(60)
    stage.workloads.state[TARGET.key] = dataclasses.replace(CALM, standing=5, base=5)
    stage.pass_time(600)
    assert stage.standing() == 5


def test_only_news_is_announced() -> None:
    stage = Stage(demand(lambda _: 70.0))
    stage.pass_time(600)
    assert len(stage.workloads.announced) == 1
    assert sum(news for _, news in stage.recorder.decisions) == 1


def test_the_horizon_follows_the_measured_warm_up() -> None:
    stage = Stage(
        demand(), workload=dataclasses.replace(CALM, warm_up=warmup.of_seconds(*[100.0] * 5), supply=Supply(ready=2))
    )
    stage.pass_time(30)
    assert stage.entry.plans.horizons.raising == 100 + PACE.slow + PACE.signal_age
    raising, lowering = stage.entry.plans.outlooks[Signal.IN_FLIGHT]
    assert (raising.horizon, lowering.horizon) == (145, 245)


def test_the_number_is_written_before_it_is_announced() -> None:
    stage = Stage(demand(lambda _: 310.0))
    order: list[str] = []
    stage.workloads.write = lambda _target, replicas, **_: order.append("write") or Written(replicas)  # type: ignore[func-returns-value]
    stage.workloads.announce = lambda *_: order.append("announce")
    stage.loops.fast_tick()
    assert order == ["write", "announce"]


def test_a_refused_write_is_not_announced_as_a_change_and_the_one_that_succeeds_is() -> None:
    stage = Stage(demand(lambda _: 310.0))
    stage.workloads.refuse = Refused("Conflict", "somebody was faster")
    stage.pass_time(30)
    assert stage.workloads.announced == []
    stage.workloads.refuse = None
    stage.pass_time(10)
    assert [(one.before, one.replicas) for one in stage.workloads.announced if one.changes] == [(2, 8)]


def test_sums_over_fewer_pods_than_are_ready_lower_nothing_and_are_named() -> None:
    """Prometheus lost half of the pods: what it sums up halves."""
    half = SEASON * 300 + 600
    source = FakeSource(
        in_flight=lambda time: 310.0 if time < half else 155.0,
        waiting=lambda _: 0.0,
        reporting=lambda time: 8.0 if time < half else 4.0,
    )
    stage = Stage(source, workload=dataclasses.replace(CALM, standing=8, supply=Supply(ready=8)))
    stage.pass_time(1800)
    assert stage.standing() == 8
    assert stage.entry.decision.note == "reporting partial"
