import dataclasses
from collections import deque

import pytest

from models.peers import wva, wva_tokens
from models.peers.wva import Replica, Saturation, SaturationSettings, Variant
from models.peers.wva_tokens import Analysed, Lengths, Tokens, TokenSettings
from models.policy.context import Supply
from models.policy.decision import Reason
from models.policy.protocol import Observation, Pod
from models.signals import Signal
from tests.fakes.observations import at, observe, pods

V1 = SaturationSettings()
V2 = TokenSettings(kv_tokens=100_000)


def variant(*replicas: tuple[float, float], name: str = "a", pending: int = 0, **other: float) -> Variant:
    found = Variant(name, len(replicas) + pending, pending, tuple(Replica(kv, queue) for kv, queue in replicas))
    return dataclasses.replace(found, **other)


def seen(found: tuple[Pod, ...], *, replicas: int, now: float = 0.0) -> Observation:
    ready = sum(pod.ready for pod in found)
    return dataclasses.replace(at(observe({}, replicas=replicas), now), pods=found,
                               supply=Supply(ready, replicas - ready))  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- saturation
def test_defaults() -> None:
    assert (V1.kv, V1.queue, V1.spare_kv, V1.spare_queue) == (0.80, 5, 0.10, 3)
    assert (V2.up, V2.down) == (0.85, 0.70)


@pytest.mark.parametrize(
    ("replicas", "wanted"),
    [
        (((0.75, 0), (0.72, 0)), 3),  # spare KV (.05 + .08) / 2 = .065 < .1
        (((0.3, 3), (0.3, 2)), 3),  # spare queue (2 + 3) / 2 = 2.5 < 3
        (((0.9, 0), (0.9, 9)), 3),  # none is free: no spare at all
        (((0.6, 0), (0.6, 0)), 2),  # spare .2; one fewer: .8 - .6 x 2 < .1
        (((0.3, 0), (0.3, 0)), 1),  # one fewer: .8 - .3 x 2 = .2 >= .1, queue 5
        (((0.35, 0), (0.35, 0)), 1),  # just: .8 - .7 = .1
        (((0.3, 1.2), (0.3, 1.2)), 2),  # queue: 5 - 1.2 x 2 = 2.6 < 3
        (((0.1, 0),), 1),  # a single one has nobody to take over
        (((0.5, 0), (0.95, 0), (0.5, 0)), 3),  # two are free: .8 - .5 x 2 < .1
    ],
)
def test_v1_moves_by_one_on_the_spare_capacity_of_unsaturated_replicas(
    replicas: tuple[tuple[float, float], ...], wanted: int
) -> None:
    assert wva.saturation([variant(*replicas)], V1) == {"a": wanted}


def test_v1_holds_every_variant_while_anything_is_pending_and_looks_at_no_bounds() -> None:
    full, starting = variant((0.9, 9), name="a", maximum=0), variant((0.9, 9), name="b", pending=1)
    assert wva.saturation([full, starting], V1) == {"a": 1, "b": 2}


def test_v1_adds_to_the_cheapest_and_takes_from_the_dearest() -> None:
    cheap, dear = variant((0.75, 0), name="a", cost=1), variant((0.75, 0), (0.75, 0), name="b", cost=3)
    assert wva.saturation([cheap, dear], V1) == {"a": 2, "b": 2}
    idle = [dataclasses.replace(one, replicas=(Replica(0, 0),) * one.current) for one in (cheap, dear)]
    assert wva.saturation(idle, V1) == {"a": 1, "b": 1}


def test_v1_does_not_scale_up_at_all_when_the_cheapest_is_at_its_maximum() -> None:
    cheap, dear = variant((0.9, 9), name="a", cost=1, maximum=1), variant((0.9, 9), name="b", cost=3)
    assert wva.saturation([cheap, dear], V1) == {"a": 1, "b": 1}


def test_v1_leaves_alone_what_does_not_report() -> None:
    silent = dataclasses.replace(variant(name="b"), current=3)
    assert wva.saturation([silent], V1) == {"b": 3}
    assert wva.saturation([variant((0.9, 9)), silent], V1) == {"a": 2, "b": 3}


def test_v1_on_a_target_adds_one_replica_a_warm_up() -> None:
    rule = Saturation()
    full = pods((0.95, 20), (0.95, 20))
    assert rule.decide(seen(full, replicas=2)).replicas == 3
    warming = (*full, Pod("new", ready=False))
    assert [rule.decide(seen(warming, replicas=3, now=15.0 * k)).replicas for k in (1, 2, 3)] == [3, 3, 3]
    assert rule.decide(seen((*full, *pods((0.95, 20))), replicas=3, now=60.0)).replicas == 4


def stuck(*reporting: tuple[float, float], pods_stuck: int) -> Observation:
    """Ready pods by KV usage and queue, and some that wait for a node for ever."""
    lost = tuple(Pod(f"lost-{k}", ready=False, pending=True) for k in range(pods_stuck))
    replicas = len(reporting) + pods_stuck
    found = seen((*pods(*reporting), *lost), replicas=replicas)
    return dataclasses.replace(found, supply=Supply(len(reporting), warming=0, stuck=pods_stuck))


def test_v1_holds_for_ever_for_a_pod_that_is_stuck() -> None:
    """Pending is current less ready, whatever it waits for: one lost pod stops the model in both directions."""
    rule = Saturation()
    full, idle = stuck((0.95, 20), (0.95, 20), pods_stuck=1), stuck((0.0, 0), (0.0, 0), pods_stuck=1)
    day = [rule.decide(at(full, 15.0 * k)).replicas for k in range(0, 5760, 240)]
    assert set(day) == {3}
    assert rule.decide(at(idle, 86_400.0)).replicas == 3


def test_v1_takes_the_largest_of_a_minute_by_replica() -> None:
    rule = Saturation()
    rule.decide(seen(pods((0.75, 0), (0.75, 0)), replicas=2))
    assert rule.decide(seen(pods((0.0, 0), (0.0, 0)), replicas=3, now=45)).note == "2 replicas report, 1 pending"
    assert rule.decide(seen(pods((0.0, 0), (0.0, 0)), replicas=2, now=59)).wanted == 3
    assert rule.decide(seen(pods((0.0, 0), (0.0, 0)), replicas=2, now=61)).wanted == 1


def test_v1_reads_a_missing_kv_gauge_as_0_and_scales_down() -> None:
    blind = (Pod("a", waiting=0.0), Pod("b", waiting=0.0))
    assert Saturation().decide(seen(blind, replicas=2)).replicas == 1


def test_v1_without_any_report_has_no_decision() -> None:
    assert Saturation().decide(seen(pods(None, None), replicas=2)).reason is Reason.HELD_UNKNOWN


def test_v1_forgets_replicas_that_are_gone() -> None:
    rule = Saturation()
    rule.decide(seen(pods((0.9, 0), (0.9, 0), (0.9, 0)), replicas=3))
    rule.decide(seen(pods((0.1, 0)), replicas=1, now=15))
    assert set(rule._reports._peaks) == {"pod-0"}


def test_v1_works_on_sums_where_pods_are_not_known_one_by_one() -> None:
    known = {Signal.KV_USAGE: 0.75, Signal.WAITING: 0.0, Signal.IN_FLIGHT: 40.0}
    assert Saturation().decide(observe(known)).replicas == 5
    assert Saturation().decide(observe(known, ready=0)).reason is Reason.HELD_UNKNOWN


# -------------------------------------------------------------------------------------------------------------- tokens
def analysed(*replicas: tuple[float, float], lengths: Lengths, history: deque[float] | None = None) -> Analysed:
    return wva_tokens.analyse(variant(*replicas), lengths, deque(maxlen=10) if history is None else history, V2)


def test_v2_demand_is_what_is_used_and_what_the_waiting_will_use() -> None:
    """40,000 + 3 x (800 + 200) of the first, 50,000 of the second."""
    assert analysed((0.4, 3), (0.5, 0), lengths=Lengths(800, 200)).demand == 93_000
    prefill = dataclasses.replace(V2, prefill=True)
    only = wva_tokens.analyse(variant((0.4, 3)), Lengths(800, 200), deque(), prefill)
    assert only.demand == 42_400  # 3 prompts alone


def test_v2_takes_what_a_saturated_replica_holds_as_its_capacity_and_remembers_it() -> None:
    history: deque[float] = deque(maxlen=10)
    assert analysed((0.5, 5), lengths=Lengths(800, 200), history=history).each == 50_000
    assert list(history) == [50_000]
    assert analysed((0.2, 0), lengths=Lengths(800, 200), history=history).each == 50_000
    assert analysed((0.95, 6), lengths=Lengths(), history=history).each == 80_000  # never above .8 of the cache


def test_v2_estimates_an_engine_that_was_never_saturated_from_its_token_budget() -> None:
    """N = min(2048 x 200 / 1000, 256) = 256, x (800 + 100) = 230,400, above k1; long prompts give 20.48 x 10,050."""
    assert analysed((0.2, 0), lengths=Lengths(800, 200)).each == 80_000
    small = TokenSettings(kv_tokens=1e6)
    found = wva_tokens.analyse(variant((0.2, 0)), Lengths(9_900, 100), deque(), small)
    assert found.each == pytest.approx(20.48 * 9_950)


def test_v2_without_lengths_falls_back_to_the_cache() -> None:
    assert analysed((0.2, 0), lengths=Lengths()).each == 80_000


def test_v2_takes_the_median_of_the_replicas() -> None:
    assert analysed((0.5, 9), (0.6, 9), (0.9, 9), lengths=Lengths()).each == 60_000


def balanced(one: Variant, *, demand: float, each: float) -> int:
    return wva_tokens.balance([one], {"a": Analysed(demand, each)}, V2)["a"]


def test_v2_adds_all_that_is_missing_at_once_and_counts_what_is_pending() -> None:
    """340,000 / .85 = 400,000 of supply needed at 50,000 a replica: 8, of which 3 there and 1 pending."""
    serving = variant(*[(0.5, 9)] * 3)
    assert balanced(serving, demand=340_000, each=50_000) == 8
    assert balanced(dataclasses.replace(serving, pending=1, current=4), demand=340_000, each=50_000) == 8


def test_v2_takes_away_what_is_spare_at_the_lower_share() -> None:
    """70,000 / .70 = 100,000 needed; 5 x 50,000 there: 3 can go."""
    assert balanced(variant(*[(0.1, 0)] * 5), demand=70_000, each=50_000) == 2
    assert balanced(variant(*[(0.0, 0)] * 5), demand=0, each=50_000) == 1
    assert balanced(variant(*[(0.5, 0)] * 5), demand=200_000, each=50_000) == 5  # between the two


def test_v2_adds_where_a_token_is_cheapest_and_goes_on_where_there_is_room() -> None:
    small, large = variant((0.9, 9), name="s", cost=1, maximum=2), variant((0.9, 9), name="l", cost=3)
    found = {"s": Analysed(80_000, 40_000), "l": Analysed(90_000, 100_000)}
    # 170,000 / .85 = 200,000 less 140,000: 60,000 missing; s gives 40,000, l the rest
    assert wva_tokens.balance([small, large], found, V2) == {"s": 2, "l": 2}


def test_v2_takes_from_the_dearest_first() -> None:
    cheap, dear = variant(*[(0, 0)] * 2, name="c", cost=1), variant(*[(0, 0)] * 2, name="d", cost=3, minimum=0)
    found = {name: Analysed(0, 50_000) for name in "cd"}
    assert wva_tokens.balance([cheap, dear], found, V2) == {"c": 1, "d": 0}


def test_v2_stops_where_nothing_can_be_added() -> None:
    assert balanced(variant((0.9, 9), maximum=1), demand=1e6, each=50_000) == 1
    assert balanced(variant((0.9, 9)), demand=1e6, each=0) == 1


def test_v2_on_a_target_counts_ready_but_unscraped_pods_as_no_supply() -> None:
    """Two of three report at .8: 160,000 / .85 = 188,235 against 2 x 80,000; the third is neither seen nor pending."""
    rule = Tokens(V2)
    assert rule.decide(seen(pods((0.8, 0), (0.8, 0), None), replicas=3)).replicas == 4


def test_v2_counts_a_stuck_pod_as_supply_for_ever() -> None:
    """Two report at .8: 160,000 / .85 = 188,235. Three of 80,000 would do, and the third is stuck: nothing is added."""
    rule = Tokens(V2)
    day = [rule.decide(at(stuck((0.8, 0), (0.8, 0), pods_stuck=1), 15.0 * k)).replicas for k in range(0, 5760, 240)]
    assert set(day) == {3}
    assert Tokens(V2).decide(stuck((0.8, 0), (0.8, 0), pods_stuck=0)).replicas == 3


def test_v2_on_a_target_averages_lengths_over_five_minutes() -> None:
    known = {Signal.ARRIVALS: 10.0, Signal.TOKENS_IN: 8000.0, Signal.TOKENS_OUT: 2000.0,
             Signal.KV_USAGE: 0.4, Signal.WAITING: 12.0, Signal.IN_FLIGHT: 40.0}  # fmt: skip
    found = Tokens(V2).decide(observe(known))
    assert found.note == "172000 tokens at 80000 a replica"  # 4 x 40,000 + 12 x 1,000


def test_v2_without_any_report_has_no_decision() -> None:
    assert Tokens(V2).decide(seen(pods(None), replicas=1)).reason is Reason.HELD_UNKNOWN


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="thresholds"):
        SaturationSettings(kv=0.05)
    with pytest.raises(ValueError, match=r"0 < down < up"):
        TokenSettings(1.0, up=0.5)
    with pytest.raises(ValueError, match="kv_tokens"):
        TokenSettings(0.0)
