"""One look at a pool's last scrapes, compiled: what `seen` reads page by page, for those who look a million times.

Per replica values are handed out rather than their sums where these are no whole numbers: they are added up by numpy as
in `seen`, so that both say the same bits.
"""

from models.fleet import view
from models.fleet.jit import Floats, Record, compiled
from models.fleet.layout import (
    AT,
    NOTHING,
    POD,
    READY,
    SCRAPE_COLUMNS,
    SEEN_ARRIVED,
    SEEN_FINISHED,
    SEEN_KV,
    SEEN_PROMPT,
    SEEN_RUNNING,
    SEEN_TOKENS,
    SEEN_WAITING,
)

# What a look finds of the pool as a whole; times in seconds. Sums are over the ready replicas' newest scrapes.
(
    REPLICAS, FRESH, OLDEST, RUNNING, WAITING, ROUTER_ROWS, ROUTER_FIRST, ROUTER_LAST, ROUTER_SENT, ROUTER_WAITING,
    NONE_READY, TWICE, TWICE_OLDEST,
) = range(13)  # fmt: skip
POOL_COLUMNS = 13
# What it finds of each ready replica, one row a kind; rises by those that were scraped twice in the window.
(
    EACH_SLOT, EACH_KNOWN, EACH_RUNNING, EACH_WAITING, EACH_KV, EACH_FIRST, EACH_LAST, EACH_ARRIVED, EACH_PROMPT,
    EACH_TOKENS, EACH_FINISHED,
) = range(11)  # fmt: skip
EACH_ROWS = 11


@compiled
def look_at_router(p: Record, since: float, found: Floats) -> None:
    """The oldest and the newest scrape of the router from `since` on, and how many there are."""
    rows, first, last = 0, NOTHING, NOTHING
    for k in range(min(p.router_scrapes, p.window)):
        at = view.router_scrape_row(p, k)[0]
        if at < since:
            continue
        rows += 1
        if first == NOTHING or at < view.router_scrape_row(p, first)[0]:
            first = k
        if last == NOTHING or at >= view.router_scrape_row(p, last)[0]:
            last = k
    found[ROUTER_ROWS] = rows
    if rows > 0:
        old, new = view.router_scrape_row(p, first), view.router_scrape_row(p, last)
        found[ROUTER_FIRST], found[ROUTER_LAST] = old[0], new[0]
        found[ROUTER_SENT], found[ROUTER_WAITING] = new[1] - old[1], new[2]


@compiled
def look_at_replica(p: Record, r: int, since: float, each: Floats, k: int) -> None:
    """The oldest scrape of a replica from `since` on, and its newest; NOTHING where there is none."""
    pod, first, last = view.replicas(p)[r].pod, NOTHING, NOTHING
    for row in range(p.window):
        scraped = view.scrape_row(p, r, row)
        if scraped[POD] != pod:
            continue
        if last == NOTHING or scraped[AT] > view.scrape_row(p, r, last)[AT]:
            last = row
        if scraped[AT] >= since and (first == NOTHING or scraped[AT] < view.scrape_row(p, r, first)[AT]):
            first = row
    each[EACH_SLOT, k], each[EACH_FIRST, k], each[EACH_LAST, k] = r, first, last


@compiled
def look(p: Record, window: float, stale: float, found: Floats, each: Floats) -> None:
    """Everything but the rises, as of now.

    Args:
        p: the pool's record.
        window: seconds that are looked back.
        stale: seconds after which a page counts as missing.
        found: of the pool, shape (POOL_COLUMNS,); written.
        each: of the ready replicas, shape (EACH_ROWS, slots); written.
    """
    look_at_router(p, p.now - window, found)
    n, fresh, twice, oldest, running, waiting = 0, 0, 0, p.now, 0.0, 0.0
    for r in range(p.slots):
        if view.replicas(p)[r].phase != READY:
            continue
        look_at_replica(p, r, p.now - window, each, n)
        first, last = int(each[EACH_FIRST, n]), int(each[EACH_LAST, n])
        each[EACH_KNOWN, n] = 0.0
        if last != NOTHING and p.now - view.scrape_row(p, r, last)[AT] <= stale:
            row = view.scrape_row(p, r, last)
            each[EACH_KNOWN, n] = 1.0
            each[EACH_RUNNING, n], each[EACH_WAITING, n] = row[SEEN_RUNNING], row[SEEN_WAITING]
            each[EACH_KV, n] = row[SEEN_KV]
            running += row[SEEN_RUNNING]
            waiting += row[SEEN_WAITING]
            oldest = min(oldest, row[AT])
            fresh += 1 if first != NOTHING else 0
            twice += 1 if first != last else 0
        n += 1
    found[REPLICAS], found[FRESH], found[OLDEST], found[TWICE] = n, fresh, oldest, twice
    found[RUNNING], found[WAITING] = running, waiting
    found[NONE_READY] = 1.0 if p.ready == 0 else 0.0


@compiled
def rises(p: Record, found: Floats, each: Floats, total: Floats) -> None:
    """How much each counter rose in the window: a second of each replica scraped twice, and of all together.

    `found` and `each` are those of a look at this moment in which all pages were fresh; `total` has shape
    (SCRAPE_COLUMNS,) and is written.
    """
    total[:] = 0.0
    m, oldest = 0, p.now
    for k in range(int(found[REPLICAS])):
        r, first, last = int(each[EACH_SLOT, k]), int(each[EACH_FIRST, k]), int(each[EACH_LAST, k])
        if first == last:
            continue
        old, new = view.scrape_row(p, r, first), view.scrape_row(p, r, last)
        seconds = new[AT] - old[AT]
        each[EACH_ARRIVED, m] = (new[SEEN_ARRIVED] - old[SEEN_ARRIVED]) / seconds
        each[EACH_PROMPT, m] = (new[SEEN_PROMPT] - old[SEEN_PROMPT]) / seconds
        each[EACH_TOKENS, m] = (new[SEEN_TOKENS] - old[SEEN_TOKENS]) / seconds
        each[EACH_FINISHED, m] = (new[SEEN_FINISHED] - old[SEEN_FINISHED]) / seconds
        for column in range(SCRAPE_COLUMNS):
            total[column] += new[column] - old[column]
        oldest = min(oldest, new[AT])
        m += 1
    found[TWICE_OLDEST] = oldest
