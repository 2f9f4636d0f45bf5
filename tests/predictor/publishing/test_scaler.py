"""What KEDA is told, asked as KEDA asks: through a gRPC client on loopback."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from models.policy.context import FloorSettings, Memory
from models.policy.decision import Decision, Reason
from models.signals import Cause, Signal
from predictor.board import Basis, Board, Entry
from predictor.errors import ListenError
from predictor.ports import Refused
from predictor.publishing import externalscaler_pb2 as messages
from predictor.publishing import scaler
from predictor.publishing.publisher import Publisher
from tests.fakes.world import CALM
from tests.models.policy.cases import context
from tests.predictor.telemetry import examples

TARGET = examples.target()
SLOW = 30.0


class Keda:
    """KEDA's side of the four calls; with `credentials`, encrypted. Every one of them has connections of its own."""

    def __init__(self, port: int, credentials: grpc.ChannelCredentials | None = None) -> None:
        address, apart = f"127.0.0.1:{port}", (("grpc.use_local_subchannel_pool", 1),)
        self._channel = (
            grpc.secure_channel(address, credentials, apart) if credentials else grpc.insecure_channel(address, apart)
        )
        self._ref = messages.ScaledObjectRef(name=TARGET.name, namespace=TARGET.namespace)

    def close(self) -> None:
        self._channel.close()

    def refer(self, name: str, **metadata: str) -> None:
        self._ref = messages.ScaledObjectRef(name=name, namespace=TARGET.namespace, scalerMetadata=metadata)

    def _call(self, name: str, answer: Any, asked: Any, *, stream: bool = False) -> Any:  # noqa: ANN401
        path = f"/externalscaler.ExternalScaler/{name}"
        make = self._channel.unary_stream if stream else self._channel.unary_unary
        call = make(path, request_serializer=type(asked).SerializeToString, response_deserializer=answer.FromString)
        return call(asked, timeout=10)

    def is_active(self) -> bool:
        return bool(self._call("IsActive", messages.IsActiveResponse, self._ref).result)

    def stream(self) -> Any:  # noqa: ANN401  (a call of grpc)
        return self._call("StreamIsActive", messages.IsActiveResponse, self._ref, stream=True)

    def spec(self) -> tuple[str, int, float]:
        (one,) = self._call("GetMetricSpec", messages.GetMetricSpecResponse, self._ref).metricSpecs
        return one.metricName, one.targetSize, one.targetSizeFloat

    def metric(self, name: str = scaler.METRIC) -> tuple[str, int, float]:
        asked = messages.GetMetricsRequest(scaledObjectRef=self._ref, metricName=name)
        (one,) = self._call("GetMetrics", messages.GetMetricsResponse, asked).metricValues
        return one.metricName, one.metricValue, one.metricValueFloat


@dataclasses.dataclass
class Stage:
    """A board with one target, and who tells of it."""

    board: Board
    publisher: Publisher
    keda: Keda
    told: dict[str, int | None]
    at: float = 1000.0

    @property
    def entry(self) -> Entry:
        return self.board.entries[TARGET.key]

    def decide(self, replicas: int, reason: Reason = Reason.AT_PLAN, note: str = "as planned") -> None:
        self.entry.workload = CALM
        self.entry.decision = Decision(0.0, replicas, replicas, replicas, reason, note)
        self.entry.acted_at = self.at


@pytest.fixture
def stage() -> Iterator[Stage]:
    board, told = Board([TARGET]), dict[str, int | None]()
    made: list[Stage] = []
    publisher = Publisher(lambda: board, slow=lambda: SLOW, told=told.__setitem__, monotonic=lambda: made[0].at)
    publisher.serve(host="127.0.0.1", port=0)
    server = publisher._server
    assert server is not None
    keda = Keda(server.port)
    made.append(Stage(board, publisher, keda, told))
    yield made[0]
    keda.close()
    publisher.stop()


def refused(ask: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as error:
        ask()
    return error.value.code(), error.value.details()


def test_the_number_of_the_last_decision_is_told_one_to_one(stage: Stage) -> None:
    stage.decide(7)
    assert stage.keda.spec() == (scaler.METRIC, 1, 1.0)
    assert stage.keda.metric() == (scaler.METRIC, 7, 7.0)
    assert stage.keda.metric("s0-external")[0] == "s0-external"
    assert stage.keda.is_active()
    stage.publisher.tell()
    assert stage.told == {TARGET.key: 7}


def test_nothing_to_run_is_not_active(stage: Stage) -> None:
    stage.decide(0)
    assert not stage.keda.is_active()
    assert stage.keda.metric()[1] == 0


def test_the_workload_may_be_named_in_the_triggers_metadata(stage: Stage) -> None:
    stage.decide(3)
    stage.keda.refer("some-scaledobject", target=TARGET.name)
    assert stage.keda.metric()[1] == 3


def withheld(stage: Stage) -> tuple[grpc.StatusCode, str]:
    """What is answered where there is no number: the same to every question for it, and no metric."""
    answer = refused(stage.keda.metric)
    assert refused(stage.keda.is_active) == answer
    assert refused(lambda: next(stage.keda.stream())) == answer
    stage.publisher.tell()
    assert stage.told == {TARGET.key: None}
    return answer


def test_before_the_first_decision_there_is_no_number(stage: Stage) -> None:
    code, text = withheld(stage)
    assert (code, text) == (grpc.StatusCode.UNAVAILABLE, f"{TARGET.key}: nothing has been decided yet")
    assert stage.keda.spec()[0] == scaler.METRIC  # KEDA makes its HPA from this: it says no number


def test_an_old_decision_is_an_error_and_no_number(stage: Stage) -> None:
    stage.decide(7)
    stage.at += 2 * SLOW
    assert stage.keda.metric()[1] == 7
    stage.at += 1
    code, text = withheld(stage)
    assert code is grpc.StatusCode.UNAVAILABLE
    assert text == f"{TARGET.key}: the last decision is 61 s old, at most 60 s is told"


@pytest.mark.parametrize("reason", [Reason.HELD_UNKNOWN, Reason.HELD_LOADING, Reason.HELD_NO_FORECAST])
def test_a_number_that_is_only_held_for_want_of_knowledge_is_an_error(stage: Stage, reason: Reason) -> None:
    stage.decide(7, reason, "in_flight source_down")
    assert withheld(stage) == (grpc.StatusCode.UNAVAILABLE, f"{TARGET.key}: {reason}: in_flight source_down")


@pytest.mark.parametrize("unknown", [(), ((Signal.IN_FLIGHT, Cause.SOURCE_DOWN),)])
def test_a_number_that_only_waits_for_the_sizes_of_requests_is_told(
    stage: Stage, unknown: tuple[tuple[Signal, Cause], ...]
) -> None:
    stage.decide(7, Reason.HELD_UNKNOWN, "why")
    held = context(unsized="3 of 30 seen", unknown=unknown)
    stage.entry.basis = Basis(held, Memory(needed_at=0.0), FloorSettings())
    if unknown:
        assert withheld(stage)[0] is grpc.StatusCode.UNAVAILABLE
    else:
        assert stage.keda.metric()[1] == 7


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("Unreachable", grpc.StatusCode.UNAVAILABLE),
        ("Stale", grpc.StatusCode.UNAVAILABLE),
        ("NotFound", grpc.StatusCode.FAILED_PRECONDITION),
        ("ScaledToZero", grpc.StatusCode.FAILED_PRECONDITION),
        ("Forbidden", grpc.StatusCode.FAILED_PRECONDITION),
    ],
)
def test_a_workload_that_cannot_be_observed_has_no_number(stage: Stage, reason: str, code: grpc.StatusCode) -> None:
    stage.decide(7)
    stage.entry.workload = Refused(reason, "why")
    assert withheld(stage) == (code, f"{TARGET.key}: {reason}: why")


def test_a_workload_that_is_no_target_is_named_with_the_remedy(stage: Stage) -> None:
    stage.keda.refer("other")
    for ask in (stage.keda.metric, stage.keda.spec, stage.keda.is_active):
        code, text = refused(ask)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert text.startswith(f"{TARGET.namespace}/other is no target of Floorcast's; add it to targets")


def test_a_stream_tells_at_once_and_at_every_change_and_ends_when_it_is_no_longer_known(stage: Stage) -> None:
    stage.decide(2)
    stream = stage.keda.stream()
    assert next(stream).result
    stage.decide(0)
    assert not next(stream).result
    stage.decide(5)
    assert next(stream).result
    stage.at += 1000
    assert refused(lambda: next(stream))[0] is grpc.StatusCode.UNAVAILABLE


def test_many_streams_take_no_thread_each(stage: Stage) -> None:
    stage.decide(2)
    streams = [stage.keda.stream() for _ in range(100)]
    assert all(next(one).result for one in streams)
    assert stage.keda.metric()[1] == 2
    for one in streams:
        one.cancel()


def test_a_port_that_is_taken_is_an_error_with_its_remedy(stage: Stage) -> None:
    server = stage.publisher._server
    assert server is not None
    other = Publisher(lambda: stage.board, slow=lambda: SLOW, told=stage.told.__setitem__)
    with pytest.raises(ListenError, match=r"cannot listen on 127.0.0.1:\d+ for KEDA: .*; set external_scaler.port"):
        other.serve(host="127.0.0.1", port=server.port)
