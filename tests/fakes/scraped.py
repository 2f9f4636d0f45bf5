"""Pods whose pages are read at given times."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.signals import scrape, shelf
from predictor.targets import Target
from tests.fakes import cluster_objects, exposition
from tests.fakes.exposition import MODEL, Line, histogram, level

CATALOG = shelf.load()

SERIAL = scrape.ScrapeSettings(workers=1)


class Pods:
    """Pods by name, each with its lines; a pod may be broken in a way the fetch shows."""

    def __init__(self, **pods: Sequence[Line]) -> None:
        self.lines: dict[str, Sequence[Line]] = dict(pods)
        self.broken: dict[str, Callable[[], str]] = {}
        self.now = 0.0

    def pages(self, target: Target) -> list[scrape.Page]:
        del target
        return [scrape.Page(name, f"http://{name}/metrics") for name in self.lines]

    def fetch(self, url: str) -> str:
        name = url.split("/")[2]
        return self.broken[name]() if name in self.broken else exposition.page(self.lines[name], at=self.now)


class Watch:
    """A source over pods, read at given times."""

    def __init__(self, pods: Pods, target: Target | None = None, **settings: float) -> None:
        self.pods = pods
        self.target = target or cluster_objects.target(model=MODEL)
        changed = dataclasses.replace(SERIAL, **settings)  # type: ignore[arg-type]
        self.source = scrape.ScrapeSource(changed, CATALOG, pages=pods.pages, fetch=pods.fetch)

    def at(self, now: float) -> Mapping[Signal, Reading]:
        self.pods.now = now
        return self.source.read([self.target], now=now)[self.target.key]


def value(reading: Reading) -> float:
    assert isinstance(reading, Known), reading
    return reading.value


def cause(reading: Reading) -> Cause:
    assert isinstance(reading, Unknown), reading
    return reading.cause


def failing(error: Exception) -> Callable[[], str]:
    def fetch() -> str:
        raise error

    return fetch


def vllm(first_tokens: float, waiting: float = 0.0, running: float = 0.0) -> list[Line]:
    own = {"model_name": MODEL, "engine": "0"}
    return [
        level("vllm:num_requests_running", running, **own),
        level("vllm:num_requests_waiting", waiting, **own),
        level("vllm:kv_cache_usage_perc", 0.5, **own),
        *histogram("vllm:time_to_first_token_seconds", {"+Inf": 0.0}, **own)[:-2],
        level("vllm:time_to_first_token_seconds_count", first_tokens, **own),
    ]
