"""How to reach the API server, and with which credentials."""

import dataclasses
import os
from pathlib import Path

import kubernetes.client
import kubernetes.config
import yaml
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME

from predictor.cluster import errors

# The library checks little of a kubeconfig: one that is YAML and no kubeconfig ends in whatever Python makes of it.
_UNUSABLE = (kubernetes.config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, LookupError)

# Kept for the next request; each watch holds one. What comes back beyond it is closed, with a warning of the library's.
CONNECTIONS = 256


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """Where the API server is. The first that is given counts: server, kubeconfig or context, the pod's own account.

    Attributes:
        server: URL of the API server; needs `token_file`.
        ca_file: certificate authorities to trust instead of the system's.
        token_file: bearer token; read again for every request, because a bound token is replaced every hour.
        kubeconfig: a kubeconfig file; None for $KUBECONFIG or ~/.kube/config.
        context: context in the kubeconfig; None for its current one.
        timeout: seconds a connection may take, and then the API server may stay silent.
    """

    server: str | None = None
    ca_file: Path | None = None
    token_file: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    timeout: float = 5.0


def connect(access: Access) -> kubernetes.client.ApiClient:
    """A client with the credentials as they are now.

    Raises:
        MisconfiguredError: a file is missing or unusable, or nothing is configured at all.
    """
    client = kubernetes.client.ApiClient(configuration(access))
    client.user_agent = "floorcast"
    return client


def configuration(access: Access) -> kubernetes.client.Configuration:
    """The client library's own form of `access`; raises as `connect` does."""
    found = kubernetes.client.Configuration()
    found.connection_pool_maxsize = CONNECTIONS
    found.retries = False  # urllib3 would try three times: a timeout of 10 s would be one of 40 s
    try:
        _configure(found, access)
    except _UNUSABLE as error:
        remedy = "name a kubeconfig with --kubeconfig or kubernetes.kubeconfig, or run in a pod with a service account"
        raise errors.MisconfiguredError(
            f"cannot set up access to the API server{_tried(access)}: {error}; {remedy}"
        ) from error
    return found


def _tried(access: Access) -> str:
    """The file that the library's own messages leave out."""
    return f" with kubeconfig {access.kubeconfig}" if access.kubeconfig and not access.server else ""


def _configure(configuration: kubernetes.client.Configuration, access: Access) -> None:
    if access.server:
        _explicit(configuration, access)
    elif access.kubeconfig or access.context or not os.environ.get(SERVICE_HOST_ENV_NAME):
        kubernetes.config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(access.kubeconfig) if access.kubeconfig else None,
            context=access.context,
            client_configuration=configuration,
            persist_config=False,
        )
    else:
        kubernetes.config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]


def _explicit(configuration: kubernetes.client.Configuration, access: Access) -> None:
    token_file = access.token_file
    if token_file is None:
        raise ValueError(f"server {access.server} is given without token_file: name the file that holds the token")
    configuration.host = (access.server or "").rstrip("/")
    if access.ca_file is not None:
        if not access.ca_file.is_file():
            raise ValueError(f"ca_file {access.ca_file} does not exist")
        configuration.ssl_ca_cert = str(access.ca_file)

    def read_again(holder: kubernetes.client.Configuration) -> None:
        token = token_file.read_text().strip()
        if not token:
            raise ValueError(f"token_file {token_file} is empty")
        holder.api_key["BearerToken"] = f"Bearer {token}"

    read_again(configuration)
    configuration.refresh_api_key_hook = read_again  # type: ignore[assignment]  # declared as None
