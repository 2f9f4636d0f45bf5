"""The worked numbers of the capacity maths."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity import sizing
from models.capacity.profile import Profile, concurrency_target
from models.capacity.sizing import Load, Need, NeedKind, NoPlan, Plan, Tokens

T40 = Profile(concurrency=40)


def test_little_gives_120_in_flight_and_three_replicas() -> None:
    in_flight = sizing.in_flight_by_little(arrivals=10, duration=12)
    assert in_flight == 120
    assert sizing.replicas_for(in_flight, per_replica=40) == 3


def test_sixteen_a_second_needs_five_replicas_at_38_4_each() -> None:
    planned = sizing.plan(T40, Load(arrivals=16, duration=12))
    assert isinstance(planned, Plan)
    assert planned.binding == Need(NeedKind.ARRIVALS, 192, 40)
    assert planned.replicas == 5
    assert planned.binding.demand / planned.replicas == pytest.approx(38.4)  # under the knee of 48


@pytest.mark.parametrize(("headroom", "target"), [(0.2, 40), (0.6, 30)])
def test_headroom_decides_the_step_a_replica_absorbs(headroom: float, target: float) -> None:
    assert concurrency_target(knee=48, headroom=headroom) == pytest.approx(target)  # K / T - 1 is the headroom


def test_sixty_percent_headroom_needs_four_replicas_for_120_in_flight() -> None:
    assert sizing.replicas_for(120, per_replica=concurrency_target(knee=48, headroom=0.6)) == 4


def test_warming_up_for_240_s_leaves_960_queued() -> None:
    # 16 a second arrive, three replicas of 4 a second serve 12: 4 a second are left over for 240 s
    assert (16 - 3 * 4) * 240 == 960
    planned = sizing.plan(Profile(concurrency=1000, throughput=4), Load(arrivals=16 + 960 / 240))
    assert isinstance(planned, Plan)
    assert planned.replicas == 5  # 20 a second drain it in another 240 s


def test_the_plan_is_the_largest_need_and_names_it() -> None:
    planned = sizing.plan(Profile(concurrency=40, throughput=4), Load(in_flight=90, arrivals=16))
    assert isinstance(planned, Plan)
    assert [need.replicas for need in planned.needs] == [3, 4]
    assert planned.binding.kind is NeedKind.ARRIVALS


def test_the_profile_s_own_duration_is_preferred() -> None:
    planned = sizing.plan(Profile(concurrency=40, duration=12), Load(arrivals=10, duration=99))
    assert isinstance(planned, Plan)
    assert planned.replicas == 3


@pytest.mark.parametrize("load", [Load(), Load(arrivals=5)])
def test_nothing_to_go_by_is_no_plan_rather_than_zero(load: Load) -> None:
    assert isinstance(sizing.plan(T40, load), NoPlan)


def test_kv_demand_is_counted_in_tokens() -> None:
    tokens = Tokens(used=150_000, waiting=10, prompt=1000, output=400)
    need = sizing.kv_need(Profile(concurrency=40, kv_tokens=100_000), tokens)
    assert need == Need(NeedKind.KV_TOKENS, 150_000 + 10 * 1200, 80_000)
    assert need.replicas == 3


def test_kv_tokens_are_a_need_of_the_plan_like_any_other() -> None:
    roomy = Profile(concurrency=40, kv_tokens=100_000)
    planned = sizing.plan(roomy, Load(in_flight=10), sizing.kv_need(roomy, Tokens(used=150_000)))
    assert isinstance(planned, Plan)
    assert planned.binding.kind is NeedKind.KV_TOKENS
    assert planned.replicas == 2


def test_without_a_kv_capacity_there_is_no_kv_need() -> None:
    assert sizing.kv_need(T40, Tokens(used=1)) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_a_need_refuses_nonsense(bad: float) -> None:
    with pytest.raises(ValueError, match="demand"):
        Need(NeedKind.IN_FLIGHT, bad, 40)
    with pytest.raises(ValueError, match="per_replica"):
        Need(NeedKind.IN_FLIGHT, 1, bad)


def test_a_plan_without_needs_is_refused() -> None:
    with pytest.raises(ValueError, match="NoPlan"):
        Plan(())


@given(st.floats(1e-6, 1e9), st.floats(1e-3, 1e6))
def test_demand_above_zero_needs_a_replica_that_can_carry_it(demand: float, per_replica: float) -> None:
    replicas = sizing.replicas_for(demand, per_replica=per_replica)
    if demand / per_replica > 1e-9:
        assert replicas >= 1
    assert replicas * per_replica >= demand * (1 - 1e-6) - per_replica * 1e-6
    assert (replicas - 1) * per_replica < demand or replicas == 0


THIRTY_THOUSAND = Profile(concurrency=40, throughput=4, tokens_in=30_000, tokens_out=2_500)


def test_prompts_that_get_longer_ask_for_replicas_while_arrivals_stay() -> None:
    # 8 a second of 1,500 tokens are 12,000, one replica; of 12,000 tokens they are 96,000: 3.2 replicas
    short = sizing.plan(THIRTY_THOUSAND, Load(arrivals=8, tokens_in=8 * 1_500))
    longer = sizing.plan(THIRTY_THOUSAND, Load(arrivals=8, tokens_in=8 * 12_000))
    assert isinstance(short, Plan)
    assert isinstance(longer, Plan)
    assert (short.binding.kind, short.replicas) == (NeedKind.ARRIVALS, 2)
    assert longer.binding == Need(NeedKind.PREFILL_TOKENS, 96_000, 30_000)
    assert longer.replicas == 4


def test_outputs_that_get_longer_ask_for_replicas_by_the_tokens_they_generate() -> None:
    planned = sizing.plan(THIRTY_THOUSAND, Load(arrivals=8, tokens_in=24_000, tokens_out=8 * 1_600))
    assert isinstance(planned, Plan)
    assert planned.binding == Need(NeedKind.DECODE_TOKENS, 12_800, 2_500)
    assert planned.replicas == 6  # 5.12


def test_token_rates_are_no_need_without_a_figure_and_figures_are_none_without_a_rate() -> None:
    assert sizing.token_needs(T40, Load(tokens_in=1e6, tokens_out=1e6)) == ()
    assert sizing.token_needs(THIRTY_THOUSAND, Load(arrivals=16)) == ()


rates = st.none() | st.floats(0, 1e9)


@given(in_flight=rates, arrivals=rates, tokens_in=rates, tokens_out=rates)
def test_a_further_need_never_lowers_a_plan(
    in_flight: float | None, arrivals: float | None, tokens_in: float | None, tokens_out: float | None
) -> None:
    without = sizing.plan(THIRTY_THOUSAND, Load(in_flight, arrivals))
    planned = sizing.plan(THIRTY_THOUSAND, Load(in_flight, arrivals, tokens_in=tokens_in, tokens_out=tokens_out))
    if isinstance(without, Plan):
        assert isinstance(planned, Plan)
        assert planned.replicas >= without.replicas
        assert planned.needs[: len(without.needs)] == without.needs
