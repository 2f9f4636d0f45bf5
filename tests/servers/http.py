"""Small HTTP servers on loopback addresses, answered by a function."""

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Answer:
    """What a request gets."""

    body: str
    status: int = 200
    content_type: str = "application/json"


class Server:
    """Serves GET requests at `host`:`port` (0: any free one) from its making until `close`.

    Args:
        answer: called with path and query, in a thread per connection.
        tls: serve HTTPS with it.
    """

    def __init__(
        self, host: str, port: int, answer: Callable[[str], Answer], *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._server = _Server((host, port), _handler(answer))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening; connections are refused from now on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client that is slow does not hold us up


def _handler(answer: Callable[[str], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # One answer a connection: a kept one would go on answering for a pod after another got its address.
        protocol_version = "HTTP/1.0"
        timeout = 60  # seconds a silent connection may stay

        def do_GET(self) -> None:
            given = answer(self.path)
            content = given.body.encode()
            self.send_response(given.status)
            self.send_header("Content-Type", given.content_type)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing: scrapes come every other second."""

    return Handler
