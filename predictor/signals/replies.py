"""Reading an answer of the query API to its end, and telling a full success from everything else.

The errors, from the general to the special:

    AnswerError           there is no answer to work with; `cause` says which Unknown it becomes
    ├── UnreachableError  no connection, no answer in time, or one that is no JSON of the API
    ├── RefusedError      an HTTP status other than 200, or status "error" in the answer
    └── PartialError      an answer with warnings: part of the data is missing
"""

import json
import time

import requests
import urllib3

from models.signals import Cause

_CHUNK = 65536
_LARGEST = 256 * 2**20  # bytes of one answer; no healthy one is near
_TEMPORARY = (429, 500, 502, 503, 504)
_TOO_MUCH = (400, 413, 422)  # too many points, too large, too many samples
_HARMLESS = "PromQL info"  # Prometheus 3 hints at odd but complete answers in this way


class AnswerError(Exception):
    """There is no answer to work with."""

    cause = Cause.SOURCE_DOWN
    temporary = False


class UnreachableError(AnswerError):
    """No connection, no answer in time, or one that is no JSON of the API."""

    def __init__(self, text: str, *, temporary: bool) -> None:
        super().__init__(text)
        self.temporary = temporary


class RefusedError(AnswerError):
    """The server refused."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text}")
        self.temporary = status in _TEMPORARY
        self.too_much = status in _TOO_MUCH


class PartialError(AnswerError):
    """The answer carries warnings."""

    cause = Cause.PARTIAL


def body(response: requests.Response, deadline: float) -> bytes:
    """The body of a streamed response by a `time.monotonic()`.

    A server that sends a byte now and then would hold a plain read for ever.

    Raises:
        requests.RequestException: it came too slowly or is incomplete.
        ValueError: it is too large.
    """
    parts: list[bytes] = []
    size = 0
    try:
        while part := response.raw.read1(_CHUNK, decode_content=True):
            parts.append(part)
            size += len(part)
            if time.monotonic() > deadline:
                raise requests.ReadTimeout("the answer came too slowly")
            if size > _LARGEST:
                raise ValueError(f"the answer is larger than {_LARGEST >> 20} MiB")
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.ReadTimeout(str(error)) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.exceptions.ChunkedEncodingError(str(error)) from error
    return b"".join(parts)


def check(response: requests.Response, text: bytes) -> None:
    """Lets a full success pass.

    Raises:
        AnswerError: it is none.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if response.status_code != requests.codes.ok:
        raise RefusedError(response.status_code, _told(answer, text))
    if not isinstance(answer, dict) or "status" not in answer:
        raise UnreachableError(f"the answer is no JSON of the query API: {text[:80]!r}", temporary=False)
    if answer["status"] != "success" or not isinstance(answer.get("data"), dict) or "result" not in answer["data"]:
        raise RefusedError(response.status_code, _told(answer, text))
    warnings = answer.get("warnings") or []
    if serious := [str(text) for text in warnings if not str(text).startswith(_HARMLESS)]:
        raise PartialError("; ".join(serious)[:200])


def _told(answer: object, text: bytes) -> str:
    if isinstance(answer, dict) and answer.get("error"):
        return f"{answer.get('errorType', 'error')}: {answer['error']}"[:300]
    return repr(text[:80])
