"""A Prometheus on loopback that answers what a test tells it to, for what a real one seldom does."""

import contextlib
import dataclasses
import http.server
import json
import ssl
import threading
import urllib.parse
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Request:
    """A request as it came in."""

    method: str
    path: str
    form: dict[str, str]
    headers: dict[str, str]
    in_url: str

    @property
    def query(self) -> str:
        return self.form.get("query", "")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What goes back: the body whole, or its first `cut` bytes, or a byte at a time."""

    body: bytes
    status: int = 200
    cut: int | None = None
    dripping: bool = False
    headers: dict[str, str] = dataclasses.field(default_factory=dict)


def result(rows: list[Json], *, kind: str = "vector", warnings: list[str] | None = None) -> Answer:
    body: Json = {"status": "success", "data": {"resultType": kind, "result": rows}}
    if warnings:
        body["warnings"] = warnings
    return Answer(json.dumps(body).encode())


def row(value: object, **labels: str) -> Json:
    return {"metric": labels, "value": [0, str(value)]}


def refusal(status: int, kind: str, text: str) -> Answer:
    return Answer(json.dumps({"status": "error", "errorType": kind, "error": text}).encode(), status=status)


Respond = Callable[[Request], Answer]


class PrometheusApi:
    """Answers with `respond`; remembers requests. `hang` keeps all waiting until it is closed."""

    def __init__(self, respond: Respond, *, tls: ssl.SSLContext | None = None) -> None:
        self.respond = respond
        self.requests: list[Request] = []
        self.hanging = False
        self._over = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:  # the handshake belongs into the thread of the connection: a client that refuses us must not end ours
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def asked(self, part: str) -> list[Request]:
        """Requests whose query contains the text."""
        return [request for request in self.requests if part in request.query]

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        return type("Handler", (_Handler,), {"api": self, "over": self._over})


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: PrometheusApi
    over: threading.Event

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # a client that does not trust us hangs up
            super().handle()

    def do_GET(self) -> None:
        self._answer("")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, form: str) -> None:
        path, _, in_url = self.path.partition("?")
        fields = dict(urllib.parse.parse_qsl(form or in_url))
        request = Request(self.command, path, fields, dict(self.headers), in_url)
        self.api.requests.append(request)
        if self.api.hanging:
            self.over.wait(60)
        self._send(self.api.respond(request))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.dripping:
            self._drip(answer.body)
        else:
            self.wfile.write(answer.body[: answer.cut])
        self.close_connection = answer.dripping or answer.cut is not None

    def _drip(self, body: bytes) -> None:
        for byte in body:
            if self.over.wait(0.05):
                return
            self.wfile.write(bytes([byte]))
