"""The life of a replica as the pool feels it: it becomes ready, drains, crashes and goes."""

from models.fleet import clients, measuring, queues, routing, view
from models.fleet.jit import Record, compiled
from models.fleet.layout import (
    BECAME_READY,
    CRASHED,
    DRAINING,
    EMPTY,
    GONE,
    IDLE,
    NEVER,
    NOTHING,
    READY,
    STARTING,
)

NO_COMMAND, SETTLE, DRAIN, KILL = 0, 1, 2, 3


@compiled
def note(p: Record, r: int, kind: int, t: float) -> None:
    """Tells whoever called the loop."""
    event = view.life(p)[p.life_count]
    event.at, event.slot, event.kind = t, r, kind
    p.life_count += 1


@compiled
def clear(p: Record, rep: Record) -> None:
    """An engine without a single request."""
    rep.mode, rep.ends, rep.planned = IDLE, NEVER, 0
    rep.running, rep.decoding, rep.completing, rep.context = 0, 0, 0, 0
    rep.partial, rep.run_tail, rep.free = NOTHING, NOTHING, p.blocks
    rep.phases[:] = 0


@compiled
def become_ready(p: Record, r: int, t: float) -> None:
    """Serves from now on, and is scraped; what waits in the router is sent on."""
    rep = view.replicas(p)[r]
    rep.phase, rep.life_at = READY, rep.crash_at
    if p.scrape_interval > 0:
        rep.scrape_at = t + p.scrape_interval * clients.uniform(p.seed, rep.pod, -1)
    p.ready += 1
    note(p, r, BECAME_READY, t)
    routing.update(p, r)
    routing.release(p, t)
    measuring.supply(p, t)


@compiled
def retire_from_router(p: Record, rep: Record, t: float) -> None:
    """Takes no more requests."""
    if rep.phase == READY:
        p.ready -= 1
        p.blocked -= rep.blocked
        measuring.supply(p, t)


@compiled
def drain(p: Record, r: int, t: float) -> None:
    """Takes no more requests, finishes what it has, and goes then or at its deadline."""
    rep = view.replicas(p)[r]
    retire_from_router(p, rep, t)
    rep.phase, rep.life_at = DRAINING, rep.drain_until
    if rep.running + rep.waiting == 0:
        go(p, r, GONE, t)


@compiled
def go(p: Record, r: int, kind: int, t: float) -> None:
    """The slot is empty; the clients of whatever it still had see an error."""
    rep = view.replicas(p)[r]
    retire_from_router(p, rep, t)
    rep.phase, rep.life_at, rep.scrape_at, rep.blocked = EMPTY, NEVER, NEVER, 0
    while rep.wait_head != NOTHING:
        i = rep.wait_head
        queues.leave_waiting(p, rep, i)
        clients.lose(p, i, t)
    i = rep.run_tail
    while i != NOTHING:
        before = view.requests(p)[i].prev
        clients.lose(p, i, t)
        i = before
    clear(p, rep)
    note(p, r, kind, t)
    routing.update(p, r)


@compiled
def turn(p: Record, r: int, t: float) -> None:
    """The moment for which the life of the slot was waiting."""
    rep = view.replicas(p)[r]
    if rep.phase == STARTING:
        become_ready(p, r, t)
    elif rep.phase == READY:
        go(p, r, CRASHED, t)
    else:
        go(p, r, GONE, t)


@compiled
def obey(p: Record, r: int, t: float) -> None:
    """What was asked of the slot between two calls of the loop."""
    rep = view.replicas(p)[r]
    command, rep.command = rep.command, NO_COMMAND
    if command == DRAIN:
        drain(p, r, t)
    elif command == KILL:
        go(p, r, GONE, t)
    routing.update(p, r)
