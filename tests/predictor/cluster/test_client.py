"""What the API server answers, through the real client: every failure is one of our errors, and names what it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from predictor.cluster import client, errors
from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.cluster.resources import DEPLOYMENTS, HPAS, PODS
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer

GET = "get horizontalpodautoscalers"


class Monotonic:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Monotonic:
    return Monotonic()


@pytest.fixture
def timed(access: Access, waits: list[float], clock: Monotonic) -> Iterator[Api]:
    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return False

    api = Api(access, wait=wait, monotonic=clock)
    yield api
    api.close()


def get(api: Api) -> dict[str, object]:
    return api.get(HPAS, namespace="llm", name="vllm-hpa")


def test_a_list_is_read_page_by_page(server: FakeApiServer, api: Api) -> None:
    server.page = 2
    for name in "abcde":
        server.put("pods", objects.pod(name, created=0))
    assert [pod["metadata"]["name"] for pod in api.list_all(PODS, namespace="llm")] == list("abcde")
    assert [request.query.get("continue") for request in server.asked("list pods")] == [None, "2", "4"]
    assert {request.query["limit"] for request in server.asked("list pods")} == {"500"}


def test_a_list_whose_rest_has_expired_is_started_over_once(server: FakeApiServer, api: Api) -> None:
    server.page = 1
    for name in "ab":
        server.put("pods", objects.pod(name, created=0))
    server.before("list pods", lambda: None, lambda: server.answer("list pods", 410))
    assert len(api.list_all(PODS, namespace="llm")) == 2
    server.answer("list pods", 410, times=2)
    with pytest.raises(errors.ExpiredError):
        api.list_all(PODS, namespace="llm")


@pytest.mark.parametrize("items", [b"null", b"{}", b'[null, 3, {"metadata": {}}]'])
def test_a_list_with_odd_items_keeps_the_objects(server: FakeApiServer, api: Api, items: bytes) -> None:
    server.answer("list pods", 200, body=b'{"items": ' + items + b"}")
    assert all(isinstance(pod, dict) for pod in api.list_all(PODS, namespace="llm"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (422, errors.InvalidError),
        (500, errors.ServerError),
        (503, errors.ServerError),
        (302, errors.ServerError),
    ],
)
def test_every_status_has_its_error(
    server: FakeApiServer, api: Api, status: int, kind: type[errors.RejectedError]
) -> None:
    server.answer(GET, status)
    with pytest.raises(kind, match=f"get horizontalpodautoscalers vllm-hpa in namespace llm: {status} as planned"):
        get(api)
    assert len(server.requests) == 1, "none of these is worth a second try within the tick"


def test_an_error_page_of_a_proxy_is_quoted(server: FakeApiServer, api: Api) -> None:
    server.answer(GET, 502, body=b"<html>Bad Gateway</html>")
    with pytest.raises(errors.ServerError, match="502 <html>Bad Gateway"):
        get(api)


@pytest.mark.parametrize("body", [b"not json", b"[1]", b""])
def test_an_answer_that_is_no_object_is_unreadable(server: FakeApiServer, api: Api, body: bytes) -> None:
    server.answer(GET, 200, body=body)
    with pytest.raises(errors.UnreadableError):
        get(api)


def test_names_are_quoted_in_paths(server: FakeApiServer, api: Api) -> None:
    with pytest.raises(errors.NotFoundError):
        api.get(DEPLOYMENTS, namespace="llm", name="a/b?c")
    assert server.requests[0].name == "a/b?c"


def test_a_server_that_is_silent_is_given_up_after_the_timeout(server: FakeApiServer, access: Access) -> None:
    server.hang(GET)
    impatient = Api(Access(server=access.server, token_file=access.token_file, timeout=0.2))
    with pytest.raises(errors.UnreachableError, match="timed out"):
        get(impatient)
    assert len(server.requests) == 1
    impatient.close()


def test_a_server_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("t")
    with FakeApiServer() as gone:
        url = gone.url
    api = Api(Access(server=url, token_file=token_file))
    with pytest.raises(errors.UnreachableError, match="refused"):
        get(api)
    api.close()


def test_a_short_retry_after_is_waited_for(server: FakeApiServer, api: Api, waits: list[float]) -> None:
    server.put("horizontalpodautoscalers", objects.hpa())
    server.answer(GET, 429, times=2, Retry_After="2")
    assert get(api)["metadata"]
    assert waits == [2.0, 2.0]


@pytest.mark.parametrize("header", [{}, {"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT"}])
def test_without_a_usable_retry_after_it_is_a_second(
    server: FakeApiServer, api: Api, waits: list[float], header: dict[str, str]
) -> None:
    server.put("horizontalpodautoscalers", objects.hpa())
    server.answer(GET, 429, **header)  # type: ignore[arg-type]
    get(api)
    assert waits == [1.0]


def test_after_three_refusals_the_request_is_given_up(server: FakeApiServer, api: Api) -> None:
    server.answer(GET, 429, times=9)
    with pytest.raises(errors.TooManyRequestsError):
        get(api)
    assert len(server.requests) == 3


def test_a_long_retry_after_is_not_waited_for_and_nothing_is_sent_until_then(
    server: FakeApiServer, timed: Api, clock: Monotonic, waits: list[float]
) -> None:
    server.put("horizontalpodautoscalers", objects.hpa())
    server.answer(GET, 429, Retry_After="30")
    for _ in range(2):
        with pytest.raises(errors.TooManyRequestsError):
            get(timed)
        clock.seconds += 20
    assert (len(server.requests), waits) == (1, [])
    assert get(timed)["metadata"]


def test_an_absurd_retry_after_is_believed_for_a_minute(server: FakeApiServer, timed: Api, clock: Monotonic) -> None:
    server.put("horizontalpodautoscalers", objects.hpa())
    server.answer(GET, 429, Retry_After="86400")
    with pytest.raises(errors.TooManyRequestsError):
        get(timed)
    clock.seconds += client.LONGEST_SILENCE
    assert get(timed)["metadata"]


def test_a_process_that_is_to_stop_does_not_wait(server: FakeApiServer, access: Access) -> None:
    server.answer(GET, 429, times=9)
    stopping = Api(access, wait=lambda _: True)
    with pytest.raises(errors.TooManyRequestsError):
        get(stopping)
    assert len(server.requests) == 1
    stopping.close()


def test_a_rotated_token_is_picked_up_by_the_next_request(server: FakeApiServer, api: Api, access: Access) -> None:
    server.put("horizontalpodautoscalers", objects.hpa())
    server.tokens = {"first"}
    get(api)
    server.tokens = {"second"}
    assert access.token_file is not None
    access.token_file.write_text("second\n")
    get(api)
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer first", "Bearer second"]


def test_rejected_credentials_are_read_again_once(server: FakeApiServer, api: Api) -> None:
    server.put("horizontalpodautoscalers", objects.hpa())
    server.answer(GET, 401)
    assert get(api)["metadata"]
    server.requests.clear()
    server.answer(GET, 401, times=9)
    with pytest.raises(errors.UnauthorizedError, match="401"):
        get(api)
    assert len(server.requests) == 2


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("\n")])
def test_a_token_file_that_is_gone_or_empty_is_named(api: Api, access: Access, damage: object) -> None:
    assert callable(damage)
    damage(access.token_file)
    with pytest.raises(errors.MisconfiguredError, match="token"):
        get(api)
