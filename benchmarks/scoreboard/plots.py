"""Frontiers as small SVG pictures: a panel a trace, misses against replica-hours over the oracle's."""

import math
from collections.abc import Sequence

from benchmarks.scoreboard import results
from benchmarks.scoreboard.contenders import ORACLE, OURS
from benchmarks.scoreboard.results import Race
from models.race import frontier

WIDTH, HEIGHT, COLUMNS, MARGIN, KEY = 250, 170, 4, 30, 46
DEAREST = 5.0  # times the oracle's hours at the right edge
WORST, BEST = 0.5, 1e-4  # shares of misses at top and bottom
COLOURS = ("#8a8f98", "#f97316", "#10b981", "#a855f7", "#ef4444", "#14b8a6", "#eab308", "#ec4899", "#6366f1", "#84cc16")


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each policy; Floorcast's is always the same blue."""
    others = [name for name in names if name not in (OURS, ORACLE)]
    chosen = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(others)}
    return {**chosen, OURS: "#3b82f6", ORACLE: "#111827"}


def picture(races: Sequence[Race]) -> str:
    """All races of one warm-up."""
    shown = [race for race in races if race.found(ORACLE, 0.99).hours]
    names = results.policies(races)
    tint = colours(sorted(names))
    rows = -(-len(shown) // COLUMNS)
    wide, high = COLUMNS * WIDTH, rows * HEIGHT + KEY
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="9">',
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>',
        *(_key(i, name, tint[name]) for i, name in enumerate(names)),
    ]
    for i, race in enumerate(sorted(shown, key=lambda race: race.trace.name)):
        at = (i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT + KEY)
        parts.append(f'<g transform="translate({at[0]} {at[1]})">{_panel(race, tint)}</g>')
    return "\n".join([*parts, "</svg>\n"])


def _key(i: int, name: str, colour: str) -> str:
    x, y = 10 + i % 8 * 122, 14 + i // 8 * 14
    return f'<path d="M{x} {y - 3}h14" stroke="{colour}" stroke-width="2.5"/><text x="{x + 18}" y="{y}">{name}</text>'


def _panel(race: Race, tint: dict[str, str]) -> str:
    base = race.found(ORACLE, 0.99).hours or 1.0
    parts = [f'<text x="{MARGIN}" y="11" font-weight="bold">{race.trace.name}</text>', _axes()]
    for name, points in race.points.items():
        edge = [(_x(p.hours / base), _y(p.missed)) for p in frontier.frontier(points) if p.hours / base <= DEAREST]
        if not edge:
            continue
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
        wide = 2.4 if name == OURS else 1.2
        parts.append(f'<polyline points="{line}" fill="none" stroke="{tint[name]}" stroke-width="{wide}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="{tint[name]}"/>' for x, y in edge]
    return "".join(parts)


def _axes() -> str:
    parts = []
    for share in (0.1, 0.01, 0.001):
        y = _y(share)
        parts.append(f'<path d="M{MARGIN} {y:.1f}H{WIDTH - 8}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{MARGIN - 3}" y="{y + 3:.1f}" text-anchor="end" fill="#6b7280">{share:.2g}</text>')
    for ratio in (0.5, 1, 2, 4):
        x = _x(ratio)
        parts.append(f'<path d="M{x:.1f} 16V{HEIGHT - 22}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 11}" text-anchor="middle" fill="#6b7280">{ratio:g}x</text>')
    return "".join(parts)


def _x(ratio: float) -> float:
    low, high = math.log(0.4), math.log(DEAREST)
    share = (math.log(max(ratio, 0.4)) - low) / (high - low)
    return MARGIN + share * (WIDTH - 8 - MARGIN)


def _y(missed: float) -> float:
    low, high = math.log(WORST), math.log(BEST)
    share = (math.log(min(max(missed, BEST), WORST)) - low) / (high - low)
    return 18 + share * (HEIGHT - 40)
