import dataclasses

import numpy as np
import pytest

from models.peers import metrics, triggers
from models.peers.keda import Fallback, FallbackBehavior, Keda, KedaSettings
from models.peers.triggers import Cron, Offset, Prometheus, Timetable
from models.policy.context import Supply
from models.policy.protocol import Observation
from models.series import Series
from models.signals import Cause, Signal
from tests.fakes import observations
from tests.fakes.observations import Value, at, observe, walk

ARRIVALS = Signal.ARRIVALS
QUERY = Prometheus((ARRIVALS,), 5.0)


def seen(value: Value, *, replicas: int = 4, minimum: int = 0, now: float = 0.0) -> Observation:
    return at(observe({ARRIVALS: value}, replicas=replicas), now, minimum=minimum)


def course(rule: Keda, values: list[Value], *, replicas: int, minimum: int = 0, start: float = 0.0) -> list[int]:
    return walk(rule, [seen(value, replicas=replicas, minimum=minimum) for value in values], start=start)


def test_defaults_are_the_documented_ones() -> None:
    settings = KedaSettings((QUERY,))
    assert (settings.polling, settings.cooldown, settings.fallback, settings.idle) == (30, 300, None, None)
    assert (QUERY.activation, QUERY.kind, QUERY.ignore_null_values) == (0, metrics.Kind.AVERAGE, True)


def test_between_1_and_n_it_is_an_hpa_on_the_sum_over_the_threshold() -> None:
    assert course(Keda(KedaSettings((QUERY,))), [40.0, 40.0], replicas=4) == [8, 8]


def test_a_minimum_of_0_is_1_for_the_hpa() -> None:
    """The value is 0, but the cooldown has not passed: the HPA keeps one."""
    rule = Keda(KedaSettings((QUERY,), stabilisation=0))
    assert course(rule, [1.0, 0.0, 0.0], replicas=4) == [1, 1, 1]


def test_the_poll_alone_wakes_a_workload_and_only_to_one_or_the_minimum() -> None:
    rule = Keda(KedaSettings((QUERY,)))
    assert course(rule, [0.0, 40.0, 40.0, 40.0], replicas=0) == [0, 0, 1, 4]  # polls at 0 and 30 s
    assert course(Keda(KedaSettings((QUERY,))), [40.0], replicas=0, minimum=3) == [3]


def test_a_trigger_is_active_only_above_its_activation_value() -> None:
    careful = Prometheus((ARRIVALS,), 5.0, activation=10.0)
    assert course(Keda(KedaSettings((careful,))), [10.0], replicas=0) == [0]
    assert course(Keda(KedaSettings((careful,))), [10.1], replicas=0) == [1]


def test_the_cooldown_counts_from_the_last_active_poll_and_for_the_way_to_0_alone() -> None:
    """Active at 0 s; 330 s is the first poll with 0 + 300 < now."""
    rule = Keda(KedaSettings((QUERY,), stabilisation=0))
    found = course(rule, [5.0, *[0.0] * 22], replicas=1)
    assert found == [1] * 22 + [0]


def test_what_was_never_active_goes_to_0_at_once() -> None:
    assert course(Keda(KedaSettings((QUERY,))), [0.0], replicas=4) == [0]


def test_with_a_minimum_of_one_it_never_goes_to_0() -> None:
    assert min(course(Keda(KedaSettings((QUERY,))), [0.0] * 60, replicas=4, minimum=1)) == 1


def test_an_idle_count_below_the_minimum_is_kept_while_inactive_and_left_for_the_minimum() -> None:
    rule = Keda(KedaSettings((QUERY,), idle=1))
    assert course(rule, [0.0, 0.0, 0.0, 0.0], replicas=4, minimum=3) == [1, 1, 1, 1]
    assert course(rule, [0.0, 20.0, 20.0, 20.0], replicas=1, minimum=3, start=60) == [1, 1, 3, 4]
    zero = Keda(KedaSettings((QUERY,), idle=0))
    assert course(zero, [5.0, *[0.0] * 22], replicas=3, minimum=3) == [3] * 22 + [0]


def test_inactive_below_the_minimum_it_is_lifted_there() -> None:
    assert course(Keda(KedaSettings((QUERY,))), [0.0], replicas=1, minimum=3) == [3]


def test_a_failing_trigger_leaves_a_workload_at_0_whatever_the_minimum() -> None:
    assert course(Keda(KedaSettings((QUERY,))), [None] * 10, replicas=0, minimum=3) == [0] * 10
    rescued = Keda(KedaSettings((QUERY,), fallback=Fallback(6)))  # keda#7239: a fallback does not lift 0 either
    assert course(rescued, [None] * 10, replicas=0, minimum=3) == [0] * 10


def test_a_failing_trigger_scales_nothing_and_keeps_the_way_up_open_for_the_others() -> None:
    two = KedaSettings((QUERY, Prometheus((Signal.WAITING,), 2.0)), stabilisation=0)
    high = observe({ARRIVALS: None, Signal.WAITING: 16.0})
    low = observe({ARRIVALS: None, Signal.WAITING: 1.0})
    assert walk(Keda(two), [high, low]) == [8, 8]


def test_an_empty_answer_is_0_by_default_and_an_error_on_demand() -> None:
    strict = Prometheus((ARRIVALS,), 5.0, ignore_null_values=False)
    for cause in (Cause.EMPTY, Cause.NOT_FINITE, Cause.STALE):
        assert QUERY.read(seen(cause)) == 0.0
        assert strict.read(seen(cause)) is triggers.Health.FAILED
    assert QUERY.read(seen(Cause.SOURCE_DOWN)) is triggers.Health.FAILED
    assert QUERY.read(observe({})) is triggers.Health.FAILED


def test_the_fallback_replaces_a_metric_only_after_more_failures_than_the_threshold() -> None:
    """Read at the poll and at the sync of 0 s, at 15 s, and at the poll of 30 s, whose sync makes five: 4 x 5 / 5."""
    rule = Keda(KedaSettings((QUERY,), fallback=Fallback(9, failure_threshold=3)))
    assert course(rule, [None] * 4, replicas=4, minimum=1) == [4, 4, 8, 9]
    off = Keda(KedaSettings((QUERY,)))
    assert course(off, [None] * 4, replicas=4, minimum=1) == [4] * 4


def test_one_answer_starts_the_count_of_failures_anew() -> None:
    rule = Keda(KedaSettings((QUERY,), polling=1000, fallback=Fallback(9, failure_threshold=2)))
    values = [20.0, None, None, 20.0, None, None, None]
    assert course(rule, values, replicas=4, minimum=1) == [4, 4, 4, 4, 4, 4, 8]


@pytest.mark.parametrize(
    ("kind", "current", "wanted"),
    [
        (FallbackBehavior.STATIC, 9, 6),
        (FallbackBehavior.CURRENT, 9, 9),
        (FallbackBehavior.IF_HIGHER, 9, 9),
        (FallbackBehavior.IF_HIGHER, 3, 6),
        (FallbackBehavior.IF_LOWER, 9, 6),
        (FallbackBehavior.IF_LOWER, 3, 3),
    ],
)
def test_behaviors_of_the_fallback(kind: FallbackBehavior, current: int, wanted: int) -> None:
    assert Fallback(6, behavior=kind).wanted(current) == wanted


def test_a_fallback_on_a_value_is_divided_by_the_ready_pods_and_fails_without_any() -> None:
    value = Prometheus((ARRIVALS,), 5.0, kind=metrics.Kind.VALUE)
    settings = KedaSettings((value,), fallback=Fallback(6, failure_threshold=0), stabilisation=0)
    assert Keda(settings).decide(seen(None, minimum=1)).replicas == 6  # 5 x 6 / 4 ready / 5 = 1.5, x 4 = 6
    none_ready = dataclasses.replace(seen(None, minimum=1), supply=Supply(0, 4))
    assert Keda(settings).decide(none_ready).replicas == 4


def test_a_cron_trigger_asks_for_its_replicas_while_its_window_is_open() -> None:
    office = Cron(start=8 * 3600, end=18 * 3600, replicas=7)
    night = Cron(start=22 * 3600, end=6 * 3600, replicas=2)
    hours = (3, 8, 12, 17.99, 18, 23)
    assert [office.read(seen(0.0, now=hour * 3600)) for hour in hours] == [0, 7, 7, 7, 0, 0]
    assert [night.read(seen(0.0, now=hour * 3600)) for hour in hours] == [2, 0, 0, 0, 0, 2]


def test_at_the_end_of_a_cron_window_the_hpas_window_holds_for_five_minutes() -> None:
    rule = Keda(KedaSettings((Cron(0, 60, 7),)))
    found = course(rule, [0.0] * 26, replicas=1, minimum=1)
    assert found[:2] == [4, 7]  # the HPA's own limit on growth
    assert found[3 + 20 - 1] == 7
    assert found[3 + 20] == 1  # the last recommendation of 7 was at 45 s


def test_a_cron_trigger_and_a_query_share_the_hpa_by_the_larger_one() -> None:
    rule = Keda(KedaSettings((Cron(0, 86400, 7), QUERY)))
    assert course(rule, [60.0, 60.0, 60.0], replicas=7, minimum=1) == [12, 12, 12]


def test_a_timetable_is_the_cron_triggers_of_its_windows() -> None:
    table = Timetable((2, 5, 3), step=3600.0)
    crons = [Cron(k * 3600, (k + 1) * 3600, n, period=3 * 3600) for k, n in enumerate(table.replicas)]
    for now in range(0, 30000, 700):
        one = seen(0.0, now=float(now))
        assert table.read(one) == max(float(str(cron.read(one))) for cron in crons)


def test_a_timetable_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 windows"):
        Timetable(())


def test_the_offset_query_reads_what_was_a_week_less_half_an_hour_ago() -> None:
    trigger = Offset(QUERY, back=3600.0, ahead=1800.0)
    found = [trigger.read(seen(float(k), now=60.0 * k)) for k in range(60)]
    assert found[:30] == [0.0] * 30  # no sample: empty, and 0 by default
    assert found[30:] == [float(k) for k in range(30)]


def test_the_offset_query_reads_the_history_from_before_it_was_there() -> None:
    week = Series(start=-triggers.WEEK, step=60.0, values=np.arange(7 * 1440, dtype=float))
    trigger = Offset(QUERY, history=week)
    assert [trigger.read(seen(0.0, now=now)) for now in (0.0, 3600.0)] == [30.0, 90.0]


def test_a_steps_of_the_history_longer_than_five_minutes_leave_gaps_as_an_instant_query_would() -> None:
    coarse = Series(start=-3600.0, step=600.0, values=np.full(6, 9.0))
    trigger = Offset(QUERY, back=3600.0, ahead=0.0, history=coarse)
    assert [trigger.read(seen(0.0, now=60.0 * k)) for k in range(10)] == [9.0] * 5 + [0.0] * 5


def test_seasonal_naive_takes_the_larger_of_now_and_then() -> None:
    then = Series(start=-triggers.WEEK, step=60.0, values=np.where(np.arange(7 * 1440) > 60, 50.0, 5.0))
    rule = Keda(KedaSettings((QUERY, Offset(QUERY, history=then))))
    found = [rule.decide(seen(20.0, replicas=4, minimum=1, now=60.0 * k)).wanted for k in range(40)]
    assert found[:31] == [4] * 31  # 5 then, 20 now
    assert found[31:] == [10] * 9  # half an hour ahead of the rise


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="triggers is empty"):
        KedaSettings(())
    with pytest.raises(ValueError, match="polling is 0"):
        KedaSettings((QUERY,), polling=0)
    with pytest.raises(ValueError, match="0 <= ahead < back"):
        Offset(QUERY, back=60.0, ahead=60.0)
    assert observations.reading(Cause.EMPTY) is not None
