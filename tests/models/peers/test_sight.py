import dataclasses

from models.peers import answer, sight
from models.policy.context import Supply
from models.policy.decision import Reason
from models.policy.protocol import Pod
from models.signals import Cause, Signal
from tests.fakes.observations import observe, pods


def test_pods_are_alike_where_only_sums_are_known() -> None:
    known = {Signal.IN_FLIGHT: 30.0, Signal.WAITING: 6.0, Signal.KV_USAGE: 0.4}
    found = sight.pods(observe(known, replicas=4, ready=3))
    assert found[0] == Pod("alike", running=10.0, waiting=2.0, kv_usage=0.4)
    assert [pod.ready for pod in found] == [True, True, True, False]
    assert [pod.ready for pod in sight.pods(observe(known, replicas=2, ready=0))] == [False, False]


def test_pods_seen_one_by_one_are_taken_as_they_are() -> None:
    seen = dataclasses.replace(observe({}), pods=pods((0.5, 1.0)))
    assert sight.pods(seen) is seen.pods
    one = pods((0.5, 1.0))[0]
    signals = (Signal.IN_FLIGHT, Signal.WAITING, Signal.KV_USAGE, Signal.ARRIVALS)
    assert [sight.of_pod(one, signal) for signal in signals] == [10.0, 1.0, 0.5, None]


def test_a_partial_reading_without_any_page_is_none() -> None:
    seen = dataclasses.replace(observe({Signal.WAITING: Cause.PARTIAL}), pods=pods(None))
    assert sight.value(seen, Signal.WAITING) is None


def test_pods_that_exist_are_those_that_serve_warm_or_are_stuck() -> None:
    assert sight.existing(dataclasses.replace(observe({}), supply=Supply(3, 2, 1))) == 6


def test_reasons_tell_what_became_of_a_number() -> None:
    seen = dataclasses.replace(observe({}), minimum=2, maximum=8)
    found = [answer.decision(seen, wanted, "").reason for wanted in (20, 6, 4, 3, 1)]
    assert found == [
        Reason.CAPPED_AT_MAXIMUM,
        Reason.RAISED_FOR_BACKLOG,
        Reason.AT_PLAN,
        Reason.LOWERED_ONE_STEP,
        Reason.LOWERED_ONE_STEP,
    ]
    assert answer.stating(seen, 4, 3, "").reason is Reason.HELD_RECENT_NEED


def test_fixed_point_numbers_do_not_round_up() -> None:
    assert (answer.ceil(1.1 / 0.1), answer.ceil(11.01)) == (11, 12)
