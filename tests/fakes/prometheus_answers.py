"""A Prometheus that answers as it should, and ways to let it answer otherwise to some queries."""

from collections.abc import Callable

from models.signals import Reading, Signal
from predictor.signals import prometheus, shelf
from predictor.targets import Target
from tests.fakes import cluster_objects
from tests.fakes.prometheus_api import Answer, PrometheusApi, Request, result, row

NOW = 1_800_000_000.0

AT = NOW - 15

CATALOG = shelf.load()

TARGET = cluster_objects.target(model="org/llama")

LABELS = {"namespace": "llm", "model_name": "org/llama"}


def healthy(request: Request) -> Answer:
    if request.query == "time()":
        return Answer(f'{{"status":"success","data":{{"resultType":"scalar","result":[{NOW},"{NOW}"]}}}}'.encode())
    if "timestamp(" in request.query:
        return result([row(AT - 5, **LABELS)])
    return result([row(7, **LABELS)])


def settings(api: PrometheusApi, **changes: object) -> prometheus.PrometheusSettings:
    values: dict[str, object] = {"url": api.url, "timeout": 5.0, "budget": 5.0, **changes}
    return prometheus.PrometheusSettings(**values)  # type: ignore[arg-type]


def read(api: PrometheusApi, target: Target = TARGET, **changes: object) -> dict[Signal, Reading]:
    source = prometheus.PrometheusSource(settings(api, **changes), CATALOG)
    try:
        return dict(source.read([target], now=NOW)[target.key])
    finally:
        source.close()


def only(part: str, answer: Answer) -> Callable[[Request], Answer]:
    """Gives `answer` to queries that contain the text and are not about the age of samples."""
    return lambda request: answer if part in request.query and "timestamp(" not in request.query else healthy(request)


def always(answer: Answer) -> Callable[[Request], Answer]:
    return lambda _: answer


def values(signal_value: object) -> Answer:
    return result([row(signal_value, **LABELS)])
