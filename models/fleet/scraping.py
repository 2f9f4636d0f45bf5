"""What is seen of a pool from outside: each replica's page as of its last scrape, and the router's."""

from models.fleet import clients, replica, view
from models.fleet.jit import Floats, Record, compiled
from models.fleet.layout import (
    AT,
    NEVER,
    PAGE_BUCKETS,
    POD,
    SEEN_ARRIVED,
    SEEN_E2E,
    SEEN_E2E_SUM,
    SEEN_FINISHED,
    SEEN_ITL,
    SEEN_ITL_SUM,
    SEEN_KV,
    SEEN_PREEMPTED,
    SEEN_PROMPT,
    SEEN_RUNNING,
    SEEN_TOKENS,
    SEEN_TTFT,
    SEEN_TTFT_SUM,
    SEEN_WAITING,
    STRETCH,
)


@compiled
def write(p: Record, rep: Record, row: Floats, t: float) -> None:
    """The page of a replica at this moment, as one row."""
    taken, tokens = p.blocks - rep.free, rep.tokens
    if rep.mode == STRETCH:
        steps = min(int(replica.steps_at(p, rep, t)), rep.planned)
        taken += replica.growth(p, rep, steps)
        tokens += steps * rep.decoding
    row[AT], row[POD] = t, rep.pod
    row[SEEN_RUNNING], row[SEEN_WAITING], row[SEEN_KV] = rep.running, rep.waiting, taken / p.blocks
    row[SEEN_ARRIVED], row[SEEN_FINISHED], row[SEEN_PROMPT] = rep.arrived, rep.finished, rep.prompt_tokens
    row[SEEN_TOKENS], row[SEEN_PREEMPTED] = tokens, rep.preempted
    row[SEEN_TTFT_SUM], row[SEEN_ITL_SUM], row[SEEN_E2E_SUM] = rep.ttft_sum, rep.itl_sum, rep.e2e_sum
    for k in range(PAGE_BUCKETS):
        row[SEEN_TTFT + k] = rep.ttft[k]
        row[SEEN_ITL + k] = rep.itl[k]
        row[SEEN_E2E + k] = rep.e2e[k]


@compiled
def scrape(p: Record, r: int, t: float) -> None:
    """The next scrape of a replica; it may fail."""
    rep = view.replicas(p)[r]
    rep.scrapes += 1
    rep.scrape_at = t + p.scrape_interval
    lost = t < rep.mute_until or clients.uniform(p.seed, rep.pod, rep.scrapes) < p.scrape_loss
    if not lost:
        write(p, rep, view.scrape_row(p, r, rep.rows % p.window), t)
        rep.rows += 1


@compiled
def scrape_router(p: Record, t: float) -> None:
    """The next scrape of the router."""
    row = view.router_scrape_row(p, p.router_scrapes % p.window)
    row[0], row[1], row[2], row[3] = t, p.arrived + p.resent, p.router_waiting, p.in_system
    p.router_scrapes += 1
    p.router_scrape_at = t + p.scrape_interval if p.scrape_interval > 0 else NEVER
