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

GAUGES = {
    Signal.IN_FLIGHT: looking.RUNNING, Signal.WAITING: looking.WAITING, Signal.KV_USAGE: looking.KV,
}  # fmt: skip
RISEN = {
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
SEEN = dict.fromkeys((*GAUGES, *RISEN))


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
        self._read: dict[Signal, Reading] = {}

    def __len__(self) -> int:
        return len(SEEN)

    def __iter__(self) -> Iterator[Signal]:
        return iter(SEEN)

    def __getitem__(self, signal: Signal) -> Reading:
        found = self._read.get(signal)
        if found is None:
            found = self._read[signal] = _reading(self.looks, signal)
        return found

    def get(self, signal: Signal, default: Any = None) -> Any:  # noqa: ANN401  (as a mapping)
        """The reading; of what a pool does not show, the default."""
        found = self._read.get(signal)
        if found is not None:
            return found
        return self[signal] if signal in SEEN else default


def _reading(looks: Looks, signal: Signal) -> Reading:
    if signal not in SEEN:
        raise KeyError(signal)
    if looks.interval is None:
        return NOT_SCRAPED
    found = looks.found()
    if looks.sight.router and (reading := _of_router(found, signal)) is not None:
        return reading
    n, fresh = found[looking.REPLICAS], found[looking.FRESH]
    if n == 0:
        return NONE_READY
    if fresh < n:
        return Unknown(Cause.PARTIAL, f"{fresh:.0f} of {n:.0f} ready replicas were scraped")
    if signal in GAUGES:
        return Known(found[GAUGES[signal]], found[looking.OLDEST])
    return _risen(looks, signal)


def _of_router(found: list[float], signal: Signal) -> Reading | None:
    """What the router knows; None where it is asked for what only the replicas' pages say."""
    if signal is Signal.ARRIVALS:
        if found[looking.ROUTER_ROWS] < 2:  # noqa: PLR2004  (a rate needs two)
            return ROUTER_ONCE
        at = found[looking.ROUTER_LAST]
        return Known(found[looking.ROUTER_SENT] / (at - found[looking.ROUTER_FIRST]), at)
    if found[looking.NONE_READY] and found[looking.ROUTER_ROWS] >= 2:  # noqa: PLR2004  (as `seen` has it)
        waiting = {Signal.IN_FLIGHT: 0.0, Signal.WAITING: found[looking.ROUTER_WAITING]}
        return Known(waiting[signal], found[looking.ROUTER_LAST]) if signal in waiting else None
    return None


def _risen(looks: Looks, signal: Signal) -> Reading:
    """A rate, a quantile or a mean over the window; all pages are fresh."""
    if not looks.found()[looking.TWICE]:
        return ONCE
    found = looks.risen()
    value = found[RISEN[signal]]
    if math.isnan(value):
        return ENDLESS if signal is Signal.DURATION_MEAN else NOT_MEASURED
    return Known(value, found[looking.TWICE_OLDEST])
