"""A pool of equal replicas behind one router, driven in pieces: it is told what happens and lets time pass."""

import collections
import dataclasses
from typing import Any

import numpy as np

from models.fleet import entry, latency, layout, living, memory, requests
from models.fleet.layout import NEVER
from models.fleet.memory import PoolSettings
from models.fleet.profiles import Profile


@dataclasses.dataclass(frozen=True, slots=True)
class LifeEvent:
    """Something that happened to a replica: "ready", "crashed" or "gone"; and whether it had been sent a request."""

    at: float
    slot: int
    kind: str
    served: bool


KINDS = {layout.BECAME_READY: "ready", layout.CRASHED: "crashed", layout.GONE: "gone"}


class Pool:
    """Replicas, their router and their clients. All times in seconds on one axis, which never goes back.

    One `advance` or ten, arrivals offered in one go or in pieces (before their time): the results are the same bits.
    """

    def __init__(
        self, profile: Profile, settings: PoolSettings | None = None, *, start: float = 0.0, logged: int = 0
    ) -> None:
        """An empty pool at the time `start`; the first `logged` requests are written down one by one (see `log`)."""
        self.profile = profile
        self.settings = settings or PoolSettings()
        self._m = memory.allocate(profile, self.settings, start=start, logged=logged)
        self._chunks = collections.deque([requests.none()])  # the first one is being served
        self._chunk = self._chunks[0].chunk()
        self._offered_until = start
        self._pods = 0
        self._bound: layout.Memory | None = None
        self._now = self._m.pool["now"]

    # ------------------------------------------------------------------------------------------------- replicas
    def start(self, *, ready_at: float, crash_at: float = NEVER) -> int:
        """A replica that becomes ready at a time not passed yet; its slot, which stays its own until it is gone."""
        if ready_at < self.now:
            raise ValueError(f"ready at {ready_at} s lies before {self.now} s")
        empty = np.flatnonzero(self._m.replicas["phase"] == layout.EMPTY)
        if len(empty) == 0:
            self._m = memory.with_slots(self._m, 2 * len(self._m.replicas))
            return self.start(ready_at=ready_at, crash_at=crash_at)
        slot = int(empty[0])
        rep = self._m.replicas[slot]
        fresh = memory.blank_replica(slot, self.profile.blocks)
        self._m.replicas[slot] = fresh
        rep["phase"], rep["life_at"], rep["crash_at"], rep["pod"] = layout.STARTING, ready_at, crash_at, self._pods
        rep["command"] = living.SETTLE
        self._m.cache[slot]["session"] = layout.NOTHING
        self._pods += 1
        return slot

    def drain(self, slot: int, *, until: float = NEVER) -> None:
        """Takes no more requests, finishes those it has, and is gone then or at `until`."""
        rep = self._m.replicas[slot]
        if rep["phase"] != layout.READY:
            raise ValueError(f"slot {slot} is not ready: only a ready replica drains, others are killed")
        rep["command"], rep["drain_until"] = living.DRAIN, max(until, self.now)

    def kill(self, slot: int) -> None:
        """Gone at once; clients of what it was serving see an error."""
        self._m.replicas[slot]["command"] = living.KILL

    def mute(self, slot: int, *, until: float) -> None:
        """Its page cannot be scraped until then."""
        self._m.replicas[slot]["mute_until"] = until

    # ----------------------------------------------------------------------------------------------------- time
    @property
    def now(self) -> float:
        """The present, seconds."""
        return float(self._now.item())

    def offer(self, more: requests.Requests) -> None:
        """Requests that will arrive. Raises ValueError for times already passed."""
        if len(more) == 0:
            return
        earliest = max(self.now, self._offered_until)
        if more.times[0] < earliest:
            raise ValueError(f"an arrival at {more.times[0]} s lies before {earliest} s: offer in order of time")
        self._offered_until = float(more.times[-1])
        self._chunks.append(more)

    def advance(self, to: float) -> list[LifeEvent]:
        """Lets time pass until `to`, or until something happens to a replica; then it has to be called again.

        Returns what happened, at `now`; empty when `to` is reached. Raises ValueError when `to` lies in the past.
        """
        if to < self.now:
            raise ValueError(f"cannot go back from {self.now} s to {to} s")
        run = entry.run()
        while True:
            memory_now = self._m if self._bound is self._m else self.bound()
            answer = run(memory_now.pool, self._chunk, to, int(len(self._chunks) > 1))
            if answer == layout.REACHED:
                return []
            if answer == layout.NEED_ARRIVALS:
                self._chunks.popleft()
                self._chunk = self._chunks[0].chunk()
                self._m.pool["next_arrival"] = 0
            elif answer == layout.NEED_REQUESTS:
                self._m = memory.with_requests(self._m)
            elif answer == layout.NEED_DEADLINES:
                self._m = memory.with_deadlines(self._m)
            else:
                happened = self._happened()
                self._m.pool["life_count"] = 0
                return happened

    def bound(self) -> layout.Memory:
        """The memory as compiled code may be given it: the pool's record says where the arrays are.

        Addresses cost as much as some hundred requests: written when an array is new, or the pool is a copy.
        """
        if self._bound is not self._m:
            memory.bind(self._m)
            self._bound = self._m
        return self._m

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_bound", "_now")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy has arrays of its own, elsewhere."""
        self.__dict__.update(state, _bound=None, _now=state["_m"].pool["now"])

    def _happened(self) -> list[LifeEvent]:
        events = self._m.life[: int(self._m.pool[0]["life_count"])]
        served = self._m.replicas["arrived"]
        return [
            LifeEvent(float(e["at"]), int(e["slot"]), KINDS[int(e["kind"])], bool(served[e["slot"]])) for e in events
        ]

    # ----------------------------------------------------------------------------------------------- what is so
    @property
    def state(self) -> Any:  # noqa: ANN401  (a numpy record)
        """The pool's record: counters, gauges and integrals by name, as of the last event."""
        return self._m.pool[0]

    @property
    def replicas(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """The replicas' records, one a slot."""
        return self._m.replicas

    @property
    def memory(self) -> layout.Memory:
        """All of it."""
        return self._m

    @property
    def log(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """First token, end and first scheduling of the logged requests, seconds; NaN where it did not come to that."""
        return self._m.log

    def latencies(self) -> tuple[latency.Latency, latency.Latency, latency.Latency]:
        """Time to the first token, between tokens, and end to end, of all requests so far."""
        p = self.state
        ttft, itl, e2e = (latency.Latency(p[name].copy(), float(p[f"{name}_sum"])) for name in ("ttft", "itl", "e2e"))
        return ttft, itl, e2e
