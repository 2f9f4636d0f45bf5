"""Requests to the API server: JSON in, JSON out, every one with a timeout, every failure an error of `errors.py`."""

import dataclasses
import http
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import kubernetes.client
import kubernetes.config
import structlog
import urllib3.exceptions

from predictor.cluster import access as accesses
from predictor.cluster import errors, fields
from predictor.cluster.fields import Json
from predictor.cluster.resources import ACCESS_REVIEWS, Resource
from predictor.cluster.streams import Stream

FIELD_MANAGER = "floorcast"
PAGE = 500  # objects per list request: what kubectl asks for
TRIES = 3  # requests in all where the API server asks to come back
LONGEST_WAIT = 2.0  # seconds a request waits at most because of a 429; whoever asked waits no longer than a tick
LONGEST_SILENCE = 60.0  # seconds for which a Retry-After is believed

_MERGE_PATCH = "application/merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_EACH_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_METHODS = {"patch": "PATCH", "create": "POST", "update": "PUT"}

_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One request: RBAC's verb, what it is about, and what travels with it."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    query: tuple[tuple[str, str], ...] = ()
    body: Json | None = None
    accept: str = "application/json"

    @property
    def method(self) -> str:
        """HTTP method of the verb."""
        return _METHODS.get(self.verb, "GET")

    @property
    def writes(self) -> bool:
        """Whether it changes anything; a question about permissions is sent like a write and is none."""
        return self.verb in _METHODS and self.resource != ACCESS_REVIEWS

    @property
    def path(self) -> str:
        """Path with {namespace} and {name} left to be filled in, and quoted, by the client."""
        parts = [self.resource.path]
        parts += ["namespaces/{namespace}"] if self.namespace else []
        parts += [self.resource.plural]
        parts += ["{name}"] if self.name else []
        parts += [self.resource.subresource] if self.resource.subresource else []
        return "/".join(parts)

    def __str__(self) -> str:
        place = f" in namespace {self.namespace}" if self.namespace else " in all namespaces"
        return " ".join(part for part in (self.verb, self.resource.rule_name, self.name) if part) + place


class Api:
    """The API server. Safe to use from several threads.

    Args:
        access: where it is.
        wait: sleeps for the seconds given and returns whether the process is to stop; a stop event's `wait` does.
        monotonic: seconds from a clock that never goes back.
        may_write: asked right before each write is sent; False when another replica may be writing. None where
            there is no other.
    """

    def __init__(
        self,
        access: accesses.Access,
        *,
        wait: Callable[[float], bool] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        self._access = access
        self._may_write = may_write
        self._listeners: list[Callable[[Resource, Json], None]] = []
        self._wait = wait or threading.Event().wait
        self._monotonic = monotonic
        self._client = accesses.connect(access)
        self._reconnecting = threading.Lock()
        self._silent_until = float("-inf")

    def listen(self, listener: Callable[[Resource, Json], None]) -> None:
        """Has every object told that a write of ours returned."""
        self._listeners.append(listener)

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()  # type: ignore[no-untyped-call]  # the client types its models only

    def get(self, resource: Resource, *, namespace: str, name: str) -> Json:
        """One object."""
        return self._ask(Call("get", resource, namespace, name))

    def list_all(
        self, resource: Resource, *, namespace: str = "", selector: str = "", labels: str = "", names_only: bool = False
    ) -> list[Json]:
        """All objects of a namespace, or of all namespaces where none is given, read page by page.

        Args:
            resource: kind of object.
            namespace: where; empty for all namespaces.
            selector: field selector.
            labels: label selector.
            names_only: metadata is enough.
        """

        def read() -> list[Json]:
            pages = self.pages(resource, namespace=namespace, selector=selector, labels=labels, names_only=names_only)
            return [thing for page in pages for thing in fields.mappings(page, "items")]

        try:
            return read()
        except errors.ExpiredError:
            return read()  # the snapshot behind the pages is kept for minutes only: start over, once

    def pages(
        self, resource: Resource, *, namespace: str = "", selector: str = "", labels: str = "", names_only: bool = False
    ) -> Iterator[Json]:
        """The same page by page, as the API server's List objects; for what need not be in memory at once."""
        call = Call("list", resource, namespace, accept=_METADATA_ONLY if names_only else "application/json")
        given = (("fieldSelector", selector), ("labelSelector", labels))
        query = (("limit", str(PAGE)), *(one for one in given if one[1]))
        more: tuple[tuple[str, str], ...] = ()
        while True:
            page = self._ask(dataclasses.replace(call, query=(*query, *more)))
            yield page
            left = fields.text(page, "metadata", "continue")
            if not left:
                return
            more = (("continue", left),)

    def watch(self, resource: Resource, asked: "Watched") -> Stream:
        """What changes from now on; the caller closes it. Raises as any request when it is not granted."""
        accept = _EACH_METADATA_ONLY if asked.names_only else "application/json"
        call = Call("watch", resource, asked.namespace, query=asked.query, accept=accept)
        self._respect_silence(call)
        # Silence for longer than the window and an answer's time means that the connection is dead.
        timeout = (self._access.timeout, asked.window + self._access.timeout)
        client = self._client
        response = self._open(client, call, timeout=timeout)
        if response.status == http.HTTPStatus.UNAUTHORIZED:
            self._take(response, call)
            self._log_in_again(client)
            response = self._open(self._client, call, timeout=timeout)
        if response.status != http.HTTPStatus.OK:
            raise _rejection(call, self._take(response, call))
        return Stream(response.response, str(call))

    def patch(
        self,
        resource: Resource,
        change: Json,
        *,
        namespace: str,
        name: str,
        manager: str = FIELD_MANAGER,
        dry_run: bool = False,
    ) -> Json:
        """Merges `change` into one object as our field manager and returns the object after it.

        A dry run goes through all checks of the API server, and changes nothing.
        """
        query = (("fieldManager", manager), *((("dryRun", "All"),) if dry_run else ()))
        after = self._ask(Call("patch", resource, namespace, name, query=query, body=change))
        for listener in () if dry_run else self._listeners:
            listener(resource, after)
        return after

    def create(self, resource: Resource, thing: Json, *, namespace: str = "") -> Json:
        """Creates one object and returns it as the API server made it."""
        manager = (("fieldManager", FIELD_MANAGER),)
        return self._ask(Call("create", resource, namespace, query=manager, body=thing))

    def replace(self, resource: Resource, thing: Json, *, namespace: str, name: str) -> Json:
        """Puts `thing` in the place of the version it names, and returns it as it then is."""
        manager = (("fieldManager", FIELD_MANAGER),)
        return self._ask(Call("update", resource, namespace, name, query=manager, body=thing))

    def _ask(self, call: Call) -> Json:
        """The answer; comes back as often as the API server asks for it, and logs in again once."""
        fresh_login = True
        for tries_left in reversed(range(TRIES)):
            self._respect_silence(call)
            client = self._client
            answer = self._send(client, call)
            if answer.status == http.HTTPStatus.UNAUTHORIZED and fresh_login:
                fresh_login = False
                self._log_in_again(client)
                answer = self._send(self._client, call)
            if answer.status != http.HTTPStatus.TOO_MANY_REQUESTS or not self._may_come_back(answer, tries_left):
                return _read(call, answer)
        raise AssertionError("the last try always returns or raises")

    def _send(self, client: kubernetes.client.ApiClient, call: Call) -> "_Answer":
        timeout = self._access.timeout
        if call.writes and self._may_write is not None:
            # The API server gives up a write when we do: one that hangs there must not happen after the lease is over.
            call = dataclasses.replace(call, query=(*call.query, ("timeout", f"{timeout:g}s")))
        return self._take(self._open(client, call, timeout=timeout), call)

    def _open(
        self, client: kubernetes.client.ApiClient, call: Call, *, timeout: float | tuple[float, float]
    ) -> kubernetes.client.rest.RESTResponse:
        request = _prepare(client, call)
        if call.writes and self._may_write is not None and not self._may_write():
            raise errors.NotLeaderError(f"{call}: not sent: another replica holds the lease, or may by now")
        try:
            return client.call_api(*request, _request_timeout=timeout)
        except (urllib3.exceptions.HTTPError, kubernetes.client.ApiException) as error:
            raise _unreachable(call, error) from error

    def _take(self, response: kubernetes.client.rest.RESTResponse, call: Call) -> "_Answer":
        """The whole answer; the connection is free for the next request then."""
        try:
            body = response.read()  # type: ignore[no-untyped-call]  # the client types its models only
        except urllib3.exceptions.HTTPError as error:
            raise _unreachable(call, error) from error
        return _Answer(response.status, response.headers, bytes(body))

    def _log_in_again(self, rejected: kubernetes.client.ApiClient) -> None:
        """Read the credentials afresh, unless another thread has done so since."""
        with self._reconnecting:
            if self._client is rejected:
                _log.warning("credentials rejected, reading them again")
                self._client = accesses.connect(self._access)

    def _may_come_back(self, answer: "_Answer", tries_left: int) -> bool:
        """Wait as long as asked, if that is short; else remember until when not to ask anything."""
        seconds = answer.retry_after
        if seconds <= LONGEST_WAIT and tries_left:
            return not self._wait(seconds)
        self._silent_until = self._monotonic() + min(seconds, LONGEST_SILENCE)
        return False

    def _respect_silence(self, call: Call) -> None:
        left = self._silent_until - self._monotonic()
        if left > 0:
            raise errors.TooManyRequestsError(f"{call}: the API server asked to come back in {left:.0f} s; not sent")


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """What a watch is asked for.

    Attributes:
        since: resource version from which on changes are wanted.
        window: seconds after which the API server ends it.
        namespace: where; empty for all namespaces.
        selector: field selector.
        names_only: metadata is enough.
    """

    since: str
    window: float
    namespace: str = ""
    selector: str = ""
    names_only: bool = False

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """The request's query. A bookmark says how far we are where nothing happens."""
        return (
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self.since),
            ("timeoutSeconds", f"{max(self.window, 1):.0f}"),
            *((("fieldSelector", self.selector),) if self.selector else ()),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after(self) -> float:
        """Seconds; the API server gives whole ones, and one where it gives none (or a date)."""
        given = self.headers.get("Retry-After", "")
        return float(given) if given.isdecimal() else 1.0


def _prepare(client: kubernetes.client.ApiClient, call: Call) -> kubernetes.client.api_client.RequestSerialized:
    """The request with its credentials, which may be read from a file for it."""
    try:
        return client.param_serialize(
            call.method,
            call.path,
            path_params={"namespace": call.namespace, "name": call.name},
            query_params=list(call.query),
            header_params={"Accept": call.accept, **({"Content-Type": _content_type(call)} if call.body else {})},
            body=call.body,
            auth_settings=["BearerToken"],
        )
    except (kubernetes.config.ConfigException, OSError, ValueError) as error:
        raise errors.MisconfiguredError(f"{call}: cannot read the credentials: {error}") from error


def _content_type(call: Call) -> str:
    return _MERGE_PATCH if call.verb == "patch" else "application/json"


def _read(call: Call, answer: _Answer) -> Json:
    if not 200 <= answer.status < 300:  # noqa: PLR2004  (success in HTTP)
        raise _rejection(call, answer)
    try:
        thing: Any = json.loads(answer.body)
    except ValueError as error:
        raise errors.UnreadableError(f"{call}: the answer is not JSON: {answer.body[:80]!r}") from error
    if not isinstance(thing, dict):
        raise errors.UnreadableError(f"{call}: the answer is no object: {answer.body[:80]!r}")
    return thing


_REJECTIONS: Mapping[int, type[errors.RejectedError]] = {
    400: errors.InvalidError,
    401: errors.UnauthorizedError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    410: errors.ExpiredError,
    422: errors.InvalidError,
    429: errors.TooManyRequestsError,
}


def _rejection(call: Call, answer: _Answer) -> errors.RejectedError:
    kind = _REJECTIONS.get(answer.status, errors.ServerError)
    detail = f"{call}: {answer.status} {_message(answer.body)}"
    if kind is errors.ForbiddenError:
        detail += f"; missing rule: {_missing_rule(call)}"
    return kind(detail)


def _missing_rule(call: Call) -> str:
    role = f"Role in namespace {call.namespace}" if call.namespace else "ClusterRole"
    group, resource = call.resource.group, call.resource.rule_name
    return f'{role} with apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{call.verb}"]'


def _message(body: bytes) -> str:
    """The message of the Status object the API server answers with, or the start of whatever it is."""
    try:
        return fields.text(json.loads(body), "message")
    except ValueError:
        return body[:120].decode(errors="replace")


def _unreachable(call: Call, error: Exception) -> errors.UnreachableError:
    return errors.UnreachableError(f"{call}: no answer from the API server: {_brief(error)}")


def _brief(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
