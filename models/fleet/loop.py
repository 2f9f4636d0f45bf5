"""The event loop of a pool: whatever comes next, replica, client or scrape, until a given time."""

from models.fleet import clients, living, queues, routing, scheduling, scraping, tree, view
from models.fleet.jit import Record, compiled
from models.fleet.layout import (
    DRAINING,
    GONE,
    LIFE,
    NEED_ARRIVALS,
    NEED_DEADLINES,
    NEED_REQUESTS,
    NEVER,
    NOTHING,
    REACHED,
    Chunk,
)


@compiled
def act(p: Record, t: float) -> None:
    """The next event of the slot that is first: the end of a step before a change of its life before a scrape."""
    r = tree.smallest(view.when(p))
    rep = view.replicas(p)[r]
    if rep.ends == t:
        scheduling.end_step(p, rep, t)
        if rep.phase == DRAINING and rep.running + rep.waiting == 0:
            living.go(p, r, GONE, t)
            return
        scheduling.plan(p, rep, t)
    elif rep.life_at == t:
        living.turn(p, r, t)
        return
    else:
        scraping.scrape(p, r, t)
    routing.update(p, r)


@compiled
def take(p: Record, chunk: Chunk, t: float) -> bool:
    """The next arrival. False when no request record is free."""
    i = queues.take_record(p)
    if i == NOTHING:
        return False
    k = p.next_arrival
    x = view.requests(p)[i]
    x.prompt, x.output = chunk.prompts[k], chunk.outputs[k]
    x.session, x.shared = chunk.sessions[k], chunk.shared[k]
    x.log = k if p.keeps_log == 1 else NOTHING
    p.next_arrival += 1
    clients.arrive(p, i, t)
    return True


@compiled
def clients_turn(p: Record) -> float:
    """When the next client gives up or comes back."""
    t = NEVER
    if p.ring_count > 0:
        t = view.deadlines(p)[p.ring_head].at
    if p.retry_count > 0:
        t = min(t, view.retries(p)[0].at)
    return t


@compiled
def client_acts(p: Record, t: float) -> None:
    """The client whose turn it is gives up, or comes back."""
    if p.ring_count > 0 and view.deadlines(p)[p.ring_head].at == t:
        clients.deadline(p, t)
    else:
        clients.come_back(p, t)


@compiled
def obey(p: Record) -> None:
    """Does what was asked of the slots between two calls."""
    for r in range(p.slots):
        if view.replicas(p)[r].command != living.NO_COMMAND:
            living.obey(p, r, p.now)


@compiled
def run(pool: Record, chunk: Chunk, to: float, more: int) -> int:
    """Lets time pass until `to`, or until somebody else has to do something; says which.

    Args:
        pool: the pool's records, shape (1,).
        chunk: arrivals, of which those before `next_arrival` are done.
        to: seconds.
        more: 1 when further chunks follow, so that the end of this one is no reason to go on without.
    """
    p = pool[0]
    obey(p)
    arrivals = chunk.times.shape[0]
    while p.life_count == 0:
        arrival = chunk.times[p.next_arrival] if p.next_arrival < arrivals else NEVER
        replica_at, client_at = view.when(p)[1], clients_turn(p)
        t = min(arrival, replica_at, client_at, p.router_scrape_at)
        if more == 1 and p.next_arrival == arrivals:
            return NEED_ARRIVALS
        if t > to:
            p.now = to
            return REACHED
        p.now = t
        if p.ring_count + 1 >= p.deadlines_size and p.timeout > 0:
            return NEED_DEADLINES
        if replica_at == t:
            act(p, t)
        elif client_at == t:
            client_acts(p, t)
        elif arrival == t:
            if not take(p, chunk, t):
                return NEED_REQUESTS
        else:
            scraping.scrape_router(p, t)
    return LIFE
