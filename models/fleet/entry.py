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
    layout,
    living,
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


@functools.cache
def run() -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    """The loop as a function of (pool, chunk, to, more), see `loop.run`.

    Compiled when first asked for, which takes twenty seconds of one core, and a second once it is kept on disk.
    """
    return _build(fingerprint())


def _signature() -> Any:  # noqa: ANN401  (numba's types are of no use to mypy)
    types: Any = numba.types
    number, integer = types.Array(types.float64, 1, "C"), types.Array(types.int64, 1, "C")
    chunk = types.NamedTuple((number, integer, integer, integer, integer), layout.Chunk)
    pool = types.Array(numba.from_dtype(layout.POOL), 1, "C")
    return types.int64(pool, chunk, types.float64, types.int64)


def _build(sources: str) -> Any:  # noqa: ANN401  (what numba returns has no type of its own)
    def run(pool: Any, chunk: Any, to: float, more: int) -> int:  # noqa: ANN401  (numpy records)
        if sources == "":  # closed over, so that the kept code is another one when any source changed
            return -1
        return loop.run(pool, chunk, to, more)

    return entry(_signature(), run)
