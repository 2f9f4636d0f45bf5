"""The router: which replica gets a request, and what waits while none is ready."""

from models.fleet import queues, scheduling, tree, view
from models.fleet.jit import Record, compiled
from models.fleet.layout import (
    LEAST_TOKENS,
    NEVER,
    NOTHING,
    PREFIX_AFFINE,
    READY,
    ROUND_ROBIN,
)
from models.fleet.prefixes import place_of

WHEN, LOAD = 0, 1
TIE = 2.0**-40  # of equals the one picked longest ago, as proxies do: below any difference of one request


@compiled
def update(p: Record, r: int) -> None:
    """After anything happened in slot r: when it acts next, and how loaded it is."""
    rep = view.replicas(p)[r]
    tree.place(view.when(p), r, min(rep.ends, rep.life_at, rep.scrape_at))
    load = NEVER
    if rep.phase == READY:
        load = float(rep.running + rep.waiting)
        if p.router == LEAST_TOKENS:
            load = (((p.blocks - rep.free) << p.shift) + rep.waiting_tokens) / (p.blocks << p.shift)
        load += rep.last_pick * TIE
    tree.place(view.load(p), r, load)


@compiled
def next_in_turn(p: Record) -> int:
    """Round robin over the ready slots."""
    for _ in range(p.slots):
        p.turn = p.turn + 1 if p.turn + 1 < p.slots else 0
        if view.replicas(p)[p.turn].phase == READY:
            break
    return p.turn


@compiled
def home(p: Record, session: int) -> int:
    """The replica that served the session last, unless it is far more loaded than the mean; else the least loaded."""
    row = view.home(p, place_of(session))
    least = tree.smallest(view.load(p))
    if row[0] == session:
        rep = view.replicas(p)[row[1]]
        if rep.phase == READY and rep.pod == row[2]:
            least_rep = view.replicas(p)[least]
            if rep.running + rep.waiting <= least_rep.running + least_rep.waiting + p.affinity_slack:
                return row[1]
    row[0], row[1], row[2] = session, least, view.replicas(p)[least].pod
    return least


@compiled
def pick(p: Record, session: int) -> int:
    """The replica for a request; there must be a ready one."""
    if p.router == ROUND_ROBIN:
        return next_in_turn(p)
    if p.router == PREFIX_AFFINE and session >= 0:
        return home(p, session)
    return tree.smallest(view.load(p))


@compiled
def route(p: Record, i: int, t: float) -> None:
    """Sends a request to a replica, or lets it wait in the router."""
    q = view.requests(p)
    if p.ready == 0:
        queues.route_last(p, i)
        return
    r = pick(p, q[i].session)
    rep = view.replicas(p)[r]
    q[i].replica, q[i].queued = r, t
    p.sequence += 1
    rep.last_pick = p.sequence
    rep.arrived += 1
    queues.wait_last(p, rep, i)
    if rep.waiting == 1:
        scheduling.cut(p, rep, t)
    update(p, r)


@compiled
def release(p: Record, t: float) -> None:
    """Sends on what waits in the router, oldest first: a replica has become ready."""
    while p.router_head != NOTHING:
        i = p.router_head
        queues.leave_router(p, i)
        route(p, i, t)
