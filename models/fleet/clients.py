"""What clients do: they give up when the first token takes too long, and come back."""

from models.fleet import measuring, queues, routing, scheduling, view
from models.fleet.jit import Record, compiled
from models.fleet.layout import (
    NOTHING,
    RETRYING,
    ROUTED,
    WAITING,
)


@compiled
def uniform(seed: int, a: int, b: int) -> float:
    """A number in 0..1 from a seed and two counters: the same whenever it is asked for (a 64-bit mix)."""
    z = seed * 0x9E3779B97F4A7C1 + a * 0x632BE59BD9B4E01 + b * 0x7F4A7C15D1B54A3
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * 0x3F58476D1CE4E5B9
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * 0x14D049BB133111EB
    z = z ^ ((z >> 31) & 0x1FFFFFFFF)
    return (z & 0x1FFFFFFFFFFFFF) / 9007199254740992.0


@compiled
def send(p: Record, i: int, t: float) -> None:
    """A try arrives: a deadline for its first token, and to the router. The ring of deadlines must have room."""
    x = view.requests(p)[i]
    x.sent, x.first, x.made, x.done = t, -1.0, 0, 0
    p.sequence += 1
    x.sequence = p.sequence
    if p.timeout > 0:
        place = (p.ring_head + p.ring_count) % p.deadlines_size
        view.deadlines(p)[place].at = t + p.timeout
        view.deadlines(p)[place].slot = i
        view.deadlines(p)[place].kind = x.sequence
        p.ring_count += 1
    routing.route(p, i, t)
    measuring.supply(p, t)


@compiled
def refuse(p: Record, i: int, t: float) -> None:
    """A request that no replica can ever hold, or that finds the router's queue full."""
    p.rejected += 1
    measuring.in_system(p, -1, t)
    queues.free_record(p, i)


@compiled
def arrive(p: Record, i: int, t: float) -> None:
    """A new request."""
    x = view.requests(p)[i]
    x.arrived, x.tries, x.met, x.last = t, 0, NOTHING, t
    p.arrived += 1
    measuring.in_system(p, 1, t)
    if scheduling.never_fits(p, x) or (p.ready == 0 and p.router_waiting >= p.router_room):
        refuse(p, i, t)
    else:
        send(p, i, t)


@compiled
def give_up(p: Record, i: int, t: float) -> bool:
    """The try failed: the client comes back after a pause that doubles, with jitter. False when it has tried enough."""
    x = view.requests(p)[i]
    x.state = RETRYING
    x.sequence = NOTHING  # its deadline, if any, is no longer its own
    if x.tries >= p.retries:
        return False
    x.tries += 1
    pause = p.backoff * 2.0 ** (x.tries - 1) * (0.5 + uniform(p.seed, p.sequence, i))
    queues.retry_later(p, i, t + pause)
    return True


@compiled
def come_back(p: Record, t: float) -> None:
    """The next request that was to come back does."""
    i = queues.next_retry(p)
    p.resent += 1
    send(p, i, t)


@compiled
def lose(p: Record, i: int, t: float) -> None:
    """A try that ended with its replica: the client comes back, or the request has failed."""
    if give_up(p, i, t):
        return
    p.failed += 1
    forget(p, i, t)


@compiled
def forget(p: Record, i: int, t: float) -> None:
    """A request that will never be answered counts as that alone, even if an earlier try had its first token."""
    x = view.requests(p)[i]
    p.met -= 1 if x.met == 1 else 0
    p.late -= 1 if x.met == 0 else 0
    measuring.in_system(p, -1, t)
    queues.free_record(p, i)


@compiled
def deadline(p: Record, t: float) -> None:
    """The oldest deadline passes; whoever still waits for a place in a batch gives up."""
    entry = view.deadlines(p)[p.ring_head]
    i = entry.slot
    p.ring_head = (p.ring_head + 1) % p.deadlines_size
    p.ring_count -= 1
    x = view.requests(p)[i]
    if x.sequence != entry.kind:
        return
    if x.state == ROUTED:
        queues.leave_router(p, i)
    elif x.state == WAITING and x.first < 0:
        rep = view.replicas(p)[x.replica]
        queues.leave_waiting(p, rep, i)
        if rep.waiting == 0:
            measuring.blocked(p, rep, 0, t)
        scheduling.cut(p, rep, t)
        routing.update(p, x.replica)
    else:
        return
    if not give_up(p, i, t):
        p.timed_out += 1
        forget(p, i, t)
    measuring.supply(p, t)
