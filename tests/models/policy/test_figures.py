"""The figures themselves, to the last digit: a replica more or less hides an error of a few requests.

Written against mutants that the other tests let live (docs/decisions/0005-mutants.md).
"""

import pytest

from models.capacity.profile import Profile
from models.capacity.sizing import Load, NeedKind, NoPlan, Plan, Planned, Tokens
from models.forecasting.forecast import NotEnoughHistory
from models.policy import planning, reactive
from models.policy.context import Supply
from models.policy.planning import Objectives
from models.signals import Signal
from tests.models.policy.test_reactive_and_planning import FAST, FOUR_A_SECOND, forecast

BUSY = Load(arrivals=16)
LEAD = 240.0


def demand(planned: Planned) -> float:
    assert isinstance(planned, Plan)
    return planned.binding.demand


def test_a_backlog_adds_its_share_of_the_drain_time_exactly() -> None:
    assert demand(reactive.react(FAST, BUSY, waiting=60, supply=Supply(ready=4))) == 17  # 16 and 60 in 60 s
    quick = Objectives(FOUR_A_SECOND, drain=0.5)
    assert demand(reactive.react(quick, BUSY, waiting=1, supply=Supply(ready=4))) == 18


def test_what_runs_is_not_known_without_replicas_and_is_then_no_backlog() -> None:
    assert demand(reactive.react(FAST, BUSY, waiting=0, supply=Supply(ready=0))) == 16


@pytest.mark.parametrize(
    ("supply", "lead"),
    [(Supply(ready=3, warming=1), LEAD), (Supply(ready=3, warming=1, ready_in=(10.0,)), 0.0)],
    ids=["nobody says when it is ready", "nobody says how long a replica takes"],
)
def test_a_backlog_waits_for_supply_of_which_too_little_is_known(supply: Supply, lead: float) -> None:
    assert demand(reactive.react(FAST, BUSY, waiting=960, supply=supply, lead=lead)) == 16


def test_warming_supply_works_off_what_it_serves_before_another_would() -> None:
    supply = Supply(ready=3, warming=1, ready_in=(200.0,))
    assert demand(reactive.react(FAST, BUSY, waiting=400, supply=supply, lead=LEAD)) == 17  # 400 - 4 x 40, over 240 s
    late = Supply(ready=3, warming=1, ready_in=(300.0,))
    assert demand(reactive.react(FAST, BUSY, waiting=240, supply=late, lead=LEAD)) == 17  # it serves none before


def test_a_measured_duration_says_what_warming_supply_works_off() -> None:
    unmeasured = Objectives(Profile(concurrency=40), drain=60)
    load = Load(arrivals=16, duration=10)  # 4 a second, as above
    supply = Supply(ready=3, warming=1, ready_in=(200.0,))
    assert demand(reactive.react(unmeasured, load, waiting=400, supply=supply, lead=LEAD)) == 170


def test_caches_that_nobody_reports_make_no_need() -> None:
    roomy = Objectives(Profile(concurrency=48, throughput=4, kv_tokens=100_000))
    planned = reactive.react(roomy, BUSY, waiting=0, supply=Supply(ready=4))
    assert isinstance(planned, Plan)
    assert [need.kind for need in planned.needs] == [NeedKind.ARRIVALS]


def test_what_fills_the_caches_is_a_need_where_arrivals_make_none() -> None:
    unmeasured = Objectives(Profile(concurrency=40, kv_tokens=100_000))
    planned = reactive.react(
        unmeasured, Load(in_flight=40), waiting=0, supply=Supply(ready=1), tokens=Tokens(used=300_000)
    )
    assert isinstance(planned, Plan)
    assert [(need.kind, need.demand) for need in planned.needs] == [
        (NeedKind.IN_FLIGHT, 40),
        (NeedKind.KV_TOKENS, 300_000),
    ]


def test_no_plan_names_every_signal_that_is_missing() -> None:
    missing = {Signal.ARRIVALS: NotEnoughHistory(1, 2), Signal.IN_FLIGHT: NotEnoughHistory(0, 2)}
    none = planning.plan_for(missing, profile=FOUR_A_SECOND, probability=0.95, duration=None)
    assert none == NoPlan("arrivals: NotEnoughHistory(have=1, need=2); in_flight: NotEnoughHistory(have=0, need=2)")
    assert planning.plan_for({}, profile=FOUR_A_SECOND, probability=0.95, duration=None) == NoPlan("no forecast")


def test_a_measured_duration_turns_forecast_arrivals_into_replicas() -> None:
    planned = planning.plan_for(
        {Signal.ARRIVALS: forecast(16)}, profile=Profile(concurrency=40), probability=0.95, duration=12
    )
    assert demand(planned) == 192


def test_a_drain_time_may_be_short() -> None:
    assert Objectives(FOUR_A_SECOND, drain=0.5).drain == 0.5
