"""From settings to adapters: what the composition root puts behind each port."""

import math
import socket
import uuid
from pathlib import Path

from models.forecasting.engine import Forecaster
from predictor.cluster import lease, pods
from predictor.cluster.access import Access
from predictor.cluster.workloads import ClusterWorkloads
from predictor.errors import ConfigurationError
from predictor.history import History
from predictor.journal import DAY, Bounds, Journal
from predictor.keeping import Keeping, Place
from predictor.outlooks import Outlooks, Pace
from predictor.ports import SignalSource
from predictor.publishing.certificates import Files
from predictor.settings import convert, sections
from predictor.settings.root import Settings
from predictor.signals import catalog, shelf
from predictor.signals.prometheus import PrometheusSettings, PrometheusSource
from predictor.signals.scrape import Page, ScrapeSettings, ScrapeSource

OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
IDENTITY = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"  # a process that starts anew is not the one that stopped


def access(given: sections.Kubernetes) -> Access:
    """How to reach the API server."""
    return Access(
        server=given.server,
        ca_file=given.ca_file,
        token_file=given.token_file,
        kubeconfig=given.kubeconfig,
        context=given.context,
        timeout=given.request_timeout,
    )


def certificate(given: sections.ExternalScaler) -> Files | None:
    """What KEDA is answered with; None: no encryption."""
    if given.cert_file is None or given.key_file is None:
        return None
    return Files(given.cert_file, given.key_file, given.client_ca_file)


def terms(settings: Settings) -> lease.Terms:
    """The lease of this installation, for this process.

    Raises:
        ConfigurationError: its namespace is not known.
    """
    given = settings.leader_election
    return lease.Terms(
        namespace=given.namespace or _own_namespace(),
        name=given.name,
        identity=IDENTITY,
        duration=given.lease,
        renew=given.renew,
        retry=given.retry,
    )


def _own_namespace() -> str:
    """That of the pod we run in."""
    try:
        return OWN_NAMESPACE.read_text().strip()
    except OSError as error:
        raise ConfigurationError(
            "leader_election.namespace: is not set, and this is no pod that has a namespace of its own; set it to where"
            " the Lease is to be"
        ) from error


def source(settings: Settings, workloads: ClusterWorkloads) -> SignalSource:
    """Where readings come from.

    Raises:
        CatalogError: the catalogue, or a query of the configuration, cannot be used.
    """
    if settings.source.kind is sections.SourceKind.PROMETHEUS:
        return prometheus(settings)
    return _scraping(settings.source.scrape, _engines(settings), workloads)


def prometheus(settings: Settings) -> PrometheusSource:
    """The Prometheus of the configuration, which also knows the past.

    Raises:
        CatalogError: as in `source`.
    """
    return PrometheusSource(_prometheus(settings.source.prometheus), _engines(settings))


def pace(settings: Settings) -> Pace:
    """How often is looked and how old what is seen may be.

    A rate tells of the middle of its window: arrivals are half a window older than the sample they end with.
    """
    loops = settings.loops
    if settings.source.kind is sections.SourceKind.PROMETHEUS:
        interval = settings.source.prometheus.scrape_interval
        window = float(catalog.Windows.for_interval(interval).rate)
    else:
        interval = loops.fast
        window = math.ceil(ScrapeSettings().window / interval) * interval  # from one look to another
    age = interval + window / 2
    return Pace(slow=loops.slow, fast=loops.fast, signal_age=age, deadline=loops.deadline, rate_window=window)


def history(settings: Settings) -> History:
    """An empty history of the configured size."""
    given = settings.history
    return History(step=given.step, span=given.span, carry=given.carry)


def journal(settings: Settings) -> Journal | None:
    """The journal on disk; None where none is kept."""
    given = settings.journal
    if given.path is None:
        return None
    return Journal(given.path, Bounds(seconds=given.days * DAY, size=int(given.megabytes * 1e6)))


def keeping(settings: Settings, place: Place) -> Keeping | None:
    """What keeps over a restart what was learned; None where there is no folder for it."""
    return None if settings.journal.path is None else Keeping(settings.journal.path, place)


def outlooks(settings: Settings, past: History) -> Outlooks:
    """The forecasting stage."""
    return Outlooks(Forecaster(convert.forecast(settings)), past, pace(settings))


def _engines(settings: Settings) -> catalog.Catalog:
    overrides = {name: {str(signal): query for signal, query in own.items()} for name, own in settings.signals.items()}
    return shelf.load(overrides=overrides)


def _prometheus(given: sections.Prometheus) -> PrometheusSettings:
    shared = {name: getattr(given, name) for name in type(given).model_fields if name != "labels"}
    return PrometheusSettings(labels=catalog.Labels(**given.labels.model_dump()), **shared)


def _scraping(given: sections.Scrape, engines: catalog.Catalog, workloads: ClusterWorkloads) -> ScrapeSource:
    def page(pod: pods.Serving) -> Page:
        return Page(pod.name, f"{given.scheme}://{pod.host}:{given.port}{given.path}")

    return ScrapeSource(
        ScrapeSettings(timeout=given.timeout),
        engines,
        pages=lambda target: [page(pod) for pod in workloads.serving(target)],
    )
