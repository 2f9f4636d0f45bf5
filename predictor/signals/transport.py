"""Prometheus' HTTP API through prometheus-api-client, on a session that waits only so long and checks each answer."""

import dataclasses
import datetime as dt
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import prometheus_api_client
import requests
import requests.auth
import tenacity
import urllib3

from predictor.signals import replies

ATTEMPTS = 3
LONGEST = 200  # characters of an error that are kept

Answer = TypeVar("Answer")


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """How to reach a Prometheus. Files are read again for each request, so that rotated secrets are picked up.

    Attributes:
        url: address of the query API, up to and without /api/v1.
        bearer_token_file: file with a bearer token.
        username: user for basic authentication, with `password_file`.
        password_file: file with its password.
        ca_file: certificates to trust instead of the system's.
        cert_file: client certificate, with `key_file` unless the key is in it.
        key_file: its key.
        verify: whether the server's certificate is checked.
        headers: more request headers.
        timeout: seconds for one answer, from the first byte sent to the last one read.
        method: POST, or GET where something between lets nothing else through.
    """

    url: str
    bearer_token_file: Path | None = None
    username: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    verify: bool = True
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timeout: float = 10.0
    method: str = "POST"


class Api:
    """The two query endpoints; safe to use from several threads. Answers are lists as Prometheus words them."""

    def __init__(self, access: Access) -> None:
        self._timeout, self._url = access.timeout, access.url
        self._session = _Session(access)
        self._connect = prometheus_api_client.PrometheusConnect(
            url=access.url.rstrip("/"),
            session=self._session,
            headers=dict(access.headers),
            method=access.method,
            retry=urllib3.Retry(total=0),  # retries are tenacity's, which knows the time that is left
        )

    def close(self) -> None:
        """Closes idle connections."""
        self._session.close()

    def instant(self, query: str, *, at: int, until: float) -> list[dict[str, Any]]:
        """Result of an instant query at the Unix time `at`.

        Args:
            query: PromQL.
            at: Unix time, whole seconds: some backends answer fractions with nothing.
            until: `time.monotonic()` at which to give up.

        Raises:
            AnswerError: there is none.
        """
        return self._vectors(
            lambda timeout: self._connect.custom_query(query, params={"time": at}, timeout=timeout), until
        )

    def range(self, query: str, span: "Span", *, until: float) -> list[dict[str, Any]]:
        """Result of a range query; `until` as in `instant`.

        Raises:
            AnswerError: there is none.
        """
        start, end = (dt.datetime.fromtimestamp(time, tz=dt.UTC) for time in (span.start, span.end))
        return self._vectors(
            lambda timeout: self._connect.custom_query_range(query, start, end, str(span.step), timeout=timeout), until
        )

    def server_time(self, *, until: float) -> float:
        """What the server takes for the present, Unix seconds.

        Raises:
            AnswerError: it does not say.
        """
        answer = self._asked(lambda timeout: self._connect.custom_query("time()", timeout=timeout), until)
        try:
            return float(answer[1])
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise replies.UnreachableError(f"time() gave {answer!r}", temporary=False) from error

    def _vectors(self, ask: Callable[[float], Any], until: float) -> list[dict[str, Any]]:
        answer = self._asked(ask, until)
        if not isinstance(answer, list) or not all(map(_is_series, answer)):
            raise replies.UnreachableError("the result is no list of series", temporary=False)
        return answer

    def _asked(self, ask: Callable[[float], Answer], until: float) -> Answer:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, replies.AnswerError) and error.temporary),
            stop=tenacity.stop_any(tenacity.stop_after_attempt(ATTEMPTS), _StopAt(until)),
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=2),
            sleep=lambda seconds: _pause(min(seconds, until - time.monotonic())),
            reraise=True,
        )
        return retrying(lambda: self._once(ask, until))

    def _once(self, ask: Callable[[float], Answer], until: float) -> Answer:
        left = min(until - time.monotonic(), self._timeout)
        if left <= 0:
            raise replies.UnreachableError("no time was left in this tick", temporary=False)
        try:
            return ask(left)
        except requests.Timeout as error:
            raise replies.UnreachableError(f"no answer within {left:.3g} s", temporary=False) from error
        except requests.exceptions.SSLError as error:
            raise replies.UnreachableError(
                f"no trust in {self._url}: {_root(error)}; see source.prometheus.ca_file", temporary=False
            ) from error
        except requests.ConnectionError as error:
            raise replies.UnreachableError(
                f"no connection to {self._url}: {_root(error)}; see source.prometheus.url", temporary=True
            ) from error
        except (OSError, ValueError, RecursionError) as error:  # requests' errors are OSErrors
            raise replies.UnreachableError(_short(error), temporary=False) from error


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Whole Unix seconds from `start` to `end`, both included, every `step` seconds."""

    start: int
    end: int
    step: int

    @property
    def points(self) -> int:
        """How many there are."""
        return (self.end - self.start) // self.step + 1

    def pieces(self, points: int) -> Sequence["Span"]:
        """The span in parts of at most `points` points."""
        starts = range(self.start, self.end + 1, points * self.step)
        return [Span(start, min(start + (points - 1) * self.step, self.end), self.step) for start in starts]


class _StopAt(tenacity.stop.stop_base):
    """Stops at a `time.monotonic()`."""

    def __init__(self, until: float) -> None:
        self._until = until

    def __call__(self, retry_state: tenacity.RetryCallState) -> bool:  # noqa: ARG002  (tenacity's signature)
        return time.monotonic() >= self._until


class _Session(requests.Session):
    """Sends queries in the request's body, reads answers within their time, and refuses all but full success."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        self.auth = _auth(access)
        self.verify = str(access.ca_file) if access.verify and access.ca_file else access.verify
        if access.cert_file:
            self.cert = (str(access.cert_file), str(access.key_file)) if access.key_file else str(access.cert_file)

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]  # noqa: ANN401  (requests' own)
        if method == "POST":
            options["data"] = options.pop("params", None)
        deadline = time.monotonic() + options["timeout"]
        response = super().request(method, url, stream=True, allow_redirects=False, **options)
        with response:
            body = replies.body(response, deadline)
        response._content = body  # noqa: SLF001  (what would be read later, without a limit)
        replies.check(response, body)
        return response


class _FileAuth(requests.auth.AuthBase):
    """Credentials from files, read for each request."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        access = self._access
        if access.bearer_token_file:
            request.headers["Authorization"] = f"Bearer {access.bearer_token_file.read_text().strip()}"
            return request
        password = access.password_file.read_text().strip() if access.password_file else ""
        signed: requests.PreparedRequest = requests.auth.HTTPBasicAuth(access.username or "", password)(request)
        return signed


def _auth(access: Access) -> requests.auth.AuthBase | None:
    return _FileAuth(access) if access.bearer_token_file or access.username else None


def _is_series(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get("metric"), dict)


def _root(error: BaseException) -> str:
    """What happened first, in the system's words where it has any: requests wraps it three times."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return getattr(error, "strerror", None) or _short(error)


def _short(error: BaseException) -> str:
    """The end of a long story: requests put what happened last, behind addresses and objects."""
    text = str(error)
    return f"{type(error).__name__}: {text if len(text) <= LONGEST else '...' + text[-LONGEST:]}"


def _pause(seconds: float) -> None:
    threading.Event().wait(max(seconds, 0.0))
