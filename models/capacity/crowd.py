"""How much of what is in flight its users bring, while a backlog is worked off.

A fleet that works a backlog off holds as many requests as it has room for, and more with each replica that comes to
help: what is in flight follows the supply. As a demand it would ask for a third more replicas each time (8 places at 6
planned for), for as long as the backlog lasts. By Little's law, in flight = rate x time in service, what users bring
is the same share of it as arrivals are of what ends (docs/decisions/0006).

Tokens a second are left as they are, though a fleet does more of them while it works a backlog off. What is inside is
counted at an instant and they are means of a window: they go on showing a backlog that is gone, when growth is 0 again.
And prompts count when a request is taken up: of an engine with a queue their rate holds the backlog's, of one that
admits every request it holds none, and the same share would leave out what users bring.
"""

import dataclasses
import math

from models.capacity import sizing
from models.capacity.profile import Profile

KEPT = 3  # looks: a backlog of a few minutes ends within a few, and a single one scatters
APART = 1.0  # seconds: two loops may look at the same sample
SET_BACK = 600.0  # seconds: a look that much older is no late answer, the clock was set back
SURE = 2.0  # deviations of the difference of two counts, each with the square root of itself: less is scatter


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """A fleet at a Unix time (seconds): requests inside it, those of them that wait, and its Ready replicas."""

    at: float
    inside: float
    waiting: float
    ready: int


Looks = tuple[Look, ...]


def after(looks: Looks, seen: Look) -> Looks:
    """The newest looks after one more, oldest first; a late one, or a second one at the same sample, adds nothing.

    Afresh where the clock was set back, and where fewer replicas are Ready: what was inside one that is gone has not
    been worked off.
    """
    if not looks or seen.ready < looks[-1].ready or seen.at < looks[-1].at - SET_BACK:
        return (seen,)
    return looks if seen.at - looks[-1].at < APART else (*looks, seen)[-KEPT:]


def growth(looks: Looks) -> float:
    """Requests per second by which there are more inside, negative while a backlog is worked off.

    0 while it is not known, and where nothing waits also within what counts scatter by: a fleet at its maximum holds
    more than is planned for without any backlog.
    """
    if len(looks) < 2:  # noqa: PLR2004  (a difference takes two)
        return 0.0
    first, last = looks[0], looks[-1]
    more = last.inside - first.inside
    scatter = 0.0 if last.waiting else SURE * math.sqrt(first.inside + last.inside)
    return more / (last.at - first.at) if abs(more) > scatter else 0.0


def demanded(profile: Profile, load: sizing.Load, *, ready: int) -> float | None:
    """Requests in flight that count as demand of a fleet with so many replicas Ready; None where not known.

    All of them, unless there are more than is planned for and more end than arrive: then in flight x arrivals / (what
    ends), and no less than the arrivals make of themselves. Where more requests run since each takes longer, or since
    the supply is too small, none of it is left out; nor where nothing arrives, as clients that leave end nothing.
    """
    need = sizing.arrivals_need(profile, load)
    if load.in_flight is None or not load.arrivals or need is None or load.growth >= 0:
        return load.in_flight
    if load.in_flight <= ready * profile.concurrency:
        return load.in_flight
    share = load.arrivals / (load.arrivals - load.growth)
    arriving = need.demand / need.per_replica * profile.concurrency
    return min(load.in_flight, max(load.in_flight * share, arriving))
