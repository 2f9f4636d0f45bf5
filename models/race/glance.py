"""An observation that costs little: what a policy asks for is looked up when it asks, all replicas at once, compiled.

The same readings as `models.fleet.seen`, bit for bit (a test compares them), a hundred times cheaper: a scoreboard
takes tens of millions of looks.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from models.fleet import looking
from models.fleet.deployment import Deployment
from models.policy.protocol import Observation
from models.race import driver, pods
from models.race.looks import Looks
from models.signals import Cause, Known, Reading, Signal, Unknown

# Where a look has what a pool shows: gauges before `TWICE_OLDEST`, what the counters' rises say after it.
SEEN = {
    Signal.IN_FLIGHT: looking.RUNNING,
    Signal.WAITING: looking.WAITING,
    Signal.KV_USAGE: looking.KV,
    Signal.ARRIVALS: looking.ARRIVED,
    Signal.TOKENS_IN: looking.PROMPT,
    Signal.TOKENS_OUT: looking.TOKENS,
    Signal.COMPLETIONS: looking.FINISHED,
    Signal.TTFT_P95: looking.TTFT,
    Signal.ITL_P95: looking.ITL,
    Signal.DURATION_MEAN: looking.DURATION,
}
NOT_SCRAPED, NONE_READY = Unknown(Cause.NOT_ASKED, "nothing is scraped"), Unknown(Cause.EMPTY, "no replica is ready")
NOT_MEASURED = Unknown(Cause.EMPTY, "nothing was measured")
ENDLESS = Unknown(Cause.EMPTY, "no request finished")
ONCE = Unknown(Cause.EMPTY, "no replica was scraped twice")
ROUTER_ONCE = Unknown(Cause.EMPTY, "the router was not scraped twice")


class Watcher:
    """Looks at one pool again and again; what it handed out is good until time passes."""

    def __init__(self, target: Deployment, lane: driver.Lane) -> None:
        self._target, self._lane = target, lane
        self._pods = pods.Shown()
        self._looks = Looks(target.pool, lane.sight)
        self._supply, self._changes = driver.supply(target, lane), target.changes

    def observe(self) -> Observation:
        """What an autoscaler sees of the pool now."""
        target, lane = self._target, self._lane
        looked, supply = self._looks.fresh(), self._supply
        if target.changes != self._changes or supply.warming or supply.stuck:  # those that warm grow older
            supply = self._supply = driver.supply(target, lane)
            self._changes = target.changes
        return Observation(
            target.pool.now,
            target.wanted,
            lane.minimum,
            lane.maximum,
            supply,
            Glance(looked),
            pods.Pods(target, looked.each, self._pods),
        )


class Glance(Mapping[Signal, Reading]):
    """The readings of a pool at the moment it was made; they must be read before time passes."""

    def __init__(self, looks: Looks) -> None:
        self.looks = looks
        self._read = _Read()
        self._read.looks = looks

    def __len__(self) -> int:
        return len(SEEN)

    def __iter__(self) -> Iterator[Signal]:
        return iter(SEEN)

    def __getitem__(self, signal: Signal) -> Reading:
        return self._read[signal]

    def get(self, signal: Signal, default: Any = None) -> Any:  # noqa: ANN401  (as a mapping)
        """The reading; of what a pool does not show, the default."""
        return self._read[signal] if signal in SEEN else default


class _Read(dict[Signal, Reading]):
    """Readings that somebody asked for; made when they are."""

    __slots__ = ("looks",)
    looks: Looks

    def __missing__(self, signal: Signal) -> Reading:
        made = self[signal] = _reading(self.looks, signal)
        return made


def _reading(looks: Looks, signal: Signal) -> Reading:
    column = SEEN[signal]
    if looks.interval is None:
        return NOT_SCRAPED
    found = looks.found()
    if looks.sight.router and (signal is Signal.ARRIVALS or found[looking.NONE_READY]):
        reading = _of_router(found, signal)
        if reading is not None:
            return reading
    if not found[looking.REPLICAS] or found[looking.FRESH] < found[looking.REPLICAS]:
        return _missing(found)
    if column < looking.TWICE_OLDEST:
        return Known(found[column], found[looking.OLDEST])
    if not found[looking.TWICE]:
        return ONCE
    return _risen(looks.risen(), signal, column)


def _of_router(found: list[float], signal: Signal) -> Reading | None:
    """Arrivals, and while no replica is ready what is in flight and waits; None where only the pages say it."""
    twice, at = found[looking.ROUTER_ROWS] >= 2, found[looking.ROUTER_LAST]  # noqa: PLR2004  (a rate needs two)
    if signal is Signal.ARRIVALS:
        if not twice:
            return ROUTER_ONCE
        return Known(found[looking.ROUTER_SENT] / (at - found[looking.ROUTER_FIRST]), at)
    if twice and signal is Signal.IN_FLIGHT:
        return Known(0.0, at)
    if twice and signal is Signal.WAITING:
        return Known(found[looking.ROUTER_WAITING], at)
    return None


def _missing(found: list[float]) -> Unknown:
    n, fresh = found[looking.REPLICAS], found[looking.FRESH]
    return Unknown(Cause.PARTIAL, f"{fresh:.0f} of {n:.0f} ready replicas were scraped") if n else NONE_READY


def _risen(found: list[float], signal: Signal, column: int) -> Reading:
    """A rate, a quantile or a mean over the window; all pages are fresh."""
    value = found[column]
    if math.isnan(value):
        return ENDLESS if signal is Signal.DURATION_MEAN else NOT_MEASURED
    return Known(value, found[looking.TWICE_OLDEST])
