"""From settings to what the adapters are given. Apart from `convert`, since the adapters take long to import."""

from collections.abc import Mapping

from predictor.cluster.access import Access
from predictor.outlooks import Pace
from predictor.settings.root import Settings
from predictor.settings.sections import SourceKind
from predictor.signals import catalog
from predictor.signals.prometheus import PrometheusSettings

REPEATS = 1.5  # time-outs that all queries of a tick may take together
CONNECT = 3.0  # seconds; an API server that takes longer to accept a connection is not there


def prometheus(settings: Settings) -> PrometheusSettings:
    """How Prometheus is reached and read."""
    given = settings.source.prometheus
    names = set(type(given).model_fields) - {"labels"}
    labels = catalog.Labels(**dict(given.labels))
    return PrometheusSettings(
        **{name: getattr(given, name) for name in names}, labels=labels, budget=REPEATS * given.timeout
    )


def queries(settings: Settings) -> Mapping[str, Mapping[str, str]]:
    """Queries in place of the catalogue's: engine -> signal -> query."""
    return {engine: {str(signal): query for signal, query in own.items()} for engine, own in settings.signals.items()}


def access(settings: Settings) -> Access:
    """How the API server is reached."""
    given = settings.kubernetes
    return Access(
        server=given.server,
        ca_file=given.ca_file,
        token_file=given.token_file,
        kubeconfig=given.kubeconfig,
        context=given.context,
        connect_timeout=min(CONNECT, given.request_timeout),
        read_timeout=given.request_timeout,
    )


def pace(settings: Settings) -> Pace:
    """How often is looked, and how old what is seen may be."""
    scraped = settings.source.kind is SourceKind.SCRAPE
    age = 0.0 if scraped else settings.source.prometheus.scrape_interval
    return Pace(slow=settings.loops.slow, fast=settings.loops.fast, signal_age=age)
