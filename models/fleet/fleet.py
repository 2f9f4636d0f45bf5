"""Replicas behind one router: who gets a request, and what each replica's metrics page says.

The router sends a request to the ready replica with the fewest in flight, and it stays there. While no replica is
ready, requests wait in the router and are turned away after its time-out.
"""

import collections
import dataclasses
import heapq
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from models.fleet import page
from models.fleet.engine import Engine
from models.fleet.replica import NEVER, Replica, Request
from models.fleet.scorecard import Recorder, Scorecard
from models.series import Floats

Ints = npt.NDArray[np.int64]
FLUSH_AT = 4096  # values a replica keeps before they go into the histograms: bounds the memory, costs nothing


@dataclasses.dataclass(frozen=True, slots=True)
class Arrivals:
    """A chunk of requests, in order of time; three arrays of shape (n,).

    Attributes:
        times: seconds, not falling.
        prompt_tokens: at least 1 each.
        output_tokens: at least 1 each.
    """

    times: Floats
    prompt_tokens: Ints
    output_tokens: Ints

    def __post_init__(self) -> None:
        if not len(self.times) == len(self.prompt_tokens) == len(self.output_tokens):
            raise ValueError("times, prompt_tokens and output_tokens differ in length")
        if len(self.times) and (np.diff(self.times) < 0).any():
            raise ValueError("times fall: arrivals must be in order")
        if len(self.times) and min(self.prompt_tokens.min(), self.output_tokens.min()) < 1:
            raise ValueError("a request has no prompt or no output: both are at least 1 token")

    def __len__(self) -> int:
        return len(self.times)


class _Slot:
    """A replica with its histograms."""

    __slots__ = ("draining", "latencies", "replica")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.latencies = page.Latencies()
        self.draining = False


class Fleet:
    """A fleet of equal replicas. Time is only what `advance` is told; all times in seconds on one axis.

    Whether one advances in one go or in pieces, and in which chunks the arrivals are offered, changes no result.
    """

    def __init__(
        self, engine: Engine, *, start: float = 0.0, ttft_objective: float = 1.0, router_timeout: float = 60.0
    ) -> None:
        """An empty fleet at the time `start`.

        Args:
            engine: what every replica is.
            start: the present, seconds.
            ttft_objective: seconds to the first token beyond which a request counts as missed.
            router_timeout: seconds a request may wait in the router, from its arrival.
        """
        self.engine = engine
        self.now = start
        self._recorder = Recorder(ttft_objective)
        self._timeout = router_timeout
        self._template = page.Template(engine)
        self._slots: list[_Slot] = []
        # Parallel to _slots, as plain lists because the inner loop asks for their minimum at every event.
        self._loads: list[float] = []  # in flight; NEVER for a replica that takes no more
        self._finishes: list[float] = []
        self._router: collections.deque[Request] = collections.deque()
        self._offered: collections.deque[Request] = collections.deque()
        self._last_offer = start
        self._arrived = 0
        self._rejected = 0
        self._finished_elsewhere = 0  # by replicas that are gone

    # ---------------------------------------------------------------------------------------------- replicas
    def add(self, name: str) -> None:
        """A new replica, ready at once. Raises ValueError when the name is taken."""
        if any(slot.replica.name == name for slot in self._slots):
            raise ValueError(f"replica {name!r} exists already")
        self._reject_expired()
        self._slots.append(_Slot(Replica(name, self.engine)))
        self._loads.append(0.0)
        self._finishes.append(NEVER)
        returned, self._router = self._router, collections.deque()
        self._dispatch(returned)

    def remove(self, name: str) -> None:
        """Drains a replica: it finishes what runs, its waiting requests go back to the router.

        Raises KeyError when there is none of that name; removing a draining one again changes nothing.
        """
        position = self._position(name)
        slot = self._slots[position]
        if slot.draining:
            return
        slot.draining = True
        self._loads[position] = NEVER
        returned = list(slot.replica.waiting)
        slot.replica.waiting.clear()
        self._dispatch(returned)
        if slot.replica.running == 0:
            self._forget(position)

    @property
    def ready(self) -> tuple[str, ...]:
        """Names of the replicas that take requests."""
        return tuple(slot.replica.name for slot in self._slots if not slot.draining)

    @property
    def draining(self) -> tuple[str, ...]:
        """Names of the replicas that only finish what they run."""
        return tuple(slot.replica.name for slot in self._slots if slot.draining)

    # ------------------------------------------------------------------------------------------------- time
    def offer(self, arrivals: Arrivals) -> None:
        """Requests that will arrive; they do when time advances. Raises ValueError for times already passed."""
        if len(arrivals) == 0:
            return
        earliest = max(self.now, self._last_offer)
        if arrivals.times[0] < earliest:
            raise ValueError(f"an arrival at {arrivals.times[0]} s lies before {earliest} s: offer in order of time")
        self._last_offer = float(arrivals.times[-1])
        prompts, outputs = arrivals.prompt_tokens, arrivals.output_tokens
        columns = (
            arrivals.times.tolist(),
            outputs.tolist(),
            (prompts + outputs / 2).tolist(),
            self.engine.prefill_seconds(prompts.astype(np.float64)).tolist(),
            prompts.tolist(),
        )
        self._offered.extend(map(Request._make, zip(*columns, strict=True)))

    def advance(self, to: float) -> None:
        """Lets time pass until `to` (seconds). Raises ValueError when that lies in the past."""
        if to < self.now:
            raise ValueError(f"cannot go back from {self.now} s to {to} s")
        offered = self._offered
        while offered and offered[0].arrival <= to:
            request = offered.popleft()
            self._finish_until(request.arrival)
            self._arrived += 1
            self.now = request.arrival
            self._route(request)
        self._finish_until(to)
        self.now = to
        self._reject_expired()
        for slot in self._slots:
            if len(slot.replica.ttfts) + len(slot.replica.gaps) > FLUSH_AT:
                self._count(slot)

    # ---------------------------------------------------------------------------------------------- readings
    def snapshot(self, name: str) -> page.Snapshot:
        """Gauges and counters of one replica. Raises KeyError when there is none of that name."""
        replica = self._slots[self._position(name)].replica
        return page.Snapshot(
            running=replica.running,
            waiting=len(replica.waiting),
            kv_usage=replica.kv_usage,
            finished=replica.finished,
            aborted=0,
            prompt_tokens=replica.prefilled(),
            generation_tokens=replica.generated(self.now),
        )

    def page(self, name: str) -> str:
        """The metrics page of one replica. Raises KeyError when there is none of that name."""
        slot = self._slots[self._position(name)]
        self._count(slot)
        return self._template.render(self.snapshot(name), slot.latencies)

    @property
    def queued(self) -> int:
        """Requests that wait: in the replicas and in the router."""
        return sum(len(slot.replica.waiting) for slot in self._slots) + len(self._router)

    @property
    def running(self) -> int:
        """Requests in the batches of all replicas, draining ones included."""
        return sum(slot.replica.running for slot in self._slots)

    def scorecard(self) -> Scorecard:
        """What came of all requests so far."""
        for slot in self._slots:
            self._count(slot)
        return Scorecard(
            requests=self._arrived,
            finished=self._finished_elsewhere + sum(slot.replica.finished for slot in self._slots),
            missed_ttft=self._recorder.missed + self._overdue(),
            rejected=self._rejected,
            in_flight=self.running + self.queued,
            ttft=self._recorder.ttft(),
            itl=self._recorder.itl(),
        )

    # ----------------------------------------------------------------------------------------------- inside
    def _position(self, name: str) -> int:
        for position, slot in enumerate(self._slots):
            if slot.replica.name == name:
                return position
        raise KeyError(f"no replica {name!r}; there are {[slot.replica.name for slot in self._slots]}")

    def _route(self, request: Request) -> None:
        """To the ready replica with the fewest in flight; of equals, to the oldest."""
        loads = self._loads
        least = min(loads, default=NEVER)
        if request.held > self.engine.kv_tokens:
            self._rejected += 1
        elif least == NEVER:
            self._router.append(request)
        else:
            position = loads.index(least)
            loads[position] = least + 1
            replica = self._slots[position].replica
            replica.take(request, self.now)
            self._finishes[position] = replica.next_finish

    def _dispatch(self, requests: Iterable[Request]) -> None:
        """Requests that come back to the router, oldest first."""
        if any(load < NEVER for load in self._loads):
            for request in requests:
                self._route(request)
        else:
            self._router = collections.deque(heapq.merge(self._router, requests))

    def _finish_until(self, time: float) -> None:
        finishes = self._finishes
        while finishes:
            soonest = min(finishes)
            if soonest > time:
                return
            position = finishes.index(soonest)
            slot = self._slots[position]
            slot.replica.finish()
            self._loads[position] -= 1
            finishes[position] = slot.replica.next_finish
            if slot.draining and slot.replica.running == 0:
                self._forget(position)

    def _forget(self, position: int) -> None:
        slot = self._slots.pop(position)
        del self._loads[position], self._finishes[position]
        self._count(slot)
        self._finished_elsewhere += slot.replica.finished

    def _reject_expired(self) -> None:
        while self._router and self._router[0].arrival + self._timeout <= self.now:
            self._router.popleft()
            self._rejected += 1

    def _overdue(self) -> int:
        latest = self.now - self._recorder.objective
        queues = [slot.replica.waiting for slot in self._slots]
        return sum(request.arrival < latest for queue in (*queues, self._router) for request in queue)

    def _count(self, slot: _Slot) -> None:
        """Moves what a replica has measured into the histograms."""
        replica = slot.replica
        if replica.ttfts:
            self._recorder.add_ttfts(replica.ttfts)
            slot.latencies.ttft.add(np.asarray(replica.ttfts))
            replica.ttfts = []
        if replica.gaps:
            self._recorder.add_gaps(replica.gaps, replica.outputs)
            slot.latencies.itl.add(np.asarray(replica.gaps), np.asarray(replica.outputs, dtype=np.int64))
            replica.gaps, replica.outputs = [], []
        if replica.durations:
            slot.latencies.e2e.add(np.asarray(replica.durations))
            replica.durations = []
