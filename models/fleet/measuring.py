"""What is counted as it happens: latencies into histograms, supply below demand, requests in the system over time."""

import math

from models.fleet.jit import Record, compiled
from models.fleet.layout import BIN_FLOOR, BINS, BINS_PER_E, DRAINING, READY

TTFT, ITL, E2E = 0, 1, 2


@compiled
def bin_of(seconds: float) -> int:
    """The bin of a duration."""
    if seconds <= BIN_FLOOR:
        return 0
    return min(int(math.log(seconds / BIN_FLOOR) * BINS_PER_E), BINS - 1)


@compiled
def first_token(p: Record, rep: Record, seconds: float) -> None:
    """A first token, so long after the request arrived."""
    k = bin_of(seconds)
    p.ttft[k] += 1
    p.ttft_sum += seconds
    p.first_tokens += 1
    rep.ttft[p.bucket_of[TTFT, k]] += 1
    rep.ttft_sum += seconds


@compiled
def gaps(p: Record, rep: Record, count: int, seconds: float) -> None:
    """So many gaps between tokens, each so long."""
    k = bin_of(seconds)
    p.itl[k] += count
    p.itl_sum += count * seconds
    p.gaps += count
    rep.itl[p.bucket_of[ITL, k]] += count
    rep.itl_sum += count * seconds


@compiled
def whole(p: Record, rep: Record, seconds: float) -> None:
    """A finished request, so long after it arrived."""
    k = bin_of(seconds)
    p.e2e[k] += 1
    p.e2e_sum += seconds
    rep.e2e[p.bucket_of[E2E, k]] += 1
    rep.e2e_sum += seconds


@compiled
def in_system(p: Record, change: int, t: float) -> None:
    """Requests in the system change: their integral over time is what Little's law is checked on."""
    p.area += p.in_system * (t - p.area_at)
    p.area_at = t
    p.in_system += change


@compiled
def blocked(p: Record, rep: Record, now_blocked: int, t: float) -> None:
    """Whether the next request of a replica's queue found no room in it."""
    if rep.blocked != now_blocked:
        rep.blocked = now_blocked
        if rep.phase == READY:
            p.blocked += 2 * now_blocked - 1
            supply(p, t)


@compiled
def supply(p: Record, t: float) -> None:
    """Supply is below demand while no ready replica can admit its next request, or there is none and requests wait."""
    below = 0
    if p.ready == 0:
        below = 1 if p.router_waiting > 0 else 0
    elif p.blocked == p.ready:
        below = 1
    if below != p.is_below:
        if p.is_below == 1:
            p.below += t - p.below_at
        p.is_below = below
        p.below_at = t


@compiled
def serves(rep: Record) -> bool:
    """Whether the engine of the slot runs."""
    return rep.phase == READY or rep.phase == DRAINING  # noqa: PLR1714  (a tuple costs compiled code)
