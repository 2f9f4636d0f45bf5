"""Figures of the simulation's report, as SVG written by hand: they need no script, and follow the page's colours."""

import html
import math
from collections.abc import Sequence

import numpy as np

from models.race import frontier
from models.series import Floats
from predictor.replay.simulateruns import Found, Raced, Timeline

WIDE, LEFT, RIGHT = 1100, 58, 12
WORST, BEST = 0.5, 1e-5  # shares of misses on the frontier's axis
POINTS = 1200
HOUR = 3600.0


def colours(raced: Sequence[Raced]) -> dict[str, str]:
    """Classes of the style sheet for each policy: a colour, and a dash where the colours begin anew."""
    return {one.name: f"c{i % 10} d{i // 10}" for i, one in enumerate(raced)}


def timeline(one: Timeline, *, rate: float, start: float) -> str:
    """Replicas and demand, queue, and TTFT below each other; `rate` is what a replica carries, requests a second."""
    times = (one.times - start) / HOUR
    demand = smooth(one.demand / rate)
    top = _Panel(times, 190, max(float(np.nanmax(one.ready + one.warming)), _largest(demand), 1.0), "replicas", 0)
    queue = _Panel(times, 90, max(_largest(one.queue), 1.0), "queue", 200)
    ttft = _Panel(times, 90, max(_largest(one.ttft), 0.1), "TTFT p99, s", 300)
    parts = [
        top.frame(), queue.frame(), ttft.frame(hours=True),
        top.area(one.ready + one.warming, "warming"), top.area(one.ready, "ready"), top.line(demand, "demand"),
        queue.area(one.queue, "queue"), ttft.line(one.ttft, "ttft"),
    ]  # fmt: skip
    return _svg(410, parts, "demand, ready and warming replicas, queue and time to the first token over the hours")


def smooth(values: Floats) -> Floats:
    """Mean over five neighbours; gaps stay."""
    known = np.nan_to_num(values)
    weights = np.convolve(np.isfinite(values).astype(float), np.ones(5), "same")
    total = np.convolve(known, np.ones(5), "same")
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(weights > 0, total / weights, np.nan)
    return found


class _Panel:
    """One axis over the hours: a place on the picture, and how values become points."""

    def __init__(self, times: Floats, height: float, largest: float, title: str, top: float) -> None:
        self._times, self._height, self._top, self._title = times, height, top + 14, title
        self._largest = _round(largest)
        self._last = max(float(times[-1]), 1e-9)

    def _x(self, hours: Floats) -> Floats:
        return np.asarray(LEFT + hours / self._last * (WIDE - LEFT - RIGHT), dtype=np.float64)

    def _y(self, values: Floats) -> Floats:
        inner = self._height - 24
        return np.asarray(self._top + inner * (1 - np.minimum(values / self._largest, 1)), dtype=np.float64)

    def frame(self, *, hours: bool = False) -> str:
        """Grid and labels."""
        parts = [f'<text class="t" x="{LEFT}" y="{self._top - 4}">{html.escape(self._title)}</text>']
        for share in (0.0, 0.5, 1.0):
            y = float(self._y(np.array([share * self._largest]))[0])
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDE - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share * self._largest:g}</text>')
        step = next(s for s in (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 1e9) if self._last / s <= 14)  # noqa: PLR2004
        for hour in np.arange(0, self._last + 1e-9, step) if hours else ():
            x = float(self._x(np.array([hour]))[0])
            parts.append(f'<text x="{x:.1f}" y="{self._top + self._height - 6}" text-anchor="middle">{hour:g} h</text>')
        return "".join(parts)

    def area(self, values: Floats, name: str) -> str:
        """Filled steps."""
        x, y = _stepped(*_thin(self._x(self._times), self._y(np.nan_to_num(values))))
        bottom = float(self._y(np.zeros(1))[0])
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        return f'<polygon class="{name}" points="{x[0]:.1f},{bottom:.1f} {path} {x[-1]:.1f},{bottom:.1f}"/>'

    def line(self, values: Floats, name: str) -> str:
        """A line with gaps where nothing is known."""
        x, y = _thin(self._x(self._times), self._y(values))
        parts, open_ = [], False
        for a, b in zip(x, y, strict=True):
            if math.isfinite(b):
                parts.append(f"{'L' if open_ else 'M'}{a:.1f} {b:.1f}")
            open_ = math.isfinite(b)
        return f'<path class="line {name}" d="{"".join(parts)}"/>'


def _thin(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    keep = slice(None, None, max(len(x) // POINTS, 1))
    return x[keep], y[keep]


def _stepped(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def frontiers(found: Found) -> str:
    """Misses against replica-hours: a line a policy, a ring at its default."""
    names = colours(found.raced)
    hours = [point.hours for one in found.raced for point in one.points]
    low, high = 0.95 * min(hours), 1.05 * max(hours)
    height = 360

    def x(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDE - LEFT - RIGHT)

    def y(missed: float) -> float:
        share = math.log(min(max(missed, BEST), WORST) / WORST) / math.log(BEST / WORST)
        return 12 + share * (height - 46)

    parts = []
    for share in (0.1, 0.01, 0.001, 0.0001):
        parts.append(f'<path class="grid" d="M{LEFT} {y(share):.1f}H{WIDE - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share * 100:g} %</text>')
    for hour in _ticks(low, high):
        parts.append(f'<path class="grid" d="M{x(hour):.1f} 12V{height - 34}"/>')
        parts.append(f'<text x="{x(hour):.1f}" y="{height - 18}" text-anchor="middle">{hour:g}</text>')
    parts.append(f'<text x="{(WIDE + LEFT) / 2}" y="{height - 3}" text-anchor="middle">replica-hours</text>')
    for one in found.raced:
        edge = frontier.frontier(one.points)
        line = "".join(f"{'L' if i else 'M'}{x(p.hours):.1f} {y(p.missed):.1f}" for i, p in enumerate(edge))
        parts.append(f'<path class="line {names[one.name]}" d="{line}"/>')
        for point in one.points:
            shown = f"{one.name} at {point.knob}: {point.hours:.1f} h, {point.missed:.3%} missed"
            radius = 5 if point == one.points[0] else 3
            parts.append(
                f'<circle class="dot {names[one.name]}" cx="{x(point.hours):.1f}" cy="{y(point.missed):.1f}" '
                f'r="{radius}"><title>{html.escape(shown)}</title></circle>'
            )
    return _svg(height, parts, "share of requests that missed the objective against replica-hours, by policy")


def _ticks(low: float, high: float) -> list[float]:
    step = _round((high - low) / 8)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _round(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(n * power for n in (1, 2, 2.5, 5, 10) if n * power >= value * (1 - 1e-9))


def _largest(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max(initial=0.0))


def _svg(height: float, parts: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDE} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
