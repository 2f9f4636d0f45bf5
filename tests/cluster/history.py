"""A past under the same load, simulated ahead of a test: what Prometheus would hold had it scraped for hours."""

from dataclasses import dataclass

import numpy as np

from tests.cluster import fleet, load


@dataclass(frozen=True)
class Past:
    """What was there.

    Args:
        namespace: label of all series, with `pod` past-0, past-1 and so on.
        until_s: Unix time before which the last scrape was; not in the future. Scrapes fall on multiples of `every_s`:
            asked for on a grid of such steps, none is old.
        span_s: seconds covered.
        every_s: seconds between scrapes.
        replicas: constant; enough of them leave no queue (one finishes about 4 requests a second).
    """

    namespace: str
    until_s: float
    span_s: float
    every_s: float = 15.0
    replicas: int = 4


def text(past: Past, season: load.Season, *, sizes: fleet.Sizes | None = None, seed: int = 0) -> str:
    """Return OpenMetrics text for `PrometheusServer.backfill`, or for `history=` of the fixture `serve`."""
    start_s = past.until_s // past.every_s * past.every_s - past.span_s
    live = fleet.LiveFleet(sizes or fleet.Sizes(), start_s=start_s, random=np.random.default_rng(seed))
    names = {f"past-{number}" for number in range(past.replicas)}
    lines: list[str] = []
    live.tick(start_s, season, names)
    for at_s in start_s + past.every_s * np.arange(1, int(past.span_s / past.every_s) + 1):
        live.tick(float(at_s), season, names)
        for name in sorted(names):
            lines += _stamped(live.page(name).body, f'namespace="{past.namespace}",pod="{name}",job="engines"', at_s)
    return "\n".join([*lines, "# EOF", ""])


def _stamped(page: str, labels: str, at_s: float) -> list[str]:
    return [
        f"{line.replace('{', '{' + labels + ',', 1)} {at_s:.3f}"
        for line in page.splitlines()
        if not line.startswith("#")
    ]
