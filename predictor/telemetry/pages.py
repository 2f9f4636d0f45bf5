"""What is served: /metrics, /healthz, /readyz and /api/state."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, exposition
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

UNAVAILABLE = 503


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where the pages get what they show; called for each request, from a thread of the server's.

    Attributes:
        registry: the metrics.
        dead: what is wrong with the loops, empty while they run; see `health.Pulse`.
        missing: what is not there yet, by name, empty once the service can be relied on.
        state: what the live page shows, as plain data.
    """

    registry: CollectorRegistry
    dead: Callable[[], Sequence[str]]
    missing: Callable[[], Sequence[str]]
    state: Callable[[], Mapping[str, object]]


def application(sources: Sources, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """The web application; `routes` are further pages, found before ours."""

    def metrics(request: Request) -> Response:
        encode, content_type = exposition.choose_encoder(request.headers.get("accept", ""))
        return Response(encode(sources.registry), headers={"Content-Type": content_type})

    def healthz(_request: Request) -> Response:
        return _verdict("alive", "dead", sources.dead())

    def readyz(_request: Request) -> Response:
        return _verdict("ready", "missing", sources.missing())

    def state(_request: Request) -> Response:
        return Response(
            json.dumps(plain(sources.state()), allow_nan=False),
            media_type="application/json",
            headers={"Cache-Control": "no-store"},
        )

    ours = (("/metrics", metrics), ("/healthz", healthz), ("/readyz", readyz), ("/api/state", state))
    return Starlette(routes=[*routes, *(Route(path, answer) for path, answer in ours)])


def plain(value: object) -> object:
    """The same in JSON's types: what is not known is null, since JSON has neither NaN nor infinity."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _verdict(good: str, bad: str, problems: Sequence[str]) -> Response:
    if problems:
        return JSONResponse({"status": bad, "problems": list(problems)}, status_code=UNAVAILABLE)
    return JSONResponse({"status": good})
