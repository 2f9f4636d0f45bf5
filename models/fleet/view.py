"""The arrays of a pool as compiled code finds them: by address, from the pool's record.

So every function needs just the record. Passing the arrays instead costs a copy of eighty words a call, and two atomic
operations on the reference count of each.
"""

from numba import carray  # type: ignore[attr-defined]  # exported in fact, not in its stubs

from models.fleet import layout
from models.fleet.jit import Floats, Ints, Record, Records, compiled, pointer

WORD = 8
CACHED_SIZE = layout.CACHED.itemsize


@compiled
def replicas(p: Record) -> Records:
    """One record a slot."""
    return carray(pointer(p.replicas_at), (p.slots,), layout.REPLICA)


@compiled
def requests(p: Record) -> Records:
    """One record a request in flight."""
    return carray(pointer(p.requests_at), (p.requests_size,), layout.REQUEST)


@compiled
def when(p: Record) -> Floats:
    """Tournament over the slots: the next event of each, seconds."""
    return carray(pointer(p.when_at), (2 * p.leaves,), layout.FLOAT)


@compiled
def load(p: Record) -> Floats:
    """Tournament over the slots: how loaded each is for the router."""
    return carray(pointer(p.load_at), (2 * p.leaves,), layout.FLOAT)


@compiled
def retries(p: Record) -> Records:
    """Heap of requests that come back, by time."""
    return carray(pointer(p.retries_at), (p.requests_size,), layout.LIFE_EVENT)


@compiled
def deadlines(p: Record) -> Records:
    """Ring of the times at which clients give up."""
    return carray(pointer(p.deadlines_at), (p.deadlines_size,), layout.LIFE_EVENT)


@compiled
def scrape_row(p: Record, slot: int, row: int) -> Floats:
    """One scrape of one replica, shape (SCRAPE_COLUMNS,)."""
    at = p.scrapes_at + (slot * p.window + row) * layout.SCRAPE_COLUMNS * WORD
    return carray(pointer(at), (layout.SCRAPE_COLUMNS,), layout.FLOAT)


@compiled
def router_scrape_row(p: Record, row: int) -> Floats:
    """One scrape of the router: time, sent, waiting, in the system."""
    return carray(pointer(p.router_scrapes_at + row * 4 * WORD), (4,), layout.FLOAT)


@compiled
def life(p: Record) -> Records:
    """What happened to replicas since the loop was called."""
    return carray(pointer(p.life_at), (layout.MOST_LIFE_EVENTS,), layout.LIFE_EVENT)


@compiled
def cached(p: Record, slot: int, place: int) -> Record:
    """What a replica remembers of the sessions at a place of the hash."""
    at = p.cache_at + (slot * layout.CACHE_PLACES + place) * CACHED_SIZE
    return carray(pointer(at), (1,), layout.CACHED)[0]


@compiled
def home(p: Record, place: int) -> Ints:
    """The sessions' replicas, by place of the hash: session, slot, pod."""
    return carray(pointer(p.homes_at + place * 3 * WORD), (3,), layout.INT)


@compiled
def log(p: Record) -> Records:
    """One record a logged request."""
    return carray(pointer(p.log_at), (p.log_size,), layout.LOG)
