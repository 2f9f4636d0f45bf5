"""One look at a pool's last scrapes, compiled: what `seen` reads page by page, for those who look a million times.

It says the same bits as `seen`, so it adds up in the same order: numpy's, which is not from left to right.
"""

import math

import numpy as np

from models.fleet import latency, view
from models.fleet.jit import Floats, Record, compiled
from models.fleet.layout import (
    AT,
    NOTHING,
    PAGE_BUCKETS,
    POD,
    READY,
    SCRAPE_COLUMNS,
    SEEN_ARRIVED,
    SEEN_E2E,
    SEEN_E2E_SUM,
    SEEN_FINISHED,
    SEEN_ITL,
    SEEN_KV,
    SEEN_PROMPT,
    SEEN_RUNNING,
    SEEN_TOKENS,
    SEEN_TTFT,
    SEEN_WAITING,
)

# What a look finds of the pool as a whole; times in seconds. Sums are over the ready replicas' newest scrapes.
(
    REPLICAS, FRESH, OLDEST, RUNNING, WAITING, KV, ROUTER_ROWS, ROUTER_FIRST, ROUTER_LAST, ROUTER_SENT, ROUTER_WAITING,
    NONE_READY, TWICE,
) = range(13)  # fmt: skip
# What the rises say: since when all are known, sums of rates, 95th percentiles and a mean (NaN of nothing).
TWICE_OLDEST, ARRIVED, PROMPT, TOKENS, FINISHED, TTFT, ITL, DURATION = range(13, 21)
POOL_COLUMNS = 21
# What it finds of each ready replica, one row a kind; rates by those that were scraped twice in the window.
(
    EACH_SLOT, EACH_KNOWN, EACH_RUNNING, EACH_WAITING, EACH_KV, EACH_FIRST, EACH_LAST, EACH_ARRIVED, EACH_PROMPT,
    EACH_TOKENS, EACH_FINISHED,
) = range(11)  # fmt: skip
EACH_ROWS = 11
QUANTILE = 0.95
TTFT_BOUNDS, ITL_BOUNDS = np.array(latency.TTFT_BOUNDS), np.array(latency.ITL_BOUNDS)
BLOCK = 128  # values up to which numpy adds in one go; sums of more are left to it


@compiled
def added(values: Floats, n: int) -> float:
    """The sum of the first n values, a block at most, as numpy has it: by eights."""
    whole, found = n - n % 8, 0.0
    if whole:
        a, b, c, d, e, f, g, h = values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7]
        for k in range(8, whole, 8):
            a, b, c, d = a + values[k], b + values[k + 1], c + values[k + 2], d + values[k + 3]
            e, f, g, h = e + values[k + 4], f + values[k + 5], g + values[k + 6], h + values[k + 7]
        found = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for k in range(whole, n):
        found += values[k]
    return found


@compiled
def quantile(total: Floats, column: int, bounds: Floats) -> float:
    """As `seen.page_quantile`, over the histogram from a column on; NaN where nothing was measured."""
    count = 0.0
    for k in range(bounds.shape[0] + 1):
        count += total[column + k]
    if count == 0:
        return math.nan
    below, lower, wanted = 0.0, 0.0, QUANTILE * count
    for k in range(bounds.shape[0]):
        here = total[column + k]
        if below + here >= wanted:
            return lower + (bounds[k] - lower) * ((wanted - below) / here)
        below += here
        lower = bounds[k]
    return lower


@compiled
def mean_duration(total: Floats) -> float:
    """As `seen.mean_duration`; NaN where nothing finished."""
    finished = 0.0
    for k in range(PAGE_BUCKETS):
        finished += total[SEEN_E2E + k]
    return total[SEEN_E2E_SUM] / finished if finished > 0 else math.nan


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
    found[KV] = added(each[EACH_KV], n) / n if fresh == n <= BLOCK else math.nan
    found[NONE_READY] = 1.0 if p.ready == 0 else 0.0


@compiled
def rises(p: Record, found: Floats, each: Floats, total: Floats) -> None:
    """What the counters' rises in the window say: rates, quantiles, a mean; over the replicas scraped twice in it.

    `found` and `each` are those of a look at this moment in which all pages were fresh, and are written; `total` is
    room for the rises of all together, shape (SCRAPE_COLUMNS,).
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
    if m <= BLOCK:
        found[ARRIVED], found[PROMPT] = added(each[EACH_ARRIVED], m), added(each[EACH_PROMPT], m)
        found[TOKENS], found[FINISHED] = added(each[EACH_TOKENS], m), added(each[EACH_FINISHED], m)
    found[TTFT], found[ITL] = quantile(total, SEEN_TTFT, TTFT_BOUNDS), quantile(total, SEEN_ITL, ITL_BOUNDS)
    found[DURATION] = mean_duration(total)
