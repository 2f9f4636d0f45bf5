"""Logging: one line for each change, with fields; JSON for machines, colours for people; never a secret."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import TextIO

import structlog
from structlog.typing import Processor

from predictor.settings.sections import Format, Level

# At info these tell of every job and request, and the Kubernetes client at debug prints headers with tokens in them.
CHATTY = ("kubernetes", "urllib3", "uvicorn", "asyncio", "prometheus_api_client")
TOLD_ALREADY = ("apscheduler",)  # warns of every tick left out; the schedule hands those to the recorder
SECRET_NAME = re.compile(r"(^|[_-])(token|password|passwd|secret|authorization|api_?key|credentials?)$", re.IGNORECASE)
SECRET_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
HIDDEN = "(hidden)"


def configure(level: Level, form: Format, *, stream: TextIO | None = None) -> None:
    """Sets up structlog and the standard library's logging, both to the same stream (standard error by default)."""
    stream = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # modules take their loggers before this runs
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(form, stream)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name in TOLD_ALREADY:
        logging.getLogger(name).setLevel(logging.ERROR)


def without_secrets(_logger: object, _method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Hides values whose name or look says that they are secret."""
    return {
        name: HIDDEN if SECRET_NAME.search(name) and value is not None else _without(value)
        for name, value in event.items()
    }


def _without(value: object) -> object:
    return SECRET_TEXT.sub(HIDDEN, value) if isinstance(value, str) else value


def _rendering(form: Format, stream: TextIO) -> list[Processor]:
    if form is Format.CONSOLE:
        return [without_secrets, structlog.dev.ConsoleRenderer(colors=stream.isatty())]
    return [structlog.processors.format_exc_info, without_secrets, structlog.processors.JSONRenderer(default=str)]
