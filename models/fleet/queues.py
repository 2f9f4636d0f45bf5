"""Where requests stand: linked lists through the request records, and the list of free records."""

from models.fleet import view
from models.fleet.jit import Record, compiled
from models.fleet.layout import FREE, NOTHING, RETRYING, ROUTED, WAITING


@compiled
def take_record(p: Record) -> int:
    """A free request record; NOTHING when all are in use."""
    q = view.requests(p)
    if p.free_head != NOTHING:
        found: int = p.free_head
        p.free_head = q[found].next
        return found
    if p.requests_used == q.shape[0]:
        return NOTHING
    p.requests_used += 1
    last: int = p.requests_used - 1
    return last


@compiled
def free_record(p: Record, i: int) -> None:
    """Gives a request record back."""
    q = view.requests(p)
    q[i].state = FREE
    q[i].next = p.free_head
    p.free_head = i


@compiled
def wait_last(p: Record, rep: Record, i: int) -> None:
    """To the end of a replica's queue."""
    q = view.requests(p)
    x = q[i]
    x.state, x.next, x.prev = WAITING, NOTHING, rep.wait_tail
    if rep.wait_tail == NOTHING:
        rep.wait_head = i
    else:
        q[rep.wait_tail].next = i
    rep.wait_tail = i
    _count_waiting(p, rep, x.prompt + x.made, 1)


@compiled
def wait_first(p: Record, rep: Record, i: int) -> None:
    """To the front of a replica's queue: a preempted request."""
    q = view.requests(p)
    x = q[i]
    x.state, x.next, x.prev = WAITING, rep.wait_head, NOTHING
    if rep.wait_head == NOTHING:
        rep.wait_tail = i
    else:
        q[rep.wait_head].prev = i
    rep.wait_head = i
    _count_waiting(p, rep, x.prompt + x.made, 1)


@compiled
def leave_waiting(p: Record, rep: Record, i: int) -> None:
    """Out of a replica's queue, from wherever in it."""
    q = view.requests(p)
    x = q[i]
    if x.prev == NOTHING:
        rep.wait_head = x.next
    else:
        q[x.prev].next = x.next
    if x.next == NOTHING:
        rep.wait_tail = x.prev
    else:
        q[x.next].prev = x.prev
    _count_waiting(p, rep, x.prompt + x.made, -1)


@compiled
def _count_waiting(p: Record, rep: Record, tokens: int, change: int) -> None:
    rep.waiting += change
    rep.waiting_tokens += change * tokens
    p.peak_waiting = max(p.peak_waiting, rep.waiting)


@compiled
def route_last(p: Record, i: int) -> None:
    """To the end of the router's queue."""
    q = view.requests(p)
    x = q[i]
    x.state, x.replica, x.next, x.prev = ROUTED, NOTHING, NOTHING, p.router_tail
    if p.router_tail == NOTHING:
        p.router_head = i
    else:
        q[p.router_tail].next = i
    p.router_tail = i
    p.router_waiting += 1


@compiled
def leave_router(p: Record, i: int) -> None:
    """Out of the router's queue, from wherever in it."""
    q = view.requests(p)
    x = q[i]
    if x.prev == NOTHING:
        p.router_head = x.next
    else:
        q[x.prev].next = x.next
    if x.next == NOTHING:
        p.router_tail = x.prev
    else:
        q[x.next].prev = x.prev
    p.router_waiting -= 1


@compiled
def retry_later(p: Record, i: int, at: float) -> None:
    """Into the heap of requests that come back, by time. `retries` has room for every request record."""
    retries = view.retries(p)
    view.requests(p)[i].state = RETRYING
    place = p.retry_count
    p.retry_count += 1
    while place > 0:
        parent = (place - 1) >> 1
        if retries[parent].at <= at:
            break
        retries[place] = retries[parent]
        place = parent
    retries[place].at = at
    retries[place].slot = i


@compiled
def next_retry(p: Record) -> int:
    """Takes the request that comes back first."""
    retries = view.retries(p)
    first: int = retries[0].slot
    p.retry_count -= 1
    count = p.retry_count
    at, slot = retries[count].at, retries[count].slot
    place = 0
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and retries[child + 1].at < retries[child].at:
            child += 1
        if retries[child].at >= at:
            break
        retries[place] = retries[child]
        place = child
    retries[place].at = at
    retries[place].slot = slot
    return first
