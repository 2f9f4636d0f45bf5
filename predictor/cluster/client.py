"""Requests to the API server: JSON in, JSON out, every one with a timeout, every failure an error of `errors.py`."""

import dataclasses
import http
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import kubernetes.client
import kubernetes.config
import structlog
import urllib3.exceptions

from predictor.cluster import access as accesses
from predictor.cluster import errors, fields
from predictor.cluster.fields import Json
from predictor.cluster.resources import Resource

FIELD_MANAGER = "floorcast"
PAGE = 500  # objects per list request: what kubectl asks for
TRIES = 3  # requests in all where the API server asks to come back
LONGEST_WAIT = 2.0  # seconds a request waits at most because of a 429; whoever asked waits no longer than a tick
LONGEST_SILENCE = 60.0  # seconds for which a Retry-After is believed

_MERGE_PATCH = "application/merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

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
        return {"patch": "PATCH", "create": "POST"}.get(self.verb, "GET")

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
    """

    def __init__(
        self,
        access: accesses.Access,
        *,
        wait: Callable[[float], bool] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._wait = wait or threading.Event().wait
        self._monotonic = monotonic
        self._client = accesses.connect(access)
        self._reconnecting = threading.Lock()
        self._silent_until = float("-inf")

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()  # type: ignore[no-untyped-call]  # the client types its models only

    def get(self, resource: Resource, *, namespace: str, name: str) -> Json:
        """One object."""
        return self._ask(Call("get", resource, namespace, name))

    def list_all(
        self, resource: Resource, *, namespace: str = "", selector: str = "", names_only: bool = False
    ) -> list[Json]:
        """All objects of a namespace, or of all namespaces where none is given, read page by page.

        Args:
            resource: kind of object.
            namespace: where; empty for all namespaces.
            selector: field selector.
            names_only: metadata is enough.
        """
        call = Call("list", resource, namespace, accept=_METADATA_ONLY if names_only else "application/json")
        query = (("limit", str(PAGE)), *((("fieldSelector", selector),) if selector else ()))
        call = dataclasses.replace(call, query=query)
        try:
            return self._pages(call)
        except errors.ExpiredError:
            return self._pages(call)  # the snapshot behind the pages is kept for minutes only: start over, once

    def patch(self, resource: Resource, change: Json, *, namespace: str, name: str, dry_run: bool = False) -> Json:
        """Merges `change` into one object as our field manager and returns the object after it.

        A dry run goes through all checks of the API server, and changes nothing.
        """
        query = (("fieldManager", FIELD_MANAGER), *((("dryRun", "All"),) if dry_run else ()))
        return self._ask(Call("patch", resource, namespace, name, query=query, body=change))

    def create(self, resource: Resource, thing: Json, *, namespace: str = "") -> Json:
        """Creates one object and returns it as the API server made it."""
        manager = (("fieldManager", FIELD_MANAGER),)
        return self._ask(Call("create", resource, namespace, query=manager, body=thing))

    def _pages(self, call: Call) -> list[Json]:
        found: list[Json] = []
        more = ""
        while True:
            query = (*call.query, ("continue", more)) if more else call.query
            page = self._ask(dataclasses.replace(call, query=query))
            found.extend(fields.mappings(page, "items"))
            more = fields.text(page, "metadata", "continue")
            if not more:
                return found

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
        request = _prepare(client, call)
        try:
            response = client.call_api(*request, _request_timeout=self._access.timeout)
            body = response.read()  # type: ignore[no-untyped-call]  # the client types its models only
        except (urllib3.exceptions.HTTPError, kubernetes.client.ApiException) as error:
            raise errors.UnreachableError(f"{call}: no answer from the API server: {_brief(error)}") from error
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


def _brief(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
