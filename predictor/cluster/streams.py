"""A watch's answer: JSON objects, one a line, as they come."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import urllib3

from predictor.cluster import errors, fields
from predictor.cluster.fields import Json

AT_ONCE = 65536  # bytes read at once at most; what is there is taken without waiting for more


class Stream:
    """The events of one watch; to be closed. `cut` may be called from another thread and ends the iteration."""

    def __init__(self, response: urllib3.BaseHTTPResponse, what: str) -> None:
        self._response = response
        self._what = what

    def __iter__(self) -> Iterator[Json]:
        """Events until the API server ends the watch.

        Raises:
            ExpiredError: the version that was asked from is no longer known (410, as an event).
            ServerError: the API server ended the watch with another error.
            UnreachableError: the connection broke, or was silent for too long.
            UnreadableError: a line is no JSON object.
        """
        for line in self._lines():
            event = self._parsed(line)
            if event.get("type") == "ERROR":
                raise self._failure(fields.mapping(event, "object"))
            yield event

    def cut(self) -> None:
        """Ends a wait for the next event at once; for the thread that does not iterate."""
        with contextlib.suppress(RuntimeError, ValueError, OSError):  # it has ended by itself meanwhile
            self._response.shutdown()

    def close(self) -> None:
        """Frees the connection; for the thread that iterates."""
        self._response.close()

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        try:
            while chunk := self._response.read1(AT_ONCE):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line for line in whole if line.strip())
        except (urllib3.exceptions.HTTPError, ValueError, OSError) as error:
            raise errors.UnreachableError(f"{self._what}: the watch broke off: {error}") from error
        if rest.strip():
            raise errors.UnreachableError(f"{self._what}: the watch broke off in the middle of an event")

    def _parsed(self, line: bytes) -> Json:
        try:
            event: Any = json.loads(line)
        except ValueError as error:
            raise errors.UnreadableError(f"{self._what}: an event is not JSON: {line[:80]!r}") from error
        if not isinstance(event, dict):
            raise errors.UnreadableError(f"{self._what}: an event is no object: {line[:80]!r}")
        return event

    def _failure(self, status: Json) -> errors.RejectedError:
        code, message = fields.count(status, "code"), fields.text(status, "message")
        kind = errors.ExpiredError if code == 410 else errors.ServerError  # noqa: PLR2004  (Gone in HTTP)
        return kind(f"{self._what}: {code} {message}")
