"""Scenarios in which requests grow while as many arrive: token rates as needs of their own."""

import dataclasses
from collections.abc import Callable

import pytest

from models.capacity.profile import Profile
from models.capacity.sizing import NeedKind, Plan
from models.policy.context import Supply
from models.policy.decision import Reason
from models.signals import Cause, Signal
from predictor.targets import Target
from tests.fakes.stage import SEASON, TARGET, Stage
from tests.fakes.world import CALM, FakeSource

BEGIN = SEASON * 300  # where the stage's clock starts
ARRIVALS = 4.0  # a second, all the time
SHORT, LONG = 1_500.0, 6_000.0  # tokens of a prompt
PROFILE = Profile(concurrency=40, throughput=4, tokens_in=7_000, tokens_out=2_000)


def long_prompts(time: float) -> float:
    """Prompts four times as long from ten to twenty past every hour."""
    return ARRIVALS * (LONG if 600 <= time % SEASON < 1200 else SHORT)


def planned_for(profile: Profile) -> Target:
    objectives = dataclasses.replace(TARGET.objectives, profile=profile, raise_quantile=0.975)
    return dataclasses.replace(TARGET, objectives=objectives)


def source(tokens_in: Callable[[float], float] = long_prompts) -> FakeSource:
    return FakeSource(
        arrivals=lambda _: ARRIVALS,
        in_flight=lambda _: 20.0,
        waiting=lambda _: 0.0,
        tokens_in=tokens_in,
        tokens_out=lambda _: ARRIVALS * 300,
    )


def test_the_floor_rises_in_time_for_prompts_that_get_longer_while_as_many_requests_arrive() -> None:
    # 6,000 tokens a second need one replica, 24,000 need four; the minimum is two; arrivals and what runs need one
    stage = Stage(source(), target=planned_for(PROFILE))
    stage.pass_time(300)
    assert stage.standing() == 2
    stage.pass_time(240)  # a minute before
    assert stage.standing() == 4
    assert stage.entry.decision.reason in (Reason.RAISED_FOR_FORECAST, Reason.AT_PLAN)
    planned = stage.entry.plans.raising
    assert isinstance(planned, Plan)
    assert planned.binding.kind is NeedKind.PREFILL_TOKENS
    assert {need.kind: need.replicas for need in planned.needs} == {
        NeedKind.IN_FLIGHT: 1,
        NeedKind.ARRIVALS: 1,
        NeedKind.PREFILL_TOKENS: 4,
        NeedKind.DECODE_TOKENS: 1,
    }
    stage.pass_time(60 + 600 + 600)
    assert stage.standing() == 2


def test_without_the_figures_the_same_day_moves_nothing_and_no_tokens_are_asked_for_or_forecast() -> None:
    stage, asked = Stage(source(), target=planned_for(Profile(concurrency=40, throughput=4))), []
    answer = stage.source.history
    stage.source.history = lambda targets, signal, **grid: asked.append(signal) or answer(targets, signal, **grid)  # type: ignore[func-returns-value]
    stage.pass_time(720)
    assert stage.workloads.writes == []
    assert not {Signal.TOKENS_IN, Signal.TOKENS_OUT} & {*asked, *stage.entry.plans.outlooks}


def test_prompts_that_no_forecast_saw_are_met_by_the_fast_loop() -> None:
    stage = Stage(source(lambda time: 6_000.0 if time < BEGIN + 95 else 24_000.0), target=planned_for(PROFILE))
    stage.pass_time(90)
    assert stage.standing() == 2
    stage.pass_time(20)
    assert stage.standing() == 4
    assert stage.entry.decision.reason is Reason.RAISED_FOR_BACKLOG
    assert "prefill_tokens" in stage.entry.decision.note


@pytest.mark.parametrize("name", ["tokens_in", "tokens_out"])
def test_nothing_comes_down_while_a_token_rate_that_is_planned_for_is_unknown(name: str) -> None:
    busy = source(lambda _: 24_000.0)
    stage = Stage(busy, target=planned_for(PROFILE), workload=dataclasses.replace(CALM, supply=Supply(ready=4)))
    stage.pass_time(60)
    assert stage.standing() == 4
    stage.source.values[Signal.TOKENS_IN] = lambda _: 100.0
    stage.source.missing = {Signal(name)}
    stage.pass_time(300)
    assert stage.standing() == 4
    assert stage.entry.decision.reason is Reason.HELD_UNKNOWN
    assert f"{name} empty" in stage.entry.decision.note


def test_a_token_rate_that_nothing_is_planned_from_may_be_unknown() -> None:
    stage = Stage(source(), target=planned_for(Profile(concurrency=40, throughput=4)))
    stage.source.missing = {Signal.TOKENS_IN, Signal.TOKENS_OUT}
    stage.pass_time(60)
    assert stage.entry.decision.reason is Reason.AT_PLAN


def test_stalled_engines_make_no_need_of_tokens() -> None:
    stage = Stage(source(lambda _: 24_000.0), target=planned_for(PROFILE))
    stage.source.values[Signal.TOKENS_OUT] = lambda _: 0.0  # prompts go in and nothing comes out
    stage.pass_time(240)
    assert stage.entry.stalled > 0
    context = stage.entry.basis.context
    assert (Signal.IN_FLIGHT, Cause.STALLED) in context.unknown
    for planned in (context.raising, context.lowering, context.reacting):
        assert isinstance(planned, Plan)
        assert [need.kind for need in planned.needs] == [NeedKind.ARRIVALS]
