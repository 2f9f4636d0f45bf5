"""An observation that costs little: what a policy asks for is looked up when it asks, all replicas at once, compiled.

The same readings as `models.fleet.seen`, bit for bit (a test compares them), a hundred times cheaper: a scoreboard
takes tens of millions of looks.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from models.fleet import latency, layout, looking, seen
from models.fleet.deployment import Deployment
from models.policy.protocol import Observation
from models.race import driver, pods
from models.race.looks import Looks
from models.signals import Cause, Known, Reading, Signal, Unknown

QUANTILES = {
    Signal.TTFT_P95: (layout.SEEN_TTFT, latency.TTFT_BOUNDS),
    Signal.ITL_P95: (layout.SEEN_ITL, latency.ITL_BOUNDS),
}
RATES = {
    Signal.ARRIVALS: looking.EACH_ARRIVED,
    Signal.TOKENS_IN: looking.EACH_PROMPT,
    Signal.TOKENS_OUT: looking.EACH_TOKENS,
    Signal.COMPLETIONS: looking.EACH_FINISHED,
}
GAUGES = {Signal.IN_FLIGHT: looking.RUNNING, Signal.WAITING: looking.WAITING}
SEEN = (*GAUGES, Signal.KV_USAGE, *QUANTILES, *RATES, Signal.DURATION_MEAN)


class Watcher:
    """Looks at one pool again and again; what it handed out is good until time passes."""

    def __init__(self, target: Deployment, lane: driver.Lane) -> None:
        self._target, self._lane = target, lane
        self._pods = pods.Shown()
        self._looks = Looks(target.pool, lane.sight)

    def observe(self) -> Observation:
        """What an autoscaler sees of the pool now."""
        target, lane = self._target, self._lane
        looked = self._looks.fresh()
        return Observation(
            target.pool.now,
            target.wanted,
            lane.minimum,
            lane.maximum,
            driver.supply(target, lane),
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
        try:
            return self[signal]
        except KeyError:
            return default


def _reading(looks: Looks, signal: Signal) -> Reading:
    if signal not in SEEN:
        raise KeyError(signal)
    if looks.interval is None:
        return Unknown(Cause.NOT_ASKED, "nothing is scraped")
    found = looks.found()
    if looks.sight.router and (reading := _of_router(found, signal)) is not None:
        return reading
    return _of_pages(looks, found, signal)


def _of_pages(looks: Looks, found: list[float], signal: Signal) -> Reading:
    """What the ready replicas' pages say; nothing as long as one of them is missing."""
    n, fresh = int(found[looking.REPLICAS]), int(found[looking.FRESH])
    if n == 0:
        return Unknown(Cause.EMPTY, "no replica is ready")
    if fresh < n:
        return Unknown(Cause.PARTIAL, f"{fresh} of {n} ready replicas were scraped")
    if signal in GAUGES:
        return Known(found[GAUGES[signal]], found[looking.OLDEST])
    if signal is Signal.KV_USAGE:
        return Known(float(looks.each()[looking.EACH_KV].sum() / n), found[looking.OLDEST])
    return _risen(looks, signal)


def _of_router(found: list[float], signal: Signal) -> Reading | None:
    """What the router knows; None where it is asked for what only the replicas' pages say."""
    if found[looking.ROUTER_ROWS] < 2:  # noqa: PLR2004  (a rate needs two)
        return Unknown(Cause.EMPTY, "the router was not scraped twice") if signal is Signal.ARRIVALS else None
    at = found[looking.ROUTER_LAST]
    if signal is Signal.ARRIVALS:
        return Known(found[looking.ROUTER_SENT] / (at - found[looking.ROUTER_FIRST]), at)
    if found[looking.NONE_READY] and signal in GAUGES:
        return Known(0.0 if signal is Signal.IN_FLIGHT else found[looking.ROUTER_WAITING], at)
    return None


def _risen(looks: Looks, signal: Signal) -> Reading:
    """A rate, a quantile or a mean over the window; all pages are fresh."""
    twice = int(looks.found()[looking.TWICE])
    if twice == 0:
        return Unknown(Cause.EMPTY, "no replica was scraped twice")
    total = looks.rises()
    at = looks.found()[looking.TWICE_OLDEST]
    if signal in RATES:
        return Known(float(looks.each()[RATES[signal], :twice].sum()), at)
    if signal is Signal.DURATION_MEAN:
        return seen.mean_duration(total, at)
    column, bounds = QUANTILES[signal]
    return seen.page_quantile(total, column, bounds, at)
