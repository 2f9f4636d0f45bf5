"""The plan of this moment, and the plans from forecasts."""

import dataclasses

import hypothesis
import hypothesis.strategies as st
import pytest

from models.capacity.profile import Profile
from models.capacity.sizing import Load, NeedKind, NoPlan, Plan, Tokens
from models.forecasting.forecast import Forecast, NotEnoughHistory, Quality
from models.policy import planning, reactive
from models.policy.context import Supply
from models.policy.planning import Objectives
from models.signals import Signal

FOUR_A_SECOND = Profile(concurrency=48, throughput=4)
FAST = Objectives(FOUR_A_SECOND, drain=60)


def replicas(planned: object) -> int:
    assert isinstance(planned, Plan)
    return planned.replicas


def test_a_backlog_is_spread_over_the_drain_time() -> None:
    # 16/s arrive, 240 wait: drained in 60 s they are 4/s more, 20/s in all at 4/s a replica
    load = Load(arrivals=16)
    assert replicas(reactive.react(FAST, load, waiting=240, supply=Supply(ready=4))) == 5


def test_a_backlog_that_waits_for_warming_supply_does_not_ask_again() -> None:
    warming = Supply(ready=3, warming=2)
    load = Load(arrivals=16)
    assert replicas(reactive.react(FAST, load, waiting=960, supply=warming)) == 4


def test_a_surge_asks_once_and_then_for_what_drains_its_queue() -> None:
    # Design section 6: 3 replicas of 4/s, 16/s arriving, warm-up 240 s: 960 wait when the fourth is Ready.
    lead, load, asked = 240, Load(arrivals=16), []
    for age in range(0, lead, 10):
        supply = Supply(ready=3, warming=1, ready_in=(lead - age,))
        asked.append(replicas(reactive.react(FAST, load, waiting=4 * age, supply=supply, lead=lead)))
    assert set(asked) == {4}
    assert replicas(reactive.react(FAST, load, waiting=960, supply=Supply(ready=4), lead=lead)) == 5


def test_a_queue_that_outgrows_what_is_warming_asks_again() -> None:
    supply = Supply(ready=3, warming=1, ready_in=(200,))
    assert replicas(reactive.react(FAST, Load(arrivals=16), waiting=2000, supply=supply, lead=240)) == 6


def test_what_runs_beyond_what_is_planned_for_is_a_backlog_and_below_it_is_none() -> None:
    supply = Supply(ready=4)
    at_plan = Load(arrivals=15, in_flight=4 * 48)
    assert replicas(reactive.react(FAST, at_plan, waiting=0, supply=supply)) == 4
    crowded = Load(arrivals=15, in_flight=4 * 48 + 120)
    assert replicas(reactive.react(FAST, crowded, waiting=0, supply=supply)) == 5


@hypothesis.given(
    waiting=st.floats(0, 1e5), arrivals=st.floats(0, 1e4), ready=st.integers(0, 50), lead=st.floats(0, 3600),
    coming=st.lists(st.floats(0, 3600), max_size=5),
)  # fmt: skip
def test_warming_supply_never_adds_to_what_is_asked_for(
    waiting: float, arrivals: float, ready: int, lead: float, coming: list[float]
) -> None:
    load = Load(arrivals=arrivals)
    warming = Supply(ready, len(coming), ready_in=tuple(sorted(coming)))
    asked = reactive.react(FAST, load, waiting=waiting, supply=warming, lead=lead)
    without = reactive.react(FAST, load, waiting=waiting, supply=Supply(ready), lead=lead)
    assert replicas(reactive.react(FAST, load, waiting=0, supply=warming, lead=lead)) <= replicas(asked)
    assert replicas(asked) <= replicas(without)


def test_without_arrivals_what_waits_counts_as_in_flight() -> None:
    planned = reactive.react(
        Objectives(Profile(concurrency=40)), Load(in_flight=40), waiting=50, supply=Supply(ready=1)
    )
    assert replicas(planned) == 3


def test_what_runs_stays_a_need_where_only_the_duration_of_undisturbed_requests_is_known() -> None:
    crowded = Load(in_flight=120, arrivals=10, duration=4)  # alone they take 4 s; at this load 12 s
    planned = reactive.react(Objectives(Profile(concurrency=40)), crowded, waiting=0, supply=Supply(ready=3))
    assert replicas(planned) == 3
    told = Objectives(Profile(concurrency=40, duration=12))
    assert replicas(reactive.react(told, crowded, waiting=0, supply=Supply(ready=3))) == 3
    assert replicas(reactive.react(told, Load(in_flight=160, arrivals=10), waiting=0, supply=Supply(ready=4))) == 3


def test_what_runs_while_a_backlog_is_worked_off_asks_for_no_more_than_arrivals_make_of_it() -> None:
    # 9 replicas of 8 places are full. 36 a second end and 20 arrive: 40 of the 72 are theirs.
    full, supply = Load(in_flight=72, arrivals=20, duration=1.8), Supply(ready=9)
    six = Objectives(Profile(concurrency=6))
    assert replicas(reactive.react(six, full, waiting=0, supply=supply)) == 12
    ending = dataclasses.replace(full, growth=-16.0)
    assert replicas(reactive.react(six, ending, waiting=0, supply=supply)) == 7


def test_a_backlog_counts_as_in_flight_while_no_duration_turns_arrivals_into_replicas() -> None:
    unmeasured = Objectives(Profile(concurrency=40), drain=60)
    load = Load(in_flight=40, arrivals=16)
    assert replicas(reactive.react(unmeasured, load, waiting=50, supply=Supply(ready=1))) == 3
    measured = Load(in_flight=40, arrivals=16, duration=2.5)  # (16 + 50 / 60) x 2.5 = 42
    assert replicas(reactive.react(unmeasured, measured, waiting=50, supply=Supply(ready=1))) == 2


def test_an_unknown_backlog_is_left_out_and_nothing_known_is_no_plan() -> None:
    load = Load(arrivals=16)
    assert replicas(reactive.react(FAST, load, waiting=None, supply=Supply(ready=4))) == 4
    nothing = reactive.react(FAST, Load(), waiting=9, supply=Supply(ready=4))
    assert isinstance(nothing, NoPlan)


def test_what_fills_the_caches_is_a_need_too() -> None:
    roomy = Objectives(Profile(concurrency=48, throughput=4, kv_tokens=100_000))
    load, supply = Load(arrivals=4), Supply(ready=1)
    planned = reactive.react(roomy, load, waiting=0, supply=supply, tokens=Tokens(used=300_000))
    assert replicas(planned) == 4  # 300k at 80k a replica


def forecast(p95: float) -> Forecast:
    return Forecast(issued_at=0, horizon=300, level=1, quantiles={0.5: 1, 0.95: p95}, quality=Quality.SEASONED)


def test_the_plan_takes_the_asked_quantile_of_each_forecast() -> None:
    outlooks = {Signal.IN_FLIGHT: forecast(90), Signal.ARRIVALS: forecast(16)}
    planned = planning.plan_for(outlooks, profile=FOUR_A_SECOND, probability=0.95, duration=None)
    assert isinstance(planned, Plan)
    assert [(need.kind, need.demand) for need in planned.needs] == [
        (NeedKind.IN_FLIGHT, 90),
        (NeedKind.ARRIVALS, 16),
    ]


def test_one_forecast_is_enough_for_a_plan_and_none_says_why() -> None:
    missing = NotEnoughHistory(have=1, need=2)
    half = planning.plan_for(
        {Signal.IN_FLIGHT: forecast(90), Signal.ARRIVALS: missing},
        profile=FOUR_A_SECOND,
        probability=0.95,
        duration=None,
    )
    assert replicas(half) == 2
    none = planning.plan_for({Signal.ARRIVALS: missing}, profile=FOUR_A_SECOND, probability=0.95, duration=None)
    assert isinstance(none, NoPlan)
    assert "arrivals" in none.why


@pytest.mark.parametrize(("name", "bad"), [("raise_quantile", 1.0), ("lower_quantile", 0.0), ("drain", 0.0)])
def test_objectives_refuse_nonsense_by_name(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=name):
        Objectives(profile=FOUR_A_SECOND, **{name: bad})


def test_room_that_is_kept_all_the_time_is_planned_for_instead_of_the_forecast() -> None:
    steady = dataclasses.replace(forecast(8), steady={0.5: 4.0, 0.95: 20.0})
    planned = planning.plan_for({Signal.ARRIVALS: steady}, profile=FOUR_A_SECOND, probability=0.95, duration=None)
    assert isinstance(planned, Plan)
    assert planned.binding.demand == 20.0
    assert planned.binding.room


LONG = Profile(concurrency=48, throughput=4, tokens_in=30_000, tokens_out=2_500)


def test_forecast_token_rates_are_needs_at_the_asked_quantile() -> None:
    outlooks = {
        Signal.ARRIVALS: forecast(8),
        Signal.TOKENS_IN: forecast(96_000),
        Signal.TOKENS_OUT: forecast(5_100),
    }
    planned = planning.plan_for(outlooks, profile=LONG, probability=0.95, duration=None)
    assert isinstance(planned, Plan)
    assert [(need.kind, need.replicas) for need in planned.needs] == [
        (NeedKind.ARRIVALS, 2),
        (NeedKind.PREFILL_TOKENS, 4),
        (NeedKind.DECODE_TOKENS, 3),
    ]
    assert planned.binding.kind is NeedKind.PREFILL_TOKENS


@pytest.mark.parametrize("roomy", [Signal.IN_FLIGHT, Signal.ARRIVALS, Signal.TOKENS_IN, Signal.TOKENS_OUT])
def test_each_need_says_whether_it_is_for_room_or_for_a_forecast(roomy: Signal) -> None:
    ahead = {Signal.IN_FLIGHT: 90, Signal.ARRIVALS: 8, Signal.TOKENS_IN: 96_000, Signal.TOKENS_OUT: 5_100}
    outlooks = {signal: forecast(p95) for signal, p95 in ahead.items()}
    outlooks[roomy] = dataclasses.replace(outlooks[roomy], steady={0.5: 0.5, 0.95: 0.75})  # less than forecast
    planned = planning.plan_for(outlooks, profile=LONG, probability=0.95, duration=None)
    assert isinstance(planned, Plan)
    assert [need.room for need in planned.needs] == [signal is roomy for signal in ahead]


def test_room_that_is_the_forecast_is_told_as_the_forecast() -> None:
    """Where load has outgrown the room, the forecast is planned for, but for how roots are squared."""
    outgrown = dataclasses.replace(forecast(8), steady={0.5: 1.0, 0.95: 8.0 + 1e-12, 0.99: 10.0})
    told = [
        planning.plan_for({Signal.ARRIVALS: outgrown}, profile=FOUR_A_SECOND, probability=q, duration=None)
        for q in (0.95, 0.99)
    ]
    assert [plan.binding.room for plan in told if isinstance(plan, Plan)] == [False, True]


def test_room_of_what_makes_no_need_is_no_plan() -> None:
    roomy = {Signal.ARRIVALS: dataclasses.replace(forecast(8), steady={0.95: 20.0})}
    none = planning.plan_for(roomy, profile=Profile(concurrency=40), probability=0.95, duration=None)
    assert none == NoPlan("neither in-flight load nor arrivals with a duration are known")


def test_token_rates_alone_are_no_plan_and_the_reason_is_what_is_missing() -> None:
    missing = NotEnoughHistory(have=1, need=2)
    outlooks = {Signal.ARRIVALS: missing, Signal.TOKENS_IN: forecast(96_000)}
    planned = planning.plan_for(outlooks, profile=LONG, probability=0.95, duration=None)
    assert isinstance(planned, NoPlan)
    assert planned.why.startswith("arrivals: ")
    assert "tokens_in" not in planned.why


def test_token_rates_without_a_forecast_are_left_out() -> None:
    outlooks = {Signal.ARRIVALS: forecast(8), Signal.TOKENS_IN: NotEnoughHistory(have=1, need=2)}
    assert replicas(planning.plan_for(outlooks, profile=LONG, probability=0.95, duration=None)) == 2


def test_only_token_rates_with_a_figure_are_planned_for() -> None:
    assert planning.token_signals(FOUR_A_SECOND) == ()
    assert planning.token_signals(LONG) == (Signal.TOKENS_IN, Signal.TOKENS_OUT)
    assert planning.token_signals(dataclasses.replace(LONG, tokens_in=None)) == (Signal.TOKENS_OUT,)


def test_tokens_of_this_moment_are_a_need_beside_arrivals_and_backlog() -> None:
    load = Load(arrivals=8, tokens_in=96_000)
    planned = reactive.react(Objectives(LONG), load, waiting=0, supply=Supply(ready=2))
    assert isinstance(planned, Plan)
    assert (planned.binding.kind, planned.replicas) == (NeedKind.PREFILL_TOKENS, 4)
    # 960 wait: (8 + 960 / 60) at 4 a replica are 6, more than the tokens ask for
    queued = reactive.react(Objectives(LONG), load, waiting=960, supply=Supply(ready=2))
    assert isinstance(queued, Plan)
    assert (queued.binding.kind, queued.replicas) == (NeedKind.ARRIVALS, 6)
