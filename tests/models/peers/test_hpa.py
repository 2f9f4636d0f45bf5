import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.peers import behavior, hpa
from models.policy.context import Supply
from models.policy.decision import Reason
from models.policy.protocol import Autoscaler, Observation
from models.signals import Cause, Known, Signal, Unknown

PODS, PERCENT = behavior.PolicyKind.PODS, behavior.PolicyKind.PERCENT


def seen(
    value: float | None,
    *,
    now: float = 0.0,
    replicas: int = 4,
    bounds: tuple[int, int] = (1, 100),
    signal: Signal = Signal.WAITING,
) -> Observation:
    reading = Unknown(Cause.SOURCE_DOWN) if value is None else Known(value, now)
    return Observation(now, replicas, bounds[0], bounds[1], Supply(ready=replicas), {signal: reading})


def walk(
    rule: Autoscaler, values: list[float | None], *, replicas: int, bounds: tuple[int, int] = (1, 100), start: float = 0
) -> list[int]:
    """Syncs every 15 s, each answer becoming the next sync's replica count."""
    course = []
    for number, value in enumerate(values):
        replicas = rule.decide(seen(value, now=start + 15 * number, replicas=replicas, bounds=bounds)).replicas
        course.append(replicas)
    return course


@pytest.mark.parametrize(("waiting", "wanted"), [(20, 10), (9, 5), (8.6, 4), (60, 30)])
def test_on_a_queue_target_of_two_the_metric_asks_for_the_sum_over_the_target(waiting: float, wanted: int) -> None:
    """20 / 2 = 10; 9 / 2 = 4.5 -> 5; 8.6 / (2 x 4) = 1.075 lies within the tolerance of 10 %; 60 / 2 = 30."""
    decision = hpa.Hpa(hpa.HpaSettings()).decide(seen(waiting))
    assert decision.wanted == wanted


def test_a_bounded_ratio_climbs_by_a_quarter_a_sync() -> None:
    """KV usage at its bound of 1 and a target of .8: 4 / .8 = 5, 5 / .8 = 6.25, 7 / .8 = 8.75."""
    rule = hpa.Hpa(hpa.HpaSettings(signal=Signal.KV_USAGE, target=0.8))
    replicas, course = 4, []
    for sync in range(3):
        replicas = rule.decide(seen(1.0, now=15 * sync, replicas=replicas, signal=Signal.KV_USAGE)).replicas
        course.append(replicas)
    assert course == [5, 7, 9]


def test_growth_is_capped_at_twice_or_four_a_sync() -> None:
    assert walk(hpa.Hpa(hpa.HpaSettings()), [60, 60, 60], replicas=4) == [8, 16, 30]
    assert walk(hpa.Hpa(hpa.HpaSettings()), [60], replicas=1) == [4]


def test_default_behavior_grows_by_the_larger_of_twice_and_four_pods() -> None:
    rule = hpa.Hpa(hpa.HpaSettings(rules=behavior.Behavior()))
    assert walk(rule, [60, 60, 60, 60], replicas=1) == [5, 10, 20, 30]


@pytest.mark.parametrize("rules", [None, behavior.Behavior()])
def test_lowers_only_after_five_minutes_without_a_higher_recommendation(rules: behavior.Behavior | None) -> None:
    course = walk(hpa.Hpa(hpa.HpaSettings(rules=rules)), [20, *[0.0] * 21], replicas=10)
    assert course[:20] == [10] * 20  # 20 syncs of 15 s are the window
    assert course[20] == 1


@pytest.mark.parametrize("rules", [None, behavior.Behavior()])
def test_when_the_floor_falls_the_drop_is_immediate_and_complete(rules: behavior.Behavior | None) -> None:
    """The recommendations stored while the floor held are the metric's own, so nothing stabilises the drop."""
    rule = hpa.Hpa(hpa.HpaSettings(rules=rules))
    held = walk(rule, [4.0] * 40, replicas=10, bounds=(10, 100))
    assert held == [10] * 40
    assert walk(rule, [4.0], replicas=10, bounds=(2, 100), start=600) == [2]


def test_a_floor_raise_acts_at_the_next_sync_without_a_look_at_the_metric() -> None:
    decision = hpa.Hpa(hpa.HpaSettings()).decide(seen(None, replicas=2, bounds=(10, 100)))
    assert (decision.replicas, decision.reason, decision.wanted) == (10, Reason.RAISED_TO_BASE, None)


def test_a_floor_raise_eats_the_budget_of_the_scale_up_policy() -> None:
    slow = behavior.Behavior(up=behavior.Direction(0, (behavior.Policy(PODS, 4, 60),)))
    rule = hpa.Hpa(hpa.HpaSettings(rules=slow))
    assert rule.decide(seen(60, replicas=2, bounds=(10, 100))).replicas == 10
    assert rule.decide(seen(60, now=15, replicas=10, bounds=(10, 100))).replicas == 10
    assert hpa.Hpa(hpa.HpaSettings(rules=slow)).decide(seen(60, now=15, replicas=10)).replicas == 14


def test_a_floor_does_not_wake_a_workload_at_zero() -> None:
    assert hpa.Hpa(hpa.HpaSettings()).decide(seen(60, replicas=0, bounds=(3, 100))).replicas == 0


def test_above_the_maximum_it_goes_straight_to_the_maximum() -> None:
    decision = hpa.Hpa(hpa.HpaSettings()).decide(seen(60, replicas=12, bounds=(1, 8)))
    assert (decision.replicas, decision.reason) == (8, Reason.CAPPED_AT_MAXIMUM)


def test_an_unknown_metric_means_no_scaling() -> None:
    decision = hpa.Hpa(hpa.HpaSettings()).decide(seen(None))
    assert (decision.replicas, decision.reason) == (4, Reason.HELD_UNKNOWN)


@pytest.mark.parametrize("rules", [None, behavior.Behavior()])
def test_a_floor_lowered_while_metrics_are_broken_drops_nothing_until_they_are_back(
    rules: behavior.Behavior | None,
) -> None:
    """Ten syncs at a floor of 10, which then falls to 2 with the metric gone: all 10 stay for as long as it is gone.

    Once it is back it asks for 4 / 2 = 2, and never asked for more: the whole drop comes at once.
    """
    rule = hpa.Hpa(hpa.HpaSettings(rules=rules))
    assert walk(rule, [4.0] * 10, replicas=10, bounds=(10, 100)) == [10] * 10
    assert walk(rule, [None] * 40, replicas=10, bounds=(2, 100), start=150) == [10] * 40
    assert walk(rule, [4.0], replicas=10, bounds=(2, 100), start=750) == [2]


def test_a_floor_raised_while_metrics_are_broken_acts_and_is_held_there() -> None:
    """Bounds come before metrics: up to 6 without one, and no further down than that once it is lowered again."""
    rule = hpa.Hpa(hpa.HpaSettings())
    assert walk(rule, [None] * 3, replicas=2, bounds=(6, 100)) == [6, 6, 6]
    lowered = rule.decide(seen(None, now=45, replicas=6, bounds=(1, 100)))
    assert (lowered.replicas, lowered.wanted, lowered.reason) == (6, None, Reason.HELD_UNKNOWN)


def test_a_scale_down_policy_limits_each_period() -> None:
    slow = behavior.Behavior(down=behavior.Direction(0, (behavior.Policy(PODS, 2, 60),)))
    assert walk(hpa.Hpa(hpa.HpaSettings(rules=slow)), [0.0] * 9, replicas=10) == [8, 8, 8, 8, 6, 6, 6, 6, 4]


def test_select_chooses_between_the_policies() -> None:
    policies = (behavior.Policy(PODS, 1), behavior.Policy(PERCENT, 50))
    limits = [
        (behavior.highest(chosen, [], current=10, now=0), behavior.lowest(chosen, [], current=10, now=0))
        for chosen in (behavior.Direction(0, policies, select) for select in behavior.Select)
    ]
    assert limits == [(15, 5), (11, 9), (10, 10)]


def test_an_up_window_waits_for_the_lowest_recommendation_in_it() -> None:
    calm = behavior.Behavior(up=behavior.Direction(60, (behavior.Policy(PERCENT, 900),)))
    assert walk(hpa.Hpa(hpa.HpaSettings(rules=calm)), [8, 40, 40, 40, 40, 40], replicas=4) == [4, 4, 4, 4, 20, 20]


def test_reasons_tell_holding_from_being_where_the_metric_wants_it() -> None:
    rule = hpa.Hpa(hpa.HpaSettings())
    reasons = [rule.decide(seen(value, now=n, replicas=10)).reason for n, value in enumerate((20, 4, 30))]
    assert reasons == [Reason.AT_PLAN, Reason.HELD_RECENT_NEED, Reason.RAISED_FOR_BACKLOG]


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1000)), min_size=1, max_size=40),
    st.integers(1, 20),
    st.sampled_from([None, behavior.Behavior()]),
)
def test_the_bounds_hold_from_the_first_sync_on(
    values: list[float | None], replicas: int, rules: behavior.Behavior | None
) -> None:
    course = walk(hpa.Hpa(hpa.HpaSettings(rules=rules)), values, replicas=replicas, bounds=(3, 12))
    assert all(3 <= number <= 12 for number in course)


def test_a_target_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="target is 0"):
        hpa.HpaSettings(target=0)
