import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog

from predictor.settings.sections import Format, Level
from predictor.telemetry import logs

Lines = Callable[[], list[dict[str, object]]]


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in (*logs.CHATTY, *logs.TOLD_ALREADY)}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, was in levels.items():
        logging.getLogger(name).setLevel(was)
    structlog.reset_defaults()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def log_failure(text: str) -> None:
    def fail() -> None:
        raise RuntimeError(text)

    try:
        fail()
    except RuntimeError:
        structlog.stdlib.get_logger("floorcast").exception("failed")


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_one_object_a_line_with_the_fields(stream: io.StringIO) -> None:
    log = structlog.stdlib.get_logger("floorcast")  # taken before logging is set up, as modules do
    logs.configure(Level.INFO, Format.JSON, stream=stream)
    log.info("decision", target="llm/chat", replicas=4)
    log.debug("not said")
    (line,) = lines(stream)
    assert line.pop("timestamp", "").endswith("Z")  # type: ignore[attr-defined]
    assert line == {
        "event": "decision", "target": "llm/chat", "replicas": 4, "level": "info", "logger": "floorcast",
    }  # fmt: skip


def test_the_standard_library_goes_the_same_way(stream: io.StringIO) -> None:
    logs.configure(Level.INFO, Format.JSON, stream=stream)
    logging.getLogger("some.library").warning("disk %s", "full")
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("disk full", "warning", "some.library")


@pytest.mark.parametrize("name", ["kubernetes.client.rest", "uvicorn.error", "urllib3"])
def test_chatty_libraries_speak_from_warning_on_even_at_debug(stream: io.StringIO, name: str) -> None:
    logs.configure(Level.DEBUG, Format.JSON, stream=stream)
    logging.getLogger(name).info("Running job")
    logging.getLogger(name).debug("Authorization: Bearer abcdef123456")
    logging.getLogger(name).warning("late")
    assert [line["event"] for line in lines(stream)] == ["late"]


def test_what_the_schedule_tells_itself_is_not_told_twice(stream: io.StringIO) -> None:
    logs.configure(Level.DEBUG, Format.JSON, stream=stream)
    for name in ("apscheduler.scheduler", "apscheduler.executors.default"):
        logging.getLogger(name).info("Running job")
        logging.getLogger(name).warning("Execution of job skipped")
        logging.getLogger(name).error("cannot submit job")
    assert [line["event"] for line in lines(stream)] == ["cannot submit job"] * 2


def test_at_error_chatty_libraries_are_as_quiet_as_all(stream: io.StringIO) -> None:
    logs.configure(Level.ERROR, Format.JSON, stream=stream)
    logging.getLogger("urllib3").warning("late")
    assert lines(stream) == []


def test_an_exception_is_part_of_its_line(stream: io.StringIO) -> None:
    logs.configure(Level.INFO, Format.JSON, stream=stream)
    log_failure("broken")
    (line,) = lines(stream)
    assert "RuntimeError: broken" in str(line["exception"])


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "s3cret-value"},
        {"password": "s3cret-value"},
        {"client_secret": "s3cret-value"},
        {"headers": "Authorization: Bearer s3cret-value"},
        {"detail": "basic s3cret-value refused"},
        {"url": "http://me:s3cret-value@prometheus:9090/api"},
    ],
)
@pytest.mark.parametrize("form", list(Format))
def test_secrets_are_hidden(stream: io.StringIO, fields: dict[str, str], form: Format) -> None:
    logs.configure(Level.INFO, form, stream=stream)
    structlog.stdlib.get_logger("floorcast").info("said", **fields)
    assert "s3cret-value" not in stream.getvalue()
    assert "(hidden)" in stream.getvalue()


def test_a_secret_in_an_exception_is_hidden_too(stream: io.StringIO) -> None:
    logs.configure(Level.INFO, Format.JSON, stream=stream)
    log_failure("GET http://me:s3cret-value@prometheus:9090")
    assert "s3cret-value" not in stream.getvalue()


def test_what_only_sounds_like_a_secret_is_shown(stream: io.StringIO) -> None:
    logs.configure(Level.INFO, Format.JSON, stream=stream)
    structlog.stdlib.get_logger("floorcast").info("said", token_file="/run/token", kv_tokens=5, tokens_in=2.0)  # noqa: S106
    (line,) = lines(stream)
    assert (line["token_file"], line["kv_tokens"], line["tokens_in"]) == ("/run/token", 5, 2.0)


def test_the_console_form_is_for_people(stream: io.StringIO) -> None:
    logs.configure(Level.INFO, Format.CONSOLE, stream=stream)
    structlog.stdlib.get_logger("floorcast").info("decision", target="llm/chat")
    assert "decision" in stream.getvalue()
    assert "target=llm/chat" in stream.getvalue()
    assert "\x1b[" not in stream.getvalue()  # no terminal, no colours
