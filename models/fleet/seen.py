"""What an autoscaler can know of a pool: readings from the last scrapes, with their age, or unknown with a cause."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from models.fleet import latency, layout
from models.fleet.pool import Pool
from models.series import Floats
from models.signals import Cause, Known, Reading, Signal, Unknown

STALE = 2.5  # scrape intervals after which a page counts as missing: one failed scrape is no gap


@dataclasses.dataclass(frozen=True, slots=True)
class Sight:
    """How a pool is looked at.

    Attributes:
        window: seconds over which rates and quantiles are taken.
        router: whether the router's own counters are scraped; else arrivals are what reached the replicas, and what
            waits in the router is not seen.
    """

    window: float = 60.0
    router: bool = True


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Scrapes of one ready replica inside the window, oldest first, shape (n, SCRAPE_COLUMNS); n may be 0."""

    slot: int
    rows: Floats

    @property
    def last(self) -> Floats:
        """The newest scrape."""
        newest: Floats = self.rows[-1]
        return newest


def pages(pool: Pool, *, window: float) -> list[Page]:
    """The ready replicas' scrapes that are not older than `window`, seconds."""
    m, now = pool.memory, pool.now
    found = []
    for slot in np.flatnonzero(m.replicas["phase"] == layout.READY):
        rows = m.scrapes[slot]
        own = rows[(rows[:, layout.POD] == m.replicas[slot]["pod"]) & (rows[:, layout.AT] >= now - window)]
        found.append(Page(int(slot), own[np.argsort(own[:, layout.AT], kind="stable")]))
    return found


def readings(pool: Pool, sight: Sight) -> dict[Signal, Reading]:
    """Everything that can be seen of a pool now."""
    interval = pool.settings.scrape_interval
    if interval is None:
        return dict.fromkeys(Signal, Unknown(Cause.NOT_ASKED, "nothing is scraped"))
    every = pages(pool, window=max(sight.window, STALE * interval))
    fresh = [page for page in every if len(page.rows) and pool.now - page.last[layout.AT] <= STALE * interval]
    if len(fresh) < len(every):
        cause = Unknown(Cause.PARTIAL, f"{len(fresh)} of {len(every)} ready replicas were scraped")
        return dict.fromkeys(Signal, cause) | of_router(pool, sight)
    if not every:
        return dict.fromkeys(Signal, Unknown(Cause.EMPTY, "no replica is ready")) | of_router(pool, sight)
    return _gauges(fresh) | _rates(fresh) | of_router(pool, sight)


def _gauges(fresh: list[Page]) -> dict[Signal, Reading]:
    last = np.array([page.last for page in fresh])
    at = float(last[:, layout.AT].min())
    running, waiting = last[:, layout.SEEN_RUNNING].sum(), last[:, layout.SEEN_WAITING].sum()
    return {
        Signal.IN_FLIGHT: Known(float(running), at),
        Signal.WAITING: Known(float(waiting), at),
        Signal.KV_USAGE: Known(float(last[:, layout.SEEN_KV].mean()), at),
    }


def _rates(fresh: list[Page]) -> dict[Signal, Reading]:
    spans = [page.rows for page in fresh if len(page.rows) > 1]
    if not spans:
        return dict.fromkeys(
            (
                Signal.ARRIVALS,
                Signal.TOKENS_IN,
                Signal.TOKENS_OUT,
                Signal.COMPLETIONS,
                Signal.TTFT_P95,
                Signal.ITL_P95,
                Signal.DURATION_MEAN,
            ),
            Unknown(Cause.EMPTY, "no replica was scraped twice"),
        )
    at = float(min(rows[-1, layout.AT] for rows in spans))
    rises = np.array([rows[-1] - rows[0] for rows in spans])
    seconds = rises[:, layout.AT]
    total = rises.sum(axis=0)

    def rate(column: int) -> Reading:
        return Known(float((rises[:, column] / seconds).sum()), at)

    return {
        Signal.ARRIVALS: rate(layout.SEEN_ARRIVED),
        Signal.TOKENS_IN: rate(layout.SEEN_PROMPT),
        Signal.TOKENS_OUT: rate(layout.SEEN_TOKENS),
        Signal.COMPLETIONS: rate(layout.SEEN_FINISHED),
        Signal.TTFT_P95: page_quantile(total, layout.SEEN_TTFT, latency.TTFT_BOUNDS, at),
        Signal.ITL_P95: page_quantile(total, layout.SEEN_ITL, latency.ITL_BOUNDS, at),
        Signal.DURATION_MEAN: mean_duration(total, at),
    }


def mean_duration(total: Floats, at: float) -> Reading:
    """From the counters' rises, columns of a scrape: the mean time to the last token."""
    finished = total[layout.SEEN_E2E : layout.SEEN_E2E + layout.PAGE_BUCKETS].sum()
    if finished == 0:
        return Unknown(Cause.EMPTY, "no request finished")
    return Known(float(total[layout.SEEN_E2E_SUM] / finished), at)


def page_quantile(total: Floats, column: int, bounds: tuple[float, ...], at: float, q: float = 0.95) -> Reading:
    """As PromQL's histogram_quantile: even within a bucket, the last finite bound for what lies beyond."""
    counts = total[column : column + len(bounds) + 1]
    if counts.sum() == 0:
        return Unknown(Cause.EMPTY, "nothing was measured")
    below = np.concatenate([[0.0], np.cumsum(counts)])
    k = int(np.searchsorted(below[1:], q * below[-1]))
    if k >= len(bounds):
        return Known(bounds[-1], at)
    lower = bounds[k - 1] if k else 0.0
    share = (q * below[-1] - below[k]) / counts[k]
    return Known(float(lower + (bounds[k] - lower) * share), at)


def of_router(pool: Pool, sight: Sight) -> dict[Signal, Reading]:
    """Arrivals at the router, and what waits in it and behind it: it knows even while no replica is ready."""
    if not sight.router:
        return {}
    rows: npt.NDArray[Any] = pool.memory.router_scrapes[: int(pool.state["router_scrapes"])]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    rows = rows[rows[:, 0] >= pool.now - max(sight.window, STALE * (pool.settings.scrape_interval or 0))]
    if len(rows) < 2:  # noqa: PLR2004  (a rate needs two)
        return {Signal.ARRIVALS: Unknown(Cause.EMPTY, "the router was not scraped twice")}
    at = float(rows[-1, 0])
    found: dict[Signal, Reading] = {Signal.ARRIVALS: Known(float((rows[-1, 1] - rows[0, 1]) / (at - rows[0, 0])), at)}
    if pool.state["ready"] == 0:
        found[Signal.IN_FLIGHT] = Known(0.0, at)
        found[Signal.WAITING] = Known(float(rows[-1, 2]), at)
    return found
