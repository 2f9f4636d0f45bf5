"""Serves the pages from a thread of its own."""

import errno
import socket
import threading
from typing import Self

import uvicorn
from starlette.applications import Starlette

from predictor.errors import ListenError

GRACE = 1  # seconds for answers under way when the server stops; the service has 5 in all
REMEDIES = {
    errno.EADDRINUSE: "another program uses it; set server.port (or --port) to a free one, 0 takes any",
    errno.EACCES: "that port needs more rights; set server.port (or --port) above 1023",
    errno.EADDRNOTAVAIL: "this machine has no such address; set server.host to 0.0.0.0 or one it has",
}


class Server:
    """A web server that is there once `start` returns, and gone once `stop` does. Also a context manager."""

    def __init__(self, application: Starlette, *, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._socket: socket.socket | None = None
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                log_config=None,  # the service's own logging stands
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=GRACE,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port that is served on, also when any free one was asked for."""
        if self._socket is None:
            raise RuntimeError("the server has not been started")
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Address for a browser on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self._host, self._host)  # noqa: S104  (shown, not bound)
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Binds the address and begins to serve.

        Raises:
            ListenError: the address cannot be had.
        """
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            self._socket = socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            remedy = REMEDIES.get(error.errno or 0, "set server.host and server.port to an address this machine has")
            problem = (error.strerror or str(error)).split(" (")[0]  # Python repeats the address in brackets
            raise ListenError(f"cannot listen on {self._host}:{self._port}: {problem}; {remedy}") from error
        self._thread.start()

    def stop(self) -> None:
        """Ends answers under way within `GRACE` seconds and frees the address; safe to repeat."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(GRACE + 0.5)
        if self._socket is not None:
            self._socket.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _serve(self) -> None:
        if self._socket is not None:
            self._server.run(sockets=[self._socket])
