"""What the demo serves: the page, its data, and the replicas' metrics pages."""

import dataclasses
import importlib.resources
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from predictor.demo import scenario, summary
from predictor.demo.pages import PATH, ReplicaPages
from predictor.demo.stage import Stage

METRICS = "text/plain; version=0.0.4; charset=utf-8"
FILES: Mapping[str, str] = {
    "index.html": "text/html",
    "style.css": "text/css",
    "charts.js": "text/javascript",
    "app.js": "text/javascript",
}
NOT_FOUND = 404


def application(stage: Stage) -> Starlette:
    """The demo's web application; everything it sends is on this machine, so that it works offline."""
    pages = ReplicaPages(stage, base="")
    scene = described(stage)

    def state(request: Request) -> Response:
        return JSONResponse(stage.state() | {"news": _frames(stage, request)}, headers={"Cache-Control": "no-store"})

    def result(_request: Request) -> Response:
        with stage.lock:
            return JSONResponse(summary.result(stage))

    def metrics(request: Request) -> Response:
        try:
            return Response(pages.text(request.path_params["name"]), media_type=METRICS)
        except KeyError as error:
            return PlainTextResponse(f"{error.args[0]}\n", status_code=NOT_FOUND)

    return Starlette(
        routes=[
            Route("/", lambda _request: _file("index.html")),
            *(Route(f"/{name}", lambda _request, name=name: _file(name)) for name in FILES),
            Route("/api/scenario", lambda _request: JSONResponse(scene)),
            Route("/api/state", state),
            Route("/api/result", result),
            Route(PATH, metrics),
        ]
    )


def described(stage: Stage) -> dict[str, Any]:
    """What does not change while the day passes."""
    profile = scenario.TARGET.objectives.profile
    surge = stage.traffic.surge_at()
    return {
        "seed": stage.options.seed,
        "owner": str(stage.options.owner),
        "rival": str(stage.options.rival),
        "hpa_target": scenario.RIVALS[stage.options.rival][1],
        "speed": stage.options.speed,
        "model": scenario.REPLICA.model,
        "max_num_seqs": scenario.REPLICA.max_num_seqs,
        "concurrency": round(profile.concurrency, 1),
        "objective": scenario.TTFT_OBJECTIVE,
        "raise_quantile": scenario.TARGET.objectives.raise_quantile,
        "warm_up": scenario.TYPICAL_WARM_UP,
        "maximum": scenario.MAXIMUM,
        "minimum": scenario.MINIMUM,
        "days_before": stage.options.days,
        "dollars_per_hour": scenario.REPLICA.gpus * scenario.GPU_PRICE,
        "gpus": scenario.REPLICA.gpus,
        "surge": surge,
    }


def _frames(stage: Stage, request: Request) -> list[dict[str, Any]]:
    """The frames the page does not have yet."""
    asked = request.query_params.get("since", "0")
    since = int(asked) if asked.isdecimal() else 0
    with stage.lock:
        fresh = stage.frames[since:]
    return [dataclasses.asdict(frame) for frame in fresh]


def _file(name: str) -> Response:
    content = importlib.resources.files("predictor.demo").joinpath("web", name).read_bytes()
    return Response(content, media_type=FILES[name], headers={"Cache-Control": "no-cache"})
