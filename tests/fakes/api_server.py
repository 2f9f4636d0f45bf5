"""A Kubernetes API server on loopback, as much of it as the cluster adapters speak.

Real: resource versions, merge patches with a version in them, the managed fields of a spec, paging, the scale
subresource, RBAC by verb and resource, bearer tokens, watches, Status answers. What a real one does now and then is
asked for: `answer` makes it fail, `hang` makes it silent, `before` changes something between two requests of the
client, and `watches` has more of the kind.
"""

import copy
import dataclasses
import http.server
import itertools
import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from tests.fakes.watches import Watches

Json = dict[str, Any]
_PATH = re.compile(
    r"^/(?:api|apis/(?P<group>[^/]+))/(?P<version>v\d\w*)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[a-z]+))?$"
)
_VERBS = {"GET": "get", "PATCH": "patch", "POST": "create", "PUT": "update"}


@dataclasses.dataclass(frozen=True)
class Request:
    """One request as it came in."""

    verb: str
    resource: str  # with the subresource: "deployments/scale"
    group: str
    namespace: str
    name: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any

    @property
    def what(self) -> str:
        """ "patch deployments/scale": what `answer`, `hang` and `before` are matched against."""
        return f"{self.verb} {self.resource}"


@dataclasses.dataclass
class Answer:
    """What is sent back instead of the truth, `times` times."""

    status: int
    times: int = 1
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes | None = None


class RejectedError(Exception):
    """Ends a request with a Status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FakeApiServer:
    """The server; a context manager. Objects are plain dictionaries by (plural, namespace, name).

    Attributes:
        objects: what is stored.
        requests: everything that was asked, in order.
        denied: "verb resource" pairs that are forbidden: "patch deployments/scale".
        tokens: bearer tokens that are accepted; None for any.
        absent: plurals of kinds that it does not know.
        page: most objects in one answer to a list, whatever the client's limit.
        watches: what watchers are told, and what goes wrong for them.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.requests: list[Request] = []
        self.denied: set[str] = set()
        self.tokens: set[str] | None = None
        self.absent: set[str] = set()
        self.page = 500
        self.watches = Watches()
        self._answers: dict[str, Answer] = {}
        self._before: dict[str, list[Callable[[], None]]] = {}
        self._hanging: set[str] = set()
        self._released = threading.Event()
        self._versions = itertools.count(1000)
        self._lock = threading.RLock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._released.set()
        self.watches.end()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def put(self, plural: str, thing: Json) -> Json:
        """Store an object as if somebody had written it; it gets a new version, and a uid unless it has one."""
        thing = copy.deepcopy(thing)
        meta = thing["metadata"]
        meta.setdefault("uid", f"uid-{plural}-{meta['namespace']}-{meta['name']}")
        with self._lock:
            version = next(self._versions)
            meta["resourceVersion"] = str(version)
            known = (plural, meta["namespace"], meta["name"]) in self.objects
            self.objects[plural, meta["namespace"], meta["name"]] = thing
            self.watches.tell("MODIFIED" if known else "ADDED", plural, thing, version=version)
        return thing

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Take an object away as somebody else."""
        with self._lock:
            thing, version = self.objects.pop((plural, namespace, name)), next(self._versions)
            gone = {**thing, "metadata": {**thing["metadata"], "resourceVersion": str(version)}}
            self.watches.tell("DELETED", plural, gone, version=version)

    def bookmark(self) -> None:
        """Tell all watchers how far they are."""
        with self._lock:
            self.watches.bookmark(next(self._versions))

    def change(self, plural: str, namespace: str, name: str, **patch: object) -> None:
        """Merge into a stored object as somebody else."""
        self.put(plural, merged(self.objects[plural, namespace, name], patch))

    def answer(self, what: str, status: int, *, times: int = 1, body: bytes | None = None, **headers: str) -> None:
        """Answer the next requests that are `what` ("list pods") with a failure; header names take _ for -."""
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        self._answers[what] = Answer(status, times, named, body)

    def hang(self, what: str) -> None:
        """Never answer a request that is `what`."""
        self._hanging.add(what)

    def before(self, what: str, *actions: Callable[[], None]) -> None:
        """Run the first action before the next request that is `what` is looked at, the second before the one after."""
        self._before.setdefault(what, []).extend(actions)

    def asked(self, what: str) -> list[Request]:
        """The requests that were `what`."""
        return [request for request in self.requests if request.what == what]

    def written(self, what: str) -> list[Request]:
        """The same without dry runs, which change nothing."""
        return [request for request in self.asked(what) if "dryRun" not in request.query]

    def respond(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body for a request."""
        with self._lock:
            self.requests.append(request)
            for action in self._before.get(request.what, [])[:1]:
                self._before[request.what].pop(0)
                action()
        if request.what in self._hanging:
            self._released.wait()
        planned = self._answers.get(request.what)
        if planned is not None and planned.times > 0:
            planned.times -= 1
            body = planned.body if planned.body is not None else _status(planned.status, "as planned")
            return planned.status, planned.headers, body
        try:
            with self._lock:
                return 200, {}, json.dumps(self._truth(request)).encode()
        except RejectedError as error:
            return error.status, {}, _status(error.status, str(error))

    def _truth(self, request: Request) -> Json:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens:
            raise RejectedError(401, "Unauthorized")
        if request.what in self.denied:
            raise RejectedError(403, f'User "tester" cannot {request.what}')
        if request.resource.partition("/")[0] in self.absent:
            raise RejectedError(404, "the server could not find the requested resource")
        if request.resource == "selfsubjectaccessreviews":
            return self._review(request.body)
        if request.verb == "create":
            name = f"{request.body['metadata'].get('generateName', '')}{next(self._versions)}"
            meta = {**request.body["metadata"], "name": request.body["metadata"].get("name", name)}
            return self.put(request.resource, {**request.body, "metadata": meta})
        if request.verb == "watch":
            return {}  # the handler streams
        return self._list(request) if request.verb == "list" else self._one(request)

    def _list(self, request: Request) -> Json:
        found = [
            thing
            for (plural, namespace, _), thing in sorted(self.objects.items())
            if plural == request.resource and request.namespace in ("", namespace)
            if _is_selected(thing, request.query.get("labelSelector", ""))
        ]
        start, size = int(request.query.get("continue", 0)), min(self.page, int(request.query.get("limit", 500)))
        rest = str(start + size) if start + size < len(found) else ""
        items = found[start : start + size]
        if "PartialObjectMetadataList" in request.headers.get("accept", ""):
            items = [{"metadata": thing["metadata"]} for thing in items]
        version = str(next(self._versions))
        return {"kind": "List", "metadata": {"continue": rest, "resourceVersion": version}, "items": items}

    def _one(self, request: Request) -> Json:
        plural, _, subresource = request.resource.partition("/")
        thing = self.objects.get((plural, request.namespace, request.name))
        if thing is None:
            raise RejectedError(404, f'{plural} "{request.name}" not found')
        if request.verb == "get":
            return _scale(thing) if subresource else thing
        if request.verb == "update":
            return self._replaced(thing, request.body)
        expected = request.body.get("metadata", {}).get("resourceVersion")
        if expected not in (None, thing["metadata"]["resourceVersion"]):
            raise RejectedError(409, "the object has been modified")
        after = _managed(merged(thing, request.body), thing, request)
        _validate(plural, after)
        stored = after if request.query.get("dryRun") == "All" else self.put(plural, after)
        return _scale(stored) if subresource else stored

    def _replaced(self, thing: Json, by: Json) -> Json:
        if by["metadata"].get("resourceVersion") not in (None, thing["metadata"]["resourceVersion"]):
            raise RejectedError(409, "the object has been modified")
        return self.put(self._plural_of(thing), by)

    def _plural_of(self, thing: Json) -> str:
        return next(plural for (plural, _, _), one in self.objects.items() if one is thing)

    def _review(self, body: Json) -> Json:
        asked = body["spec"]["resourceAttributes"]
        resource = "/".join(part for part in (asked["resource"], asked["subresource"]) if part)
        return {**body, "status": {"allowed": f"{asked['verb']} {resource}" not in self.denied}}


def merged(thing: Any, patch: Any) -> Any:  # noqa: ANN401  (JSON)
    """RFC 7396: null takes away, mappings merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(thing) if isinstance(thing, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _is_selected(thing: Json, selector: str) -> bool:
    """Whether the object has the label "key=value"; no selector selects all."""
    key, _, value = selector.partition("=")
    return not selector or thing["metadata"].get("labels", {}).get(key) == value


def _managed(after: Json, before: Json, request: Request) -> Json:
    """With the fields of the spec that a patch changed in the hands of its field manager, as managedFields has them."""
    changed = {path for path in _leaves(request.body.get("spec"), ("spec",)) if _at(after, path) != _at(before, path)}
    manager = request.query.get("fieldManager", "")
    held = {
        (entry["manager"], path)
        for entry in before["metadata"].get("managedFields", [])
        for path in _leaves(entry["fieldsV1"])
        if tuple(key.removeprefix("f:") for key in path) not in changed
    }
    held |= {(manager, tuple(f"f:{key}" for key in path)) for path in changed if _at(after, path) is not None}
    if not changed:
        return after
    entries: dict[str, Json] = {}
    for name, path in sorted(held):
        place = entries.setdefault(name, {})
        for key in path:
            place = place.setdefault(key, {})
    managed = [{"manager": name, "operation": "Update", "fieldsV1": one} for name, one in entries.items()]
    return {**after, "metadata": {**after["metadata"], "managedFields": managed}}


def _leaves(thing: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:  # noqa: ANN401  (JSON)
    if isinstance(thing, dict) and thing:
        for key, inner in thing.items():
            yield from _leaves(inner, (*path, key))
    elif path and path != ("spec",):
        yield path


def _at(thing: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401  (JSON)
    for key in path:
        thing = thing.get(key) if isinstance(thing, dict) else None
    return thing


def _validate(plural: str, thing: Json) -> None:
    spec = thing.get("spec", {})
    if plural == "horizontalpodautoscalers" and (spec.get("minReplicas") or 1) > spec["maxReplicas"]:
        raise RejectedError(422, "maxReplicas must be greater than or equal to minReplicas")


def _scale(thing: Json) -> Json:
    meta = {key: thing["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    labels = thing["spec"].get("selector", {}).get("matchLabels", {})
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    replicas = {"replicas": thing["spec"]["replicas"]} if thing["spec"].get("replicas") else {}
    return {"kind": "Scale", "metadata": meta, "spec": replicas, "status": {"selector": selector}}


def _status(code: int, message: str) -> bytes:
    return json.dumps({"kind": "Status", "status": "Failure", "code": code, "message": message}).encode()


def _handler(fake: FakeApiServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one segment an answer: the client would wait 40 ms for the second

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class calls it so)
            """Tests read `requests` instead."""

        def _serve(self) -> None:
            request = self._request()
            status, headers, body = fake.respond(request)
            try:
                if request.verb == "watch" and status == http.HTTPStatus.OK and not body.strip(b"{}"):
                    fake.watches.serve(self, request)
                    return
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the client has given up, as tests of timeouts want it to

        def _request(self) -> Request:
            url = urllib.parse.urlsplit(self.path)
            found = _PATH.match(url.path)
            assert found is not None, f"no path of the API: {url.path}"
            part = {key: urllib.parse.unquote(value or "") for key, value in found.groupdict().items()}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            verb = _VERBS[self.command]
            query = dict(urllib.parse.parse_qsl(url.query))
            if verb == "get" and not part["name"]:
                verb = "watch" if query.get("watch") == "true" else "list"
            return Request(
                verb=verb,
                resource="/".join(piece for piece in (part["plural"], part["subresource"]) if piece),
                group=part["group"],
                namespace=part["namespace"],
                name=part["name"],
                query=query,
                headers={key.lower(): value for key, value in self.headers.items()},
                body=json.loads(body) if body else None,
            )

        do_GET = do_PATCH = do_POST = do_PUT = _serve  # noqa: N815

    return Handler
