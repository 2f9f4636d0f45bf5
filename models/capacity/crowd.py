"""How much of what is in flight its users bring, while a backlog is worked off.

A fleet that works a backlog off holds as many requests as it has room for, and more with each replica that comes to
help: what is in flight follows the supply. As a demand it would ask for a third more replicas each time (8 places at 6
planned for), for as long as the backlog lasts. By Little's law, in flight = rate x time in service, what users bring
is the same share of it as arrivals are of what ends (docs/decisions/0006).
"""

import dataclasses

from models.capacity import sizing
from models.capacity.profile import Profile

KEPT = 3  # looks: a backlog of a few minutes ends within a few, and a single one scatters
APART = 1.0  # seconds: two loops may look at the same moment


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """Requests inside a fleet, running and waiting, at a Unix time (seconds)."""

    at: float
    inside: float


Looks = tuple[Look, ...]


def look(looks: Looks, *, at: float, running: float | None, waiting: float | None) -> Looks:
    """The newest looks after one more, oldest first; afresh where one is not known, or the clock went back."""
    if running is None or waiting is None:
        return ()
    seen = Look(at, running + waiting)
    passed = at - looks[-1].at if looks else APART
    if passed <= -APART:
        return (seen,)
    return looks if passed < APART else (*looks, seen)[-KEPT:]


def growth(looks: Looks) -> float:
    """Requests per second by which there are more inside, negative while a backlog is worked off; 0 while not known."""
    if len(looks) < 2:  # noqa: PLR2004  (a difference takes two)
        return 0.0
    first, last = looks[0], looks[-1]
    return (last.inside - first.inside) / (last.at - first.at)


def demanded(profile: Profile, load: sizing.Load, *, ready: int) -> float | None:
    """Requests in flight that count as demand of a fleet with so many replicas Ready; None where not known.

    All of them, unless there are more than is planned for and more end than arrive: then in flight x arrivals / (what
    ends), and no less than the arrivals make of themselves. Where more requests run since each takes longer, or since
    the supply is too small, none of it is left out.
    """
    need = sizing.arrivals_need(profile, load)
    if load.in_flight is None or load.arrivals is None or need is None or load.growth >= 0:
        return load.in_flight
    if load.in_flight <= ready * profile.concurrency:
        return load.in_flight
    share = load.arrivals / (load.arrivals - load.growth)
    arriving = need.demand / need.per_replica * profile.concurrency
    return min(load.in_flight, max(load.in_flight * share, arriving))
