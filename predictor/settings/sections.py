"""The sections about the machinery: where signals come from, the cluster, the loops, the server, logs."""

import enum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import pydantic
from pydantic_core import PydanticCustomError

from predictor.ports import Owner
from predictor.settings.durations import Duration
from predictor.settings.section import Number, Section, key
from predictor.targets import Kind


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PydanticCustomError("url", "is no http or https address; write one like http://prometheus:9090")
    if parts.username or parts.password:
        raise PydanticCustomError("url_secret", "carries credentials; put them in files, see source.prometheus")
    if parts.query or parts.fragment:
        raise PydanticCustomError("url", "has a query; write the address up to the path, like http://prometheus:9090")
    return text.rstrip("/")


def _query_api(text: str) -> str:
    if text.endswith("/api/v1"):
        raise PydanticCustomError("url", "ends in /api/v1, which is added to it; leave that out")
    return text


Url = Annotated[str, pydantic.AfterValidator(_url)]
Port = Annotated[int, Number, pydantic.Field(le=65535)]


class SourceKind(enum.StrEnum):
    """Where readings come from."""

    PROMETHEUS = "prometheus"
    SCRAPE = "scrape"


class LabelNames(Section):
    """Label names of the engines' series in Prometheus; they depend on how it scrapes."""

    namespace: str = key(
        "namespace",
        "Label with the pod's namespace. Pod and Service monitors call it so; plain annotation scraping often says"
        " kubernetes_namespace.",
        min_length=1,
    )
    pod: str = key(
        "pod",
        "Label with the pod's name. The queries take one value a pod, so that a pod that is scraped twice counts once.",
        min_length=1,
    )
    model: str = key(
        "model_name",
        "What stands for the label model_name of vLLM, SGLang and others, where a relabelling renamed it.",
        min_length=1,
    )


class Prometheus(Section):
    """A Prometheus, or anything that answers its query API."""

    url: Annotated[Url, pydantic.AfterValidator(_query_api)] = key(
        "http://prometheus-operated.monitoring:9090",
        "Address of the query API, up to and without /api/v1. The default is the service that the Prometheus operator"
        " makes in the namespace monitoring.",
    )
    timeout: Duration = key(
        10.0,
        "A query that takes longer counts as unanswered.",
        gt=0,
        le=120,
    )
    budget: Duration = key(
        15.0,
        "All queries of a tick together, repeats included. Within it a query that failed is asked again; what is still"
        " open at its end is unknown until the next tick.",
        gt=0,
        le=300,
    )
    scrape_interval: Duration = key(
        15.0,
        "How often Prometheus reads the engines. Rates look back over at least four of these, and a sample older than"
        " a few of them is stale.",
        gt=0,
        le=300,
    )
    labels: LabelNames = key(LabelNames(), "Label names of the engines' series; they depend on how Prometheus scrapes.")
    selector: str = key("", 'More matchers for every query, such as cluster="prod" in a store of several clusters.')
    method: str = key(
        "POST", "POST, or GET where a proxy lets nothing else through; long queries need POST.", pattern="^(POST|GET)$"
    )
    bearer_token_file: Path | None = key(
        None, "File with a bearer token; read again for each request, so that a rotated token is picked up."
    )
    username: str | None = key(None, "User for basic authentication; needs password_file.")
    password_file: Path | None = key(
        None, "File with the password for basic authentication. Secrets stand in files only, never in this one."
    )
    ca_file: Path | None = key(None, "Certificates to trust instead of the system's, as PEM.")
    cert_file: Path | None = key(None, "Client certificate for mutual TLS, as PEM; needs key_file.")
    key_file: Path | None = key(None, "Key of the client certificate, as PEM.")
    verify: bool = key(
        True,  # noqa: FBT003  (the default of a key)
        "Whether the server's certificate is checked. Turn it off only to find a fault.",
    )
    headers: dict[str, str] = key(
        {}, "More request headers, such as X-Scope-OrgID for a multi-tenant store. Not for secrets."
    )


class Scrape(Section):
    """The pods' own metrics pages."""

    port: Port = key(8000, "Port of the engines' metrics page; vLLM serves it on its API port 8000.", ge=1)
    path: str = key("/metrics", "Path of the engines' metrics page.", pattern=r"^/\S*$")
    scheme: str = key("http", "http or https.", pattern=r"^https?$")
    timeout: Duration = key(
        2.0, "A pod that answers later counts as not answering. Pages are read side by side.", gt=0, le=60
    )


class Source(Section):
    """Where readings and history come from."""

    kind: SourceKind = key(
        SourceKind.PROMETHEUS,
        "prometheus, or scrape: the pods' metrics pages read directly. Scraping needs no Prometheus but knows no past:"
        " forecasts start cold after every restart.",
    )
    prometheus: Prometheus = key(Prometheus(), "Used when kind is prometheus.")
    scrape: Scrape = key(Scrape(), "Used when kind is scrape.")


class Kubernetes(Section):
    """How to reach the API server.

    With nothing set: the pod's own service account when there is one, else the current context of the kubeconfig.
    """

    kubeconfig: Path | None = key(
        None, "A kubeconfig file to use, inside a pod too. Unset: the pod's own service account, else ~/.kube/config."
    )
    context: str | None = key(None, "Context of the kubeconfig. Unset: its current one.", min_length=1)
    server: Url | None = key(
        None, "Address of the API server, for a bare token instead of a kubeconfig; needs token_file."
    )
    ca_file: Path | None = key(None, "Certificates to trust for server, as PEM. Unset: the system's.")
    token_file: Path | None = key(None, "File with the bearer token for server; read again for each request.")
    owners: Annotated[tuple[Owner, ...], pydantic.Field(min_length=1)] = key(
        tuple(Owner),
        "What owns replica counts that Floorcast may look for and write: hpa, keda, kserve, and scale where there is no"
        " autoscaler. What is left out is not asked for, needs no permissions, and is only advised on where it shows.",
        remedy="leave it out to have all of them",
    )
    events: bool = key(
        True,  # noqa: FBT003  (the default of a key)
        "Whether decisions in control mode are told as Events, where kubectl describe shows them. Off: nothing is sent,"
        " and no permission is needed.",
    )
    watch: bool = key(
        True,  # noqa: FBT003  (the default of a key)
        "Whether what runs is kept up to date by watches, which end and go on twice a minute. Off: everything is listed"
        " at each tick, for a proxy in front of the API server that lets no watch through.",
    )
    cluster_wide: bool = key(
        False,  # noqa: FBT003  (the default of a key)
        "Whether one watch of each kind covers all namespaces, which takes the permissions in the whole cluster. Off:"
        " one for each namespace. Worth it from some twenty namespaces on.",
    )
    request_timeout: Duration = key(
        5.0,
        "A request that takes longer counts as failed and is tried again at the next tick. Short, so that the service"
        " can stop within 5 s.",
        gt=0,
        le=60,
    )


class Discovery(Section):
    """Targets found by the label floorcast.dev/scale: "true" on their workload, besides those that are named here.

    Annotations floorcast.dev/mode, engine, model, concurrency, knee, warm-up, minimum, maximum, from-zero and
    gitops-ignored say what a named target says with keys; what they leave out comes from defaults.
    """

    enabled: bool = key(
        False,  # noqa: FBT003  (the default of a key)
        "Whether they are looked for. Off: nobody is scaled but who stands in this file.",
    )
    namespaces: tuple[Annotated[str, pydantic.Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")], ...] = key(
        (), "Where to look. Empty: everywhere, which takes the permissions in the whole cluster."
    )
    kinds: Annotated[tuple[Kind, ...], pydantic.Field(min_length=1)] = key(
        (Kind.DEPLOYMENT, Kind.STATEFUL_SET), "Kinds of workload that are looked through."
    )
    every: Duration = key(
        60.0,
        "Distance between two looks, one request for each kind and namespace; a new target waits no longer than this.",
        ge=1,
        le=3600,
    )


class Loops(Section):
    """How often Floorcast looks and decides."""

    slow: Duration = key(
        30.0,
        "Distance between two forecasts. Shorter than the warm-up of any replica by far; each one is a query for each"
        " signal, not for each target.",
        ge=0.1,
        le=600,
        remedy="30s to 1m suits most fleets",
    )
    fast: Duration = key(
        10.0,
        "Distance between two looks at queues and load for what no forecast saw. Not much below the scrape interval:"
        " there is nothing new to see.",
        ge=0.1,
        le=120,
        remedy="5s to 15s suits most fleets",
    )
    deadline: Annotated[Duration, pydantic.Field(gt=0)] | None = key(
        None,
        "Time a tick has for deciding and writing once everything is read. After it the tick is given up between two"
        " targets; the next one starts afresh. Unset: the distance between two ticks of the loop.",
        remedy="leave it out for the loop's own distance",
    )


class LeaderElection(Section):
    """Several replicas of Floorcast, of which one writes; the others observe and forecast, ready to take over."""

    enabled: bool = key(
        False,  # noqa: FBT003  (the default of a key)
        "Whether replicas agree on one writer. On wherever a second replica may run, if only during an update.",
    )
    name: str = key("floorcast", "Name of the Lease object; one for each installation.", min_length=1)
    namespace: str | None = key(
        None, "Namespace of the Lease object. Unset: the pod's own; outside a pod it must be given.", min_length=1
    )
    lease: Duration = key(
        15.0,
        "How long a lease that is not renewed is left alone. A replica that died is replaced after this long; one that"
        " is stopped as it should be, at once.",
        ge=1,
        le=300,
    )
    renew: Duration = key(
        10.0,
        "How long the holder goes on writing without a renewal. With kubernetes.request_timeout, the longest a write"
        " may take, no longer than lease: the last write is over before another replica begins.",
        ge=0.5,
        le=300,
    )
    retry: Duration = key(2.0, "Time between two renewals, and between two looks at another's lease.", ge=0.1, le=60)


class ExternalScaler(Section):
    """The recommended number for KEDA, over gRPC, instead of being written; see docs/publishing.md."""

    enabled: bool = key(
        False,  # noqa: FBT003  (the default of a key)
        "Whether KEDA is answered: triggers of type external and external-push.",
    )
    port: Port = key(
        6000,
        "Port of the same, on the address of server.host; 0 takes a free one and logs it. Without cert_file answers are"
        " not encrypted: let KEDA's operator in and nobody else.",
        ge=0,
        remedy="use a port of 1 to 65535",
    )
    cert_file: Path | None = key(
        None,
        "Certificate to answer with, as PEM, with those between it and its authority; needs key_file. Read again at"
        " every new connection, so that a renewed one is taken up. Unset: no encryption.",
    )
    key_file: Path | None = key(None, "Key of that certificate, as PEM, without a password.")
    client_ca_file: Path | None = key(
        None,
        "Authorities, as PEM, of which whoever asks must show a certificate (mutual TLS). Unset: everybody may ask.",
    )


class Server(Section):
    """Metrics, health and the JSON state."""

    host: str = key(
        "0.0.0.0",  # noqa: S104  (a pod is scraped and probed from outside; nothing here writes or shows a secret)
        "Address to serve /metrics, /healthz, /readyz and /api/state on. All of the pod's by default, since Prometheus"
        " and the kubelet come from outside.",
        min_length=1,
    )
    port: Port = key(8080, "Port of the same; 0 takes a free one and logs it.", ge=0, remedy="use a port of 1 to 65535")


class Journal(Section):
    """What was seen and decided, on disk, for `floorcast explain` and `floorcast counterfactual`; what was learned."""

    path: Path | None = key(
        None,
        "Folder to keep it in, made if need be; over restarts where the folder outlives them. Beside it, in"
        " learned.json, the measured warm-ups, the observed capacity and the sizes of requests, some kilobytes a"
        " target. Unset: nothing is kept. A disk that is full is reported and stops nothing.",
        remedy="name a folder Floorcast may write to, like /var/lib/floorcast/journal",
    )
    days: Annotated[float, Number] = key(7.0, "How long records are kept.", gt=0, le=366)
    megabytes: Annotated[float, Number] = key(
        256.0,
        "Room it may take at most; the oldest records go first. A target takes half a megabyte a day and some 5 kB for"
        " each change of a decision.",
        ge=1,
        le=100000,
    )
    counterfactual: Annotated[Duration, pydantic.Field(ge=600, le=604800)] | None = key(
        None,
        "How often the last 24 h of every target in shadow mode are simulated with and without Floorcast, for the"
        " metrics floorcast_counterfactual_*. In a process of its own at low priority, which takes 0.5 GB of"
        " memory while it runs: leave that free below the container's limit. Unset: `floorcast counterfactual` only.",
        remedy="6h suits a day of shadow mode",
    )


class Level(enum.StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Format(enum.StrEnum):
    """How it is logged."""

    JSON = "json"
    CONSOLE = "console"


class Log(Section):
    """What is logged, to standard error."""

    level: Level = key(
        Level.INFO, "debug, info, warning or error. info is one line for each change of a decision and each problem."
    )
    format: Format = key(Format.JSON, "json, one object a line, or console, coloured for people.")
