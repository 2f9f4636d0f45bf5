"""The watch half of the fake API server: events since a resource version, one chunk each, until the window is over."""

import http.server
import json
import threading
import time
from typing import Any, Protocol

Json = dict[str, Any]


class Asked(Protocol):
    """The request for a watch."""

    @property
    def resource(self) -> str: ...

    @property
    def namespace(self) -> str: ...

    @property
    def query(self) -> Any: ...  # noqa: ANN401


class Watches:
    """What happened, by resource version, and what is to go wrong for those who watch.

    Attributes:
        oldest: versions before this one are answered with 410, as an event as the real server does.
        dropped: connections still to be cut at their next event, without an end.
        open: watches that are being served.
    """

    def __init__(self) -> None:
        self.oldest = 0
        self.dropped = 0
        self.open = 0
        self._happened: list[tuple[int, str, str, Json]] = []
        self._news = threading.Condition()
        self._ended = False

    def tell(self, kind: str, plural: str, thing: Json, *, version: int) -> None:
        with self._news:
            self._happened.append((version, plural, thing["metadata"]["namespace"], {"type": kind, "object": thing}))
            self._news.notify_all()

    def bookmark(self, version: int) -> None:
        event = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}
        with self._news:
            self._happened.append((version, "", "", event))
            self._news.notify_all()

    def drop(self, times: int = 1) -> None:
        """Cut the next connections that have something to say."""
        self.dropped += times

    def end(self) -> None:
        with self._news:
            self._ended = True
            self._news.notify_all()

    def serve(self, handler: http.server.BaseHTTPRequestHandler, asked: Asked) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.flush()
        with self._news:
            self.open += 1
        try:
            self._stream(handler, asked)
        finally:
            with self._news:
                self.open -= 1

    def _stream(self, handler: http.server.BaseHTTPRequestHandler, asked: Asked) -> None:
        since = int(asked.query["resourceVersion"])
        if since < self.oldest:
            gone = {"kind": "Status", "code": 410, "message": f"too old resource version: {since}"}
            self._chunk(handler, {"type": "ERROR", "object": gone})
        else:
            until = time.monotonic() + float(asked.query.get("timeoutSeconds", 60))
            while (event := self._next(since, asked, until)) is not None:
                since = event[0]
                if self.dropped > 0:
                    self.dropped -= 1
                    handler.close_connection = True
                    return
                self._chunk(handler, event[1])
        handler.wfile.write(b"0\r\n\r\n")

    def _next(self, since: int, asked: Asked, until: float) -> tuple[int, Json] | None:
        """The first event after a version that concerns the watch; None once the window is over."""

        def found() -> tuple[int, Json] | None:
            for version, plural, namespace, event in self._happened:
                fits = plural in ("", asked.resource) and (not asked.namespace or namespace in ("", asked.namespace))
                if version > since and fits:
                    return version, event
            return None

        with self._news:
            self._news.wait_for(lambda: self._ended or found() is not None, max(until - time.monotonic(), 0.01))
            return None if self._ended else found()

    @staticmethod
    def _chunk(handler: http.server.BaseHTTPRequestHandler, event: Json) -> None:
        line = json.dumps(event).encode() + b"\n"
        handler.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        handler.wfile.flush()
