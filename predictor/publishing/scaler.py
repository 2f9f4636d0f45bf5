"""KEDA's external scaler: answers with the number of a target's last decision, or with an error that says why not.

Whoever gets an error keeps what it has: the HPA scales nothing down while a metric of it fails. An old number would
look like a new one.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

import grpc
import grpc.aio
import structlog

from predictor.errors import ListenError
from predictor.publishing import externalscaler_pb2 as messages
from predictor.publishing.recommending import Recommendation, Recommended

SERVICE = "externalscaler.ExternalScaler"
METRIC = "floorcast-recommended-replicas"
TARGET = "target"  # key of the trigger's metadata; the name of the workload, where it is not the ScaledObject's
LOOK_EVERY = 1.0  # seconds between two looks at whether a pushed answer is still true
GRACE = 0.5  # seconds for answers under way when the server stops
STARTING = 10.0  # seconds to bind the address

_log = structlog.stdlib.get_logger("floorcast")


class Scaler:
    """The four calls. `recommendation` gives the answer for a "namespace/name", None where there is no such target."""

    def __init__(self, recommendation: Callable[[str], Recommendation | None]) -> None:
        self._recommendation = recommendation

    def handler(self) -> grpc.GenericRpcHandler:
        """The calls under KEDA's names."""
        ref, answers = (
            messages.ScaledObjectRef,
            (
                ("IsActive", messages.ScaledObjectRef, self._is_active),
                ("GetMetricSpec", messages.ScaledObjectRef, self._spec),
                ("GetMetrics", messages.GetMetricsRequest, self._metrics),
            ),
        )
        calls = {
            name: grpc.unary_unary_rpc_method_handler(
                call, request_deserializer=asked.FromString, response_serializer=_serialized
            )
            for name, asked, call in answers
        }
        calls["StreamIsActive"] = grpc.unary_stream_rpc_method_handler(
            self._stream, request_deserializer=ref.FromString, response_serializer=_serialized
        )
        return grpc.method_handlers_generic_handler(SERVICE, calls)

    async def _is_active(
        self, asked: messages.ScaledObjectRef, context: grpc.aio.ServicerContext
    ) -> messages.IsActiveResponse:
        return messages.IsActiveResponse(result=await self._replicas(asked, context) > 0)

    async def _stream(
        self, asked: messages.ScaledObjectRef, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[messages.IsActiveResponse]:
        """Tells it at once and at every change; ends with the error when it is no longer known."""
        told: bool | None = None
        while True:
            active = await self._replicas(asked, context) > 0
            if active is not told:
                told = active
                yield messages.IsActiveResponse(result=active)
            await asyncio.sleep(LOOK_EVERY)

    async def _spec(
        self, asked: messages.ScaledObjectRef, context: grpc.aio.ServicerContext
    ) -> messages.GetMetricSpecResponse:
        """One to one: a value of 7 at a target of 1 a replica makes 7 replicas."""
        if self._recommendation(_key(asked)) is None:
            await _no_such_target(asked, context)
        spec = messages.MetricSpec(metricName=METRIC, targetSize=1, targetSizeFloat=1.0)
        return messages.GetMetricSpecResponse(metricSpecs=[spec])

    async def _metrics(
        self, asked: messages.GetMetricsRequest, context: grpc.aio.ServicerContext
    ) -> messages.GetMetricsResponse:
        replicas = await self._replicas(asked.scaledObjectRef, context)
        name = asked.metricName or METRIC
        value = messages.MetricValue(metricName=name, metricValue=replicas, metricValueFloat=float(replicas))
        return messages.GetMetricsResponse(metricValues=[value])

    async def _replicas(self, asked: messages.ScaledObjectRef, context: grpc.aio.ServicerContext) -> int:
        found = self._recommendation(_key(asked))
        if found is None:
            await _no_such_target(asked, context)
        if isinstance(found, Recommended):
            return found.replicas
        code = grpc.StatusCode.UNAVAILABLE if found.passing else grpc.StatusCode.FAILED_PRECONDITION
        await context.abort(code, f"{_key(asked)}: {found.why}")
        raise AssertionError("abort raises")


class Server:
    """Serves a `Scaler` from a thread of its own; without `credentials` the answers are not encrypted."""

    def __init__(
        self, scaler: Scaler, *, host: str, port: int, credentials: grpc.ServerCredentials | None = None
    ) -> None:
        self._scaler = scaler
        self._credentials = credentials
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        self._bound = threading.Event()
        self._problem = ""
        self._thread = threading.Thread(target=self._run, name="external-scaler", daemon=True)
        self.port = 0

    def start(self) -> None:
        """Binds the address and begins to serve.

        Raises:
            ListenError: the address cannot be had.
        """
        self._thread.start()
        self._bound.wait(STARTING)
        if not self.port:
            raise ListenError(
                f"cannot listen on {self._address} for KEDA: {self._problem or 'no answer'}; set external_scaler.port"
                " to a free one"
            )
        encrypted = self._credentials is not None
        _log.info("external scaler started", address=self._address, port=self.port, encrypted=encrypted)

    def stop(self) -> None:
        """Ends answers under way within `GRACE` seconds."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(GRACE + 1.0)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._bound.set()

    async def _serve(self) -> None:
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))  # a port that is taken is an error, not shared
        server.add_generic_rpc_handlers((self._scaler.handler(),))
        try:
            self.port = self._bind(server)
        except RuntimeError as error:
            self._problem = str(error)
            return
        await server.start()
        self._loop = asyncio.get_running_loop()
        self._bound.set()
        await self._ending.wait()
        await server.stop(GRACE)

    def _bind(self, server: grpc.aio.Server) -> int:
        """The port; raises RuntimeError where the address cannot be had."""
        if self._credentials is None:
            return int(server.add_insecure_port(self._address))
        return int(server.add_secure_port(self._address, self._credentials))


def _key(asked: messages.ScaledObjectRef) -> str:
    return f"{asked.namespace}/{asked.scalerMetadata.get(TARGET) or asked.name}"


async def _no_such_target(asked: messages.ScaledObjectRef, context: grpc.aio.ServicerContext) -> NoReturn:
    text = (
        f"{_key(asked)} is no target of Floorcast's; add it to targets, or name the workload in the trigger's metadata"
        f" as {TARGET}"
    )
    await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
    raise AssertionError("abort raises")


def _serialized(message: messages.MetricValue) -> bytes:
    written: bytes = message.SerializeToString()
    return written
