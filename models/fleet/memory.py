"""Making and growing the memory of a pool."""

import dataclasses
from typing import Any

import numpy as np

from models.fleet import latency, layout
from models.fleet.layout import NEVER, NOTHING, Memory
from models.fleet.profiles import MILLISECOND, Profile

ROUTERS = {
    "round-robin": layout.ROUND_ROBIN,
    "least-in-flight": layout.LEAST_IN_FLIGHT,
    "least-tokens": layout.LEAST_TOKENS,
    "prefix-affine": layout.PREFIX_AFFINE,
}


@dataclasses.dataclass(frozen=True, slots=True)
class PoolSettings:
    """How a pool is run.

    Attributes:
        ttft_objective: seconds to the first token beyond which a request counts as missed.
        router: "round-robin", "least-in-flight", "least-tokens" (KV in use and queued, over capacity) or
            "prefix-affine".
        affinity_slack: requests by which a session's replica may exceed the least loaded before the session moves.
        router_room: requests that may wait in the router; further ones are refused.
        timeout: seconds without a first token after which a client gives up a try; None for never.
        retries: how often a client comes back after a try that failed.
        backoff: seconds before it does, doubled each time, with jitter of half.
        scrape_interval: seconds between two scrapes of a page; None for no scrapes.
        scrape_window: seconds of scrapes that are kept for rates.
        scrape_loss: share of scrapes that fail.
        seed: of everything drawn in the pool.
    """

    ttft_objective: float = 1.0
    router: str = "least-in-flight"
    affinity_slack: float = 4.0
    router_room: int = 1_000_000
    timeout: float | None = 60.0
    retries: int = 0
    backoff: float = 1.0
    scrape_interval: float | None = 15.0
    scrape_window: float = 120.0
    scrape_loss: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.router not in ROUTERS:
            raise ValueError(f"router is {self.router!r}: must be one of {', '.join(ROUTERS)}")
        for name in ("ttft_objective", "timeout", "backoff", "scrape_interval", "scrape_window"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value!r} s: must be positive")
        if not 0 <= self.scrape_loss <= 1:
            raise ValueError(f"scrape_loss is {self.scrape_loss!r}: must lie in 0..1")
        if not 0 <= self.retries < 32:  # noqa: PLR2004  (2^32 times the back-off is no pause any more)
            raise ValueError(f"retries is {self.retries!r}: must lie in 0..31")


def allocate(profile: Profile, settings: PoolSettings, *, start: float, logged: int = 0) -> Memory:
    """The memory of an empty pool at the time `start`; with a log of the first `logged` requests."""
    pool = np.zeros(1, layout.POOL)
    _constants(pool[0], profile, settings)
    p = pool[0]
    p["now"] = p["area_at"] = p["last_end"] = start
    p["router_scrape_at"] = start + settings.scrape_interval if settings.scrape_interval else NEVER
    for name in ("free_head", "router_head", "router_tail"):
        p[name] = NOTHING
    p["keeps_log"] = int(logged > 0)
    log = np.zeros(max(logged, 1), layout.LOG)
    log["first"] = log["end"] = log["scheduled"] = np.nan
    empty = Memory(
        pool,
        np.zeros(0, layout.REPLICA),
        np.zeros(1024, layout.REQUEST),
        np.full((2, 2), NEVER),
        np.zeros(1024, layout.LIFE_EVENT),
        np.zeros(1024, layout.LIFE_EVENT),
        np.zeros((0, int(p["window"]), layout.SCRAPE_COLUMNS)),
        np.zeros((int(p["window"]), 4)),
        np.zeros(layout.MOST_LIFE_EVENTS, layout.LIFE_EVENT),
        np.zeros((0, layout.CACHE_PLACES if profile.prefix_caching else 1), layout.CACHED),
        np.full((layout.CACHE_PLACES if settings.router == "prefix-affine" else 1, 3), NOTHING, np.int64),
        log,
    )
    return with_slots(empty, 4)


def _constants(p: Any, profile: Profile, settings: PoolSettings) -> None:  # noqa: ANN401  (a numpy record)
    law = profile.law
    p["fixed"], p["w4"] = (law.a + law.overhead) * MILLISECOND, (law.w * MILLISECOND) ** 4
    for name in ("d", "b", "c", "q", "alpha0"):
        p[name] = getattr(law, name) * MILLISECOND
    n = np.arange(layout.MOST_SEQUENCES + 1)
    p["base"] = p["fixed"] + (p["w4"] + (p["d"] * n) ** 4) ** 0.25 + p["b"] * n
    p["blocks"], p["shift"], p["mask"] = profile.blocks, profile.block.bit_length() - 1, profile.block - 1
    p["budget"], p["max_seqs"] = profile.token_budget, profile.max_num_seqs
    p["reserve_prompt"], p["prefix"] = int(profile.reserve_prompt), int(profile.prefix_caching)
    p["ahead"] = int(profile.async_scheduling)
    p["router"], p["router_room"] = ROUTERS[settings.router], settings.router_room
    p["affinity_slack"], p["retries"], p["backoff"] = settings.affinity_slack, settings.retries, settings.backoff
    p["objective"], p["timeout"] = settings.ttft_objective, settings.timeout or 0
    p["scrape_interval"], p["scrape_loss"] = settings.scrape_interval or 0, settings.scrape_loss
    p["window"] = int(np.ceil(settings.scrape_window / (settings.scrape_interval or settings.scrape_window))) + 2
    p["seed"] = settings.seed
    p["bucket_of"] = latency.bucket_table()


def blank_replica(slot: int, blocks: int) -> Any:  # noqa: ANN401  (a numpy record)
    """The record of an empty slot."""
    rep = np.zeros(1, layout.REPLICA)[0]
    rep["slot"], rep["free"] = slot, blocks
    for name in ("ends", "life_at", "scrape_at", "crash_at", "drain_until"):
        rep[name] = NEVER
    for name in ("partial", "run_tail", "wait_head", "wait_tail"):
        rep[name] = NOTHING
    return rep


def with_slots(m: Memory, slots: int) -> Memory:
    """The same with room for more replicas."""
    have = len(m.replicas)
    more = slots - have
    fresh = np.array([blank_replica(slot, int(m.pool[0]["blocks"])) for slot in range(have, slots)], layout.REPLICA)
    m.pool[0]["slots"] = slots
    return m._replace(
        replicas=np.concatenate([m.replicas, fresh]),
        trees=_trees(m.trees, slots),
        scrapes=np.concatenate([m.scrapes, np.full((more, *m.scrapes.shape[1:]), np.nan)]),
        cache=np.concatenate([m.cache, np.zeros((more, m.cache.shape[1]), layout.CACHED)]),
    )


def _trees(old: np.ndarray[Any, np.dtype[np.float64]], slots: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    leaves = max(2, 1 << (slots - 1).bit_length())
    trees = np.full((2, 2 * leaves), NEVER)
    had = old.shape[1] // 2
    trees[:, leaves : leaves + had] = old[:, had:]
    for node in range(leaves - 1, 0, -1):
        trees[:, node] = np.minimum(trees[:, 2 * node], trees[:, 2 * node + 1])
    return trees


def bind(m: Memory) -> None:
    """Writes into the pool's record where its arrays are; needed after any of them was replaced."""
    p = m.pool[0]
    for name in ("replicas", "requests", "retries", "deadlines", "scrapes", "router_scrapes", "life", "cache", "homes"):
        p[f"{name}_at"] = getattr(m, name).ctypes.data
    p["log_at"] = m.log.ctypes.data
    p["when_at"], p["load_at"] = m.trees[0].ctypes.data, m.trees[1].ctypes.data
    p["leaves"] = m.trees.shape[1] // 2
    p["requests_size"], p["deadlines_size"], p["log_size"] = len(m.requests), len(m.deadlines), len(m.log)


def with_requests(m: Memory) -> Memory:
    """The same with room for twice as many requests in flight. Raises MemoryError beyond 2^24."""
    have = len(m.requests)
    if 2 * have > 1 << layout.ID_BITS:
        raise MemoryError(f"{have} requests in flight: give clients a time-out, or the pool more replicas")
    return m._replace(
        requests=np.concatenate([m.requests, np.zeros(have, layout.REQUEST)]),
        retries=np.concatenate([m.retries, np.zeros(have, layout.LIFE_EVENT)]),
    )


def with_deadlines(m: Memory) -> Memory:
    """The same with room for twice as many deadlines."""
    p = m.pool[0]
    turned = np.roll(m.deadlines, -int(p["ring_head"]))
    p["ring_head"] = 0
    return m._replace(deadlines=np.concatenate([turned, np.zeros(len(turned), layout.LIFE_EVENT)]))
