"""Queries somebody wrote for their own autoscaler, read from what the fleet shows."""

import dataclasses

import pytest

from models.peers import metrics, queries, triggers
from models.peers.queries import Combined, Gauges, Number, Otherwise, Over, Windowed
from models.policy.context import Supply
from models.policy.protocol import Observation, Pod
from models.signals import Signal
from tests.fakes.observations import at, observe

WAITING = Gauges((Signal.WAITING,))
PODS = (
    Pod("a", running=10.0, waiting=2.0, kv_usage=0.5),
    Pod("b", running=30.0, waiting=4.0, kv_usage=0.9),
    Pod("warming", ready=False),
)


def fleet(pods: tuple[Pod, ...] = PODS) -> Observation:
    ready = sum(pod.ready for pod in pods)
    return dataclasses.replace(
        observe({Signal.WAITING: 6.0}, replicas=len(pods)), supply=Supply(ready, len(pods) - ready), pods=pods
    )


@pytest.mark.parametrize(
    ("over", "waiting", "load", "kv"),
    [(Over.SUM, 6.0, 46.0, 1.4), (Over.MEAN, 3.0, 23.0, 0.7), (Over.MOST, 4.0, 34.0, 0.9), (Over.COUNT, 2, 2, 2)],
)
def test_gauges_of_a_pod_are_added_and_then_taken_over_the_pods_that_have_them(
    over: Over, waiting: float, load: float, kv: float
) -> None:
    signals = [(Signal.WAITING,), (Signal.IN_FLIGHT, Signal.WAITING), (Signal.KV_USAGE,)]
    found = [Gauges(several, over).read(fleet()) for several in signals]
    assert found == pytest.approx([waiting, load, kv])


def test_without_a_ready_pod_a_query_over_pods_has_no_series_though_the_gateway_knows_what_waits() -> None:
    warming = fleet((Pod("warming", ready=False),))
    assert [Gauges((Signal.WAITING,), over).read(warming) for over in Over] == [None] * 4
    assert Otherwise(WAITING, Number(0.0)).read(warming) == 0.0
    assert queries.Trigger(WAITING, 5.0).read(warming) == 0.0  # which is why KEDA does not wake it
    assert queries.Trigger(WAITING, 5.0, ignore_null_values=False).read(warming) is triggers.Health.FAILED


def test_a_longer_window_is_the_mean_of_the_minutes_in_it() -> None:
    rule = Windowed(Signal.ARRIVALS, window=120.0)
    found = [rule.read(at(observe({Signal.ARRIVALS: value}), 30.0 * i)) for i, value in enumerate((2.0, 4.0, 6.0, 8.0))]
    assert found == [2.0, 3.0, 4.0, 6.0]  # those of the last 60 s, each over the minute before it
    assert rule.read(at(observe({Signal.ARRIVALS: 8.0}), 90.0)) == 6.0  # asked twice at the same moment


def test_a_minute_and_less_is_the_observations_own_rate() -> None:
    rule = Windowed(Signal.ARRIVALS, window=30.0)
    assert [rule.read(at(observe({Signal.ARRIVALS: value}), 15.0 * value)) for value in (1.0, 2.0)] == [1.0, 2.0]


def test_a_rate_of_the_engine_needs_a_ready_pod_and_that_of_a_gateway_none() -> None:
    seen = dataclasses.replace(observe({Signal.ARRIVALS: 5.0}), supply=Supply(0, 2), pods=())
    assert Windowed(Signal.ARRIVALS).read(seen) is None
    assert Windowed(Signal.ARRIVALS, of_pods=False).read(seen) == 5.0


@pytest.mark.parametrize(("sign", "wanted"), [("+", 8.0), ("-", 4.0), ("*", 12.0), ("/", 3.0)])
def test_numbers_are_combined(sign: str, wanted: float) -> None:
    assert Combined(WAITING, sign, Number(2.0)).read(fleet()) == wanted


def test_what_has_no_finite_value_is_none() -> None:
    none = Gauges((Signal.WAITING,))
    assert Combined(WAITING, "/", Number(0.0)).read(fleet()) is None
    assert Combined(none, "+", Number(1.0)).read(fleet(())) is None
    assert Combined(Number(1e308), "*", Number(1e308)).read(fleet()) is None


def test_a_value_and_an_average_value_ask_as_those_of_any_metric() -> None:
    tolerance = metrics.Tolerance()
    assert queries.External(WAITING, 2.0).proposal(fleet(), tolerance) == 3
    assert queries.External(WAITING, 2.0, metrics.Kind.VALUE).proposal(fleet(), tolerance) == 6  # x 2 ready pods
    assert queries.External(Gauges((Signal.KV_USAGE,), Over.MEAN), 0.35).proposal(fleet(), tolerance) == 2
    assert queries.External(WAITING, 2.0).proposal(fleet(()), tolerance) is None
