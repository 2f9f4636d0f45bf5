"""The clairvoyant: knows every arrival, still pays for each replica while it warms, and does no more than it must.

A replica takes `per_replica` requests a second. In a step of d seconds with n requests, r ready replicas cover
min(n, r x per_replica x d) of them. A schedule of ready replicas r(t) costs, in replica-seconds,

    sum over t of d r(t)  +  warm_up x (replicas that start),

which is what asking for max r over [t, t + warm_up] costs where a pause shorter than a warm-up is kept through. The
first step's replicas are there for nothing, as they are for the rivals, and going down takes no time.

`fewest` looks for the cheapest schedule that covers a share of all requests. Put a price p on an uncovered request:
cost + p x uncovered. Uncovered requests are convex in r, and the cost of starts is a total variation, so the sum falls
apart by levels: level k (the k-th replica) is on or off in each step, on costs d, off costs p times what the k-th
replica would have covered there, and turning on costs a warm-up. As what it would have covered falls with k, the best
levels are nested and add up to a schedule; each is found exactly by dynamic programming over two states.

Bound: let V(p) be that minimum and U the requests that may stay uncovered. Every schedule within U costs at least
V(p) - p U, for every p >= 0, since p x (uncovered - U) <= 0 adds nothing to its cost (Lagrangian duality). `bound` is
the largest of these over the prices tried, so the true optimum lies between `bound` and `cost`.
"""

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from models.peers import answer
from models.policy.decision import Decision
from models.policy.protocol import Observation
from models.series import Floats, Series

Ints = npt.NDArray[np.int64]
PRICES = 24  # halvings of the price interval: the bound and the cost then differ by a replica or two at one moment
HOUR = 3600.0


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What a replica does and costs.

    Attributes:
        per_replica: requests a second it takes within the objectives.
        warm_up: seconds from being asked for to ready.
        minimum: replicas at least.
        maximum: replicas at most.
    """

    per_replica: float
    warm_up: float
    minimum: int = 1
    maximum: int = 1000

    def __post_init__(self) -> None:
        if not (self.per_replica > 0 and self.warm_up >= 0 and 0 <= self.minimum <= self.maximum):
            raise ValueError(f"{self}: per_replica must be positive, warm_up not negative, minimum <= maximum")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Ready replicas by step, and what they come to.

    Attributes:
        start: Unix time of the first step, seconds.
        step: seconds.
        ready: shape (n,).
        attainment: share of the requests that is covered.
        cost: replica-hours, warming included.
        bound: replica-hours below which no schedule covers the share that was asked for.
    """

    start: float
    step: float
    ready: Ints
    attainment: float
    cost: float
    bound: float

    def asked(self, lead: float) -> Ints:
        """Replicas to ask for at the start of each step so that they are ready when due, `lead` seconds later."""
        ahead = math.ceil(lead / self.step - 1e-9)
        padded = np.concatenate([self.ready, np.zeros(ahead, np.int64)])
        highest: Ints = np.lib.stride_tricks.sliding_window_view(padded, ahead + 1).max(axis=1)
        return highest


def fewest(rates: Series, terms: Terms, *, attainment: float) -> Schedule:
    """The cheapest schedule that covers `attainment` of the requests, as far as the maximum allows it.

    Args:
        rates: requests per second; every step known.
        terms: what a replica does and costs.
        attainment: share of the requests, above 0 and at most 1.

    Raises ValueError for gaps in `rates`, or a share outside (0, 1].
    """
    if not 0 < attainment <= 1 or len(rates) == 0 or rates.known < len(rates):
        raise ValueError(
            f"attainment {attainment!r} with {rates.known} of {len(rates)} steps known: must be a share above 0, and "
            "a clairvoyant knows every step"
        )
    levels = _Levels.of(rates, terms)
    allowed = (1 - attainment) * levels.requests + levels.beyond
    # Any level that covers anything anywhere is on at this price, even if it starts for it alone.
    smallest = levels.covers[levels.covers > 0].min(initial=1.0)
    low, high = 0.0, (levels.step + terms.warm_up) / smallest * 2
    best, bound = levels.solved(high), -math.inf
    if attainment < 1:
        low = 1e-6 / terms.per_replica
        for _ in range(PRICES):
            price = math.sqrt(low * high)
            found = levels.solved(price)
            bound = max(bound, found.cost + price * (found.uncovered - allowed))
            if found.uncovered <= allowed + 1e-9:
                high, best = price, found
            else:
                low = price
    return Schedule(
        rates.start,
        rates.step,
        best.ready,
        1 - best.uncovered / levels.requests if levels.requests else 1.0,
        best.cost / HOUR,
        (best.cost if attainment == 1 else max(bound, 0.0)) / HOUR,
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """The best schedule at a price: replicas, replica-seconds, requests that stay uncovered."""

    ready: Ints
    cost: float
    uncovered: float


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """What each level above the minimum would cover in each step, shape (n, levels), requests."""

    step: float
    warm_up: float
    minimum: int
    covers: Floats
    requests: float
    beyond: float  # requests that even the maximum leaves uncovered

    @classmethod
    def of(cls, rates: Series, terms: Terms) -> "_Levels":
        each = terms.per_replica * rates.step
        requests = rates.values * rates.step
        top = min(max(answer.ceil(float(requests.max()) / each), terms.minimum), terms.maximum)
        below = np.arange(terms.minimum, top)  # replicas under the level
        covers = np.clip(requests[:, None] - below[None, :] * each, 0.0, each)
        beyond = float(np.maximum(requests - top * each, 0.0).sum())
        return cls(rates.step, terms.warm_up, terms.minimum, covers, float(requests.sum()), beyond)

    def solved(self, price: float) -> _Solved:
        """Every level's best course at a price for an uncovered request, by dynamic programming."""
        n, levels = self.covers.shape
        penalty = self.covers * price
        started, stopped = np.empty((n, levels), bool), np.empty((n, levels), bool)
        on, off = np.zeros(levels), np.zeros(levels)
        for t in range(n):
            from_off = off + self.warm_up if t else on
            started[t], stopped[t] = from_off < on, on < off
            on, off = np.minimum(on, from_off) + self.step, np.minimum(on, off) + penalty[t]
        states = np.empty((n, levels), bool)
        state = on <= off
        for t in range(n - 1, -1, -1):
            states[t] = state
            state = np.where(state, ~started[t], stopped[t])
        starts = int((states[1:] & ~states[:-1]).sum())
        ready = states.sum(axis=1, dtype=np.int64) + self.minimum
        return _Solved(
            ready,
            float(ready.sum()) * self.step + starts * self.warm_up,
            float(self.covers[~states].sum()) + self.beyond,
        )


class Oracle:
    """Follows a schedule, `lead` seconds ahead: the warm-up and whatever else passes between asking and serving."""

    def __init__(self, schedule: Schedule, *, lead: float) -> None:
        self._start, self._step = schedule.start, schedule.step
        self._asked = schedule.asked(lead + schedule.step).tolist()  # a decision may fall on a step's end

    def decide(self, observation: Observation) -> Decision:
        """What has to be asked for now."""
        place = int((observation.now - self._start) // self._step)
        wanted = self._asked[min(max(place, 0), len(self._asked) - 1)]
        return answer.decision(observation, wanted, f"the arrivals will need {wanted}")
