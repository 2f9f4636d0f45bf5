import dataclasses

import pytest

from models.peers import behavior, metrics
from models.peers.hpa import Hpa, HpaSettings
from models.policy.context import Supply
from models.policy.decision import Reason
from models.policy.protocol import Pod
from models.signals import Cause, Known, Signal
from tests.fakes import observations
from tests.fakes.observations import observe

WAITING, KV = Signal.WAITING, Signal.KV_USAGE
PLAIN = metrics.Tolerance()


def waiting(*values: float | None) -> tuple[Pod, ...]:
    return tuple(Pod(f"pod-{k}", waiting=value) for k, value in enumerate(values))


def wanted(pods: tuple[Pod, ...], *, replicas: int | None = None, target: float = 10.0) -> int | None:
    count = len(pods) if replicas is None else replicas
    seen = dataclasses.replace(observe({}, replicas=count), pods=pods)
    return metrics.PerPod((WAITING,), target).proposal(seen, PLAIN)


# ------------------------------------------------------------------------------------------------------------- external
def test_an_average_value_is_judged_against_the_pods_there_are_and_divided_by_the_target() -> None:
    rule = metrics.External((WAITING,), 2.0)
    assert rule.proposal(observe({WAITING: 20.0}), PLAIN) == 10
    assert rule.proposal(observe({WAITING: 8.8}), PLAIN) == 4  # 8.8 / (2 x 4) = 1.1: just within
    assert rule.proposal(observe({WAITING: 8.9}), PLAIN) == 5


def test_within_tolerance_the_surge_pods_are_written_back_as_the_new_size() -> None:
    """kubernetes#138505: status.replicas 5 in a rollout of 4; 10 / (2 x 5) = 1."""
    seen = dataclasses.replace(observe({WAITING: 10.0}), supply=Supply(ready=4, warming=1))
    assert metrics.External((WAITING,), 2.0).proposal(seen, PLAIN) == 5


def test_a_value_counts_ready_pods_only_so_a_slow_warm_up_lowers_the_request() -> None:
    """kubernetes#130130: ratio 3 x 4 ready = 12; with 1 ready 3; with none 0, which the minimum lifts."""
    rule = metrics.External((WAITING,), 10.0, metrics.Kind.VALUE)
    assert [rule.proposal(observe({WAITING: 30.0}, ready=ready), PLAIN) for ready in (4, 1, 0)] == [12, 3, 0]
    hpa = Hpa(HpaSettings(several=(rule,), stabilisation=0))
    assert hpa.decide(observe({WAITING: 30.0}, replicas=12, ready=0)).replicas == 1


def test_a_value_at_zero_replicas_asks_for_the_ratio() -> None:
    rule = metrics.External((WAITING,), 10.0, metrics.Kind.VALUE)
    assert rule.proposal(observe({WAITING: 30.0}, replicas=0), PLAIN) == 3


def test_signals_of_one_query_are_summed_and_a_missing_one_leaves_none() -> None:
    rule = metrics.External((Signal.IN_FLIGHT, WAITING), 10.0)
    assert rule.proposal(observe({Signal.IN_FLIGHT: 55.0, WAITING: 14.0}), PLAIN) == 7
    assert rule.proposal(observe({Signal.IN_FLIGHT: 55.0, WAITING: None}), PLAIN) is None


def test_a_query_knows_nothing_of_pods_that_were_not_scraped() -> None:
    seen = dataclasses.replace(observe({WAITING: Cause.PARTIAL}), pods=waiting(9, 6, None, None))
    assert metrics.External((WAITING,), 2.0).proposal(seen, PLAIN) == 8
    assert metrics.External((WAITING,), 2.0).proposal(observe({WAITING: Cause.PARTIAL}), PLAIN) is None


def test_mean_kv_usage_of_the_scraped_pods_counts_for_all_ready_ones() -> None:
    pods = (Pod("a", kv_usage=0.9), Pod("b", kv_usage=0.7), Pod("c"), Pod("d"))
    seen = dataclasses.replace(observe({KV: Cause.PARTIAL}), pods=pods)
    assert metrics.External((KV,), 0.5).proposal(seen, PLAIN) == 7  # .8 x 4 / .5 = 6.4


# ----------------------------------------------------------------------------------------------------------------- pods
def test_a_pods_metric_brings_the_mean_to_the_target() -> None:
    """Mean 25 of a target of 10: 2.5 x 4 = 10; mean 10.5 lies within the tolerance."""
    assert wanted(waiting(20, 30, 20, 30)) == 10
    assert wanted(waiting(10, 11, 10, 11)) == 4
    assert wanted(waiting(2, 2, 2, 2)) == 1


def test_on_the_way_up_missing_pods_count_as_idle() -> None:
    """Have 20 and 40: ratio 3; with two zeros the mean is 15: 1.5 x 4 = 6 instead of 12."""
    assert wanted(waiting(20, 40, None, None)) == 6


def test_on_the_way_down_missing_pods_count_as_on_target() -> None:
    """Have 2 and 4: ratio .3; with two tens the mean is 6.5: .65 x 4 = 2.6 -> 3 instead of 1."""
    assert wanted(waiting(2, 4, None, None)) == 3


def test_missing_pods_that_turn_the_direction_hold() -> None:
    """Have 12: ratio 1.2; with three zeros the mean is 3: a scale-up became a scale-down."""
    assert wanted(waiting(12, None, None, None)) == 4


def test_missing_pods_that_bring_it_into_tolerance_hold() -> None:
    """Have 22: ratio 2.2; with a zero the mean is 11: 1.1."""
    assert wanted(waiting(22, None)) == 2


def test_a_count_against_the_direction_holds() -> None:
    """Two pods seen of five asked for: ratio 2, 2 x 2 pods + 0 = 4 would be a scale-down on a ratio above 1."""
    assert wanted(waiting(20, 20, None), replicas=5) == 5


def test_pending_pods_count_as_idle_on_the_way_up_and_not_at_all_on_the_way_down() -> None:
    pending = (Pod("new", ready=False, pending=True),) * 2
    assert wanted((*waiting(30, 30), *pending)) == 6  # 3 x 2 = 6; with two zeros 1.5 x 4 = 6
    assert wanted((*waiting(12, 12), *pending)) == 4  # with two zeros .6: turned
    assert wanted((*waiting(4, 4), *pending)) == 1  # .4 x 2


def test_deleted_pods_are_no_pods_and_none_with_a_value_is_an_error() -> None:
    assert wanted((*waiting(20, 20), Pod("gone", deleting=True, waiting=500.0)), replicas=2) == 4
    assert wanted(waiting(None, None)) is None


def test_where_only_sums_are_known_the_pods_are_alike() -> None:
    seen = observe({WAITING: 100.0})
    assert metrics.PerPod((WAITING,), 10.0).proposal(seen, PLAIN) == 10


def test_a_target_of_nothing_is_refused() -> None:
    for kind in (metrics.External, metrics.PerPod):
        with pytest.raises(ValueError, match="target is -1"):
            kind((WAITING,), -1.0)


# ------------------------------------------------------------------------------------------------------------- together
@pytest.mark.parametrize(
    ("proposals", "combined"),
    [((3, 7, 5), 7), ((None, None), None), ((3, None), None), ((4, None), 4), ((9, None), 9), ((2, 3), 3)],
)
def test_the_largest_holds_and_a_missing_one_blocks_only_the_way_down(
    proposals: tuple[int | None, ...], combined: int | None
) -> None:
    assert metrics.combine(proposals, current=4) == combined


def test_several_metrics_in_one_hpa() -> None:
    several = (metrics.External((WAITING,), 2.0), metrics.External((KV,), 0.8))
    hpa = Hpa(HpaSettings(several=several))
    up = hpa.decide(observe({WAITING: None, KV: 1.0}))
    assert (up.replicas, up.note) == (5, "the metrics ask for 5")
    down = hpa.decide(observe({WAITING: None, KV: 0.1}))
    assert (down.replicas, down.reason, down.note) == (4, Reason.HELD_UNKNOWN, "1 of 2 metrics missing: no scaling")


def test_the_note_of_a_single_metric_has_its_figures() -> None:
    assert Hpa(HpaSettings()).decide(observe({WAITING: 20.0})).note == "waiting 20 at 2 a replica asks for 10"


def test_each_direction_may_have_a_tolerance_of_its_own() -> None:
    rules = behavior.Behavior(
        up=dataclasses.replace(behavior.Behavior().up, tolerance=0.0),
        down=dataclasses.replace(behavior.Behavior().down, tolerance=0.5, window=0.0),
    )
    hpa = Hpa(HpaSettings(rules=rules))
    assert hpa.decide(observe({WAITING: 8.1})).replicas == 5
    assert hpa.decide(observations.at(observe({WAITING: 4.1}), 60.0)).replicas == 4
    assert hpa.decide(observations.at(observe({WAITING: 3.9}), 120.0)).replicas == 2


def test_a_reading_is_used_however_old_it_is() -> None:
    seen = dataclasses.replace(observe({}), readings={WAITING: Known(20.0, -900.0)})
    assert Hpa(HpaSettings()).decide(seen).replicas == 8
