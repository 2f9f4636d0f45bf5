"""The compiled loop, ready to be called."""

import functools
import hashlib
import inspect
from types import ModuleType
from typing import Any

import numba

from models.fleet import (
    clients,
    heap,
    jit,
    latency,
    layout,
    living,
    looking,
    loop,
    measuring,
    prefixes,
    queues,
    replica,
    routing,
    scheduling,
    scraping,
    tree,
    view,
)
from models.fleet.jit import entry

MODULES = (
    clients, heap, jit, layout, living, loop, measuring, prefixes, queues, replica, routing, scheduling, scraping, tree,
    view,
)  # fmt: skip


def fingerprint(modules: tuple[ModuleType, ...] = MODULES) -> str:
    """Of the sources. Numba looks only at the file of the function it keeps, not at what that calls."""
    return hashlib.sha256("".join(map(inspect.getsource, modules)).encode()).hexdigest()


LOOKING = (jit, latency, layout, looking, view)


@functools.cache
def run() -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    """The loop as a function of (pool, chunk, to, more), see `loop.run`.

    Compiled when first asked for, which takes twenty seconds of one core, and a second once it is kept on disk.
    """
    return _build(fingerprint())


@functools.cache
def look() -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    """A look as a function of (pool, window, stale, found, each), see `looking.look`."""
    return _build_look(fingerprint(LOOKING))


@functools.cache
def rises() -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    """The counters' rises as a function of (pool, found, each, total), see `looking.rises`."""
    return _build_rises(fingerprint(LOOKING))


def _signature() -> Any:  # noqa: ANN401  (numba's types are of no use to mypy)
    types: Any = numba.types
    number, integer = types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C")
    chunk = types.NamedTuple((number, integer, integer, integer, integer), layout.Chunk)
    return types.int64(_pool(), chunk, types.float64, types.int64)


def _pool() -> Any:  # noqa: ANN401  (numba's types are of no use to mypy)
    types: Any = numba.types
    return types.Array(numba.from_dtype(layout.POOL), 1, "C")


def _build(sources: str) -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    def run(pool: Any, chunk: Any, to: float, more: int) -> int:  # noqa: ANN401  (numpy records)
        if sources == "":  # closed over, so that the kept code is another one when any source changed
            return -1
        return loop.run(pool, chunk, to, more)

    return entry(_signature(), run)


def _build_look(sources: str) -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    def look(pool: Any, window: float, stale: float, found: Any, each: Any) -> int:  # noqa: ANN401  (numpy arrays)
        if sources == "":
            return -1
        looking.look(pool[0], window, stale, found, each)
        return 0

    types: Any = numba.types
    row, table = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
    return entry(types.int64(_pool(), types.float64, types.float64, row, table), look)


def _build_rises(sources: str) -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    def rises(pool: Any, found: Any, each: Any, total: Any) -> int:  # noqa: ANN401  (numpy arrays)
        if sources == "":
            return -1
        looking.rises(pool[0], found, each, total)
        return 0

    types: Any = numba.types
    row, table = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
    return entry(types.int64(_pool(), row, table, row), rises)
