import pytest
import requests

from tests.servers import http


def test_answers_with_what_its_function_returns() -> None:
    with http.Server("127.0.0.1", 0, lambda path: http.Answer(path, 418, "text/plain")) as server:
        answer = requests.get(f"http://127.0.0.1:{server.port}/tea?milk=no", timeout=5)
    assert (answer.status_code, answer.text, answer.headers["Content-Type"]) == (418, "/tea?milk=no", "text/plain")


def test_two_addresses_of_this_machine_are_two_servers_on_one_port() -> None:
    with (
        http.Server("127.9.0.1", 0, lambda _: http.Answer("one")) as one,
        http.Server("127.9.0.2", one.port, lambda _: http.Answer("other")),
    ):
        pages = [requests.get(f"http://127.9.0.{host}:{one.port}/", timeout=5).text for host in (1, 2)]
    assert pages == ["one", "other"]


def test_nobody_is_answered_after_the_close_not_even_on_a_connection_from_before() -> None:
    server = http.Server("127.0.0.1", 0, lambda _: http.Answer("here"))
    with requests.Session() as client:
        assert client.get(f"http://127.0.0.1:{server.port}/", timeout=5).text == "here"
        server.close()
        with pytest.raises(requests.ConnectionError):
            client.get(f"http://127.0.0.1:{server.port}/", timeout=5)
