"""What is served: /metrics, /healthz, /readyz, /api/state and /api/explain."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, exposition
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

UNAVAILABLE, NOT_FOUND = 503, 404


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where the pages get what they show; called for each request, from a thread of the server's.

    Attributes:
        registry: the metrics.
        dead: what is wrong with the loops, empty while they run; see `health.Pulse`.
        missing: what is not there yet, by name, empty once the service can be relied on.
        state: what the live page shows, as plain data.
        explain: a target's last decision explained, by its key; None where there is none.
    """

    registry: CollectorRegistry
    dead: Callable[[], Sequence[str]]
    missing: Callable[[], Sequence[str]]
    state: Callable[[], Mapping[str, object]]
    explain: Callable[[str], Mapping[str, object] | None] = lambda _target: None


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
        return _data(sources.state())

    def explain(request: Request) -> Response:
        key = "{namespace}/{name}".format(**request.path_params)
        found = sources.explain(key)
        if found is None:
            return JSONResponse({"problem": f"no decision has been made for {key}"}, status_code=NOT_FOUND)
        return _data(found)

    ours = (
        ("/metrics", metrics),
        ("/healthz", healthz),
        ("/readyz", readyz),
        ("/api/state", state),
        ("/api/explain/{namespace}/{name}", explain),
    )
    return Starlette(routes=[*routes, *(Route(path, answer) for path, answer in ours)])


def _data(data: Mapping[str, object]) -> Response:
    text = json.dumps(plain(data), allow_nan=False)
    return Response(text, media_type="application/json", headers={"Cache-Control": "no-store"})


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
