"""An observation that costs little: signals are computed when a policy asks for them, all replicas at once.

The same readings as `models.fleet.seen` (a test compares them), some twenty times cheaper where a policy asks
for one gauge: a scoreboard takes millions of looks.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from models.fleet import latency, layout, seen
from models.fleet.deployment import Deployment
from models.fleet.pool import Pool
from models.fleet.seen import STALE, Sight
from models.policy.protocol import Observation
from models.race import driver, pods
from models.signals import Cause, Known, Reading, Signal, Unknown

GAUGES = (Signal.IN_FLIGHT, Signal.WAITING, Signal.KV_USAGE)
QUANTILES = {
    Signal.TTFT_P95: (layout.SEEN_TTFT, latency.TTFT_BOUNDS),
    Signal.ITL_P95: (layout.SEEN_ITL, latency.ITL_BOUNDS),
}
RATES = {
    Signal.ARRIVALS: layout.SEEN_ARRIVED,
    Signal.TOKENS_IN: layout.SEEN_PROMPT,
    Signal.TOKENS_OUT: layout.SEEN_TOKENS,
}
SEEN = (*GAUGES, *QUANTILES, *RATES, Signal.DURATION_MEAN)


def observe(target: Deployment, lane: driver.Lane) -> Observation:
    """What an autoscaler sees of a pool now; its readings must be read before time passes."""
    return Observation(
        now=target.pool.now,
        replicas=target.wanted,
        minimum=lane.minimum,
        maximum=lane.maximum,
        supply=driver.supply(target, lane),
        readings=Glance(target.pool, lane.sight),
        pods=pods.Pods(target),
    )


class Glance(Mapping[Signal, Reading]):
    """The readings of a pool at the moment it was made."""

    def __init__(self, pool: Pool, sight: Sight) -> None:
        self._pool, self._sight = pool, sight
        self._pages: _Pages | Unknown | None = None
        self._router: dict[Signal, Reading] | None = None
        self._found: dict[Signal, Reading] = {}

    def __len__(self) -> int:
        return len(SEEN)

    def __iter__(self) -> Iterator[Signal]:
        return iter(SEEN)

    def __getitem__(self, signal: Signal) -> Reading:
        found = self._found.get(signal)
        if found is None:
            found = self._found[signal] = self._read(signal)
        return found

    def _read(self, signal: Signal) -> Reading:
        if signal not in SEEN:
            raise KeyError(signal)
        if self._pool.settings.scrape_interval is None:
            return Unknown(Cause.NOT_ASKED, "nothing is scraped")
        router = self._at_router()
        if signal in router:
            return router[signal]
        if self._pages is None:
            self._pages = _pages(self._pool, self._sight)
        if isinstance(self._pages, Unknown):
            return self._pages
        return self._pages.reading(signal)

    def _at_router(self) -> Mapping[Signal, Reading]:
        if self._router is None:
            self._router = seen.of_router(self._pool, self._sight)
        return self._router


class _Pages:
    """The scrapes of the ready replicas, all fresh; arrays by replica."""

    def __init__(
        self, scrapes: npt.NDArray[Any], slots: npt.NDArray[np.intp], ends: tuple[npt.NDArray[np.intp], ...]
    ) -> None:
        self._scrapes, self._slots = scrapes, slots
        self._first, self._last = ends
        self._newest = scrapes[slots, self._last, : layout.SEEN_KV + 1]
        self._at = float(self._newest[:, layout.AT].min())
        self._rises: npt.NDArray[np.float64] | None = None

    def reading(self, signal: Signal) -> Reading:
        """One signal over all replicas."""
        return self._gauge(signal) if signal in GAUGES else self._rate(signal)

    def _gauge(self, signal: Signal) -> Reading:
        if signal is Signal.KV_USAGE:
            return Known(float(self._newest[:, layout.SEEN_KV].mean()), self._at)
        column = layout.SEEN_RUNNING if signal is Signal.IN_FLIGHT else layout.SEEN_WAITING
        return Known(float(self._newest[:, column].sum()), self._at)

    def _rate(self, signal: Signal) -> Reading:
        twice = self._first != self._last
        if not twice.any():
            return Unknown(Cause.EMPTY, "no replica was scraped twice")
        slots, first, last = self._slots[twice], self._first[twice], self._last[twice]
        at = float(self._scrapes[slots, last, layout.AT].min())
        if self._rises is None:
            self._rises = self._scrapes[slots, last] - self._scrapes[slots, first]
        if signal in RATES:
            return Known(float((self._rises[:, RATES[signal]] / self._rises[:, layout.AT]).sum()), at)
        total = self._rises.sum(axis=0)
        if signal is Signal.DURATION_MEAN:
            return seen.mean_duration(total, at)
        column, bounds = QUANTILES[signal]
        return seen.page_quantile(total, column, bounds, at)


def _pages(pool: Pool, sight: Sight) -> _Pages | Unknown:
    m, now = pool.memory, pool.now
    slots = np.flatnonzero(m.replicas["phase"] == layout.READY)
    if not len(slots):
        return Unknown(Cause.EMPTY, "no replica is ready")
    assert pool.settings.scrape_interval is not None  # noqa: S101  (asked for before)
    stale = STALE * pool.settings.scrape_interval
    at, pods = m.scrapes[slots, :, layout.AT], m.scrapes[slots, :, layout.POD]
    own = (pods == m.replicas["pod"][slots][:, None]) & (at >= now - max(sight.window, stale))
    newest = np.where(own, at, -np.inf)
    fresh = int(np.count_nonzero(now - newest.max(axis=1) <= stale))
    if fresh < len(slots):
        return Unknown(Cause.PARTIAL, f"{fresh} of {len(slots)} ready replicas were scraped")
    return _Pages(m.scrapes, slots, (np.where(own, at, np.inf).argmin(axis=1), newest.argmax(axis=1)))
