from collections.abc import Callable

from models.signals import Signal
from predictor.ports import Refused, SignalSource, Workloads, Written
from predictor.telemetry.metrics import Metrics
from predictor.telemetry.observed import ObservedSource, ObservedWorkloads
from tests.fakes.world import CALM, FakeSource, FakeWorkloads
from tests.predictor.telemetry import examples

TARGET = examples.target()


def ticking() -> Callable[[], float]:
    """A clock on which a second passes between two looks."""
    times = iter(range(1000))
    return lambda: float(next(times))


def test_the_source_answers_as_before_and_is_timed() -> None:
    metrics, source = Metrics(), FakeSource(waiting=lambda _: 3.0)
    observed: SignalSource = ObservedSource(source, metrics, ticking())
    assert observed.read([TARGET], now=5.0) == source.read([TARGET], now=5.0)
    value = metrics.registry.get_sample_value
    assert value("floorcast_source_duration_seconds_sum", {"call": "read"}) == 1
    unknown = {"call": "read", "signal": "waiting", "cause": "source_down"}
    assert value("floorcast_source_unknown_total", unknown) is None
    source.down = True
    observed.read([TARGET, examples.target("other")], now=6.0)
    assert value("floorcast_source_unknown_total", unknown) == 1  # a call counts once, not once a target
    assert value("floorcast_source_unknown_total", {**unknown, "cause": "not_asked"}) is None


def test_a_history_that_is_loaded_says_how_much_of_it_is_known() -> None:
    metrics, source = Metrics(), FakeSource(waiting=lambda _: 3.0)
    observed = ObservedSource(source, metrics, ticking())
    span = {"since": 0.0, "until": 300.0, "step": 30.0}
    answer = observed.history([TARGET], Signal.WAITING, **span)
    assert answer.keys() == {TARGET.key}
    value = metrics.registry.get_sample_value
    assert value("floorcast_history_span_seconds", {"target": TARGET.key, "signal": "waiting"}) == 300
    observed.history([TARGET], Signal.ARRIVALS, **span)
    assert value("floorcast_source_unknown_total", {"call": "history", "signal": "arrivals", "cause": "empty"}) == 1


def test_the_cluster_answers_as_before_and_its_refusals_are_counted() -> None:
    metrics, workloads = Metrics(), FakeWorkloads()
    observed: Workloads = ObservedWorkloads(workloads, metrics, ticking())
    assert observed.observe([TARGET], now=5.0) == {TARGET.key: CALM}
    assert observed.write(TARGET, 4, seen=CALM, now=5.0) == Written(4)
    observed.announce(TARGET, examples.decision())
    assert (len(workloads.writes), len(workloads.announced)) == (1, 1)
    assert observed.release(TARGET) == Written(2)
    workloads.refuse = Refused("Conflict", "changed")
    assert observed.write(TARGET, 5, seen=CALM, now=6.0) == workloads.refuse
    value = metrics.registry.get_sample_value
    assert value("floorcast_cluster_duration_seconds_count", {"call": "write"}) == 2
    assert value("floorcast_cluster_refused_total", {"call": "write", "reason": "Conflict"}) == 1
    assert value("floorcast_cluster_refused_total", {"call": "observe", "reason": "Conflict"}) is None
