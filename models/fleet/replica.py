"""One replica: continuous batching, first come first served, at one event per admission and one per finish.

Approximations, each one named:

* Decoding is processor sharing. `progress` counts the steps since the start; every sequence of the batch gets one token
  a step, and the length of a step changes only when a sequence joins or leaves (not as its context grows by a token).
* A sequence holds its prompt and half of its output in the KV cache for all of its life: its mean, not its growth.
  Admission reserves that, so no sequence is ever preempted.
* Prefills are worked off one after the other; each one stalls decoding for the time it adds to the steps.
* The first token comes one step after the prefill, plus half a step of the batch that was under way on arrival.
* The gaps between the tokens of one request all count at their mean, when the request finishes.
"""

import collections
import heapq
from typing import NamedTuple

from models.fleet.engine import MILLISECOND, Engine

NEVER = float("inf")


class Request(NamedTuple):
    """A request as the simulation carries it; times and lengths in seconds and tokens."""

    arrival: float
    output: int
    held: float  # KV tokens: prompt and half of the output
    prefill: float  # seconds of prefill
    prompt: int


class Replica:
    """One replica; time is what it is told, and never goes back."""

    __slots__ = (
        "_base", "_batch", "_capacity", "_clock", "_delay", "_most", "_per_token", "_progress", "_started", "_step",
        "done_prompt_tokens", "done_tokens", "durations", "finished", "gaps", "held", "loaded", "name", "next_finish",
        "outputs", "running", "ttfts", "waiting",
    )  # fmt: skip

    def __init__(self, name: str, engine: Engine) -> None:
        self.name = name
        self._base = engine.decode_steps()
        self._per_token = engine.law.c * MILLISECOND
        self._delay = engine.law.alpha0 * MILLISECOND
        self._most = engine.max_num_seqs
        self._capacity = float(engine.kv_tokens)
        self._batch: list[tuple[float, float, Request]] = []  # (progress at the last token, time of the first, request)
        self._progress = 0.0
        self._clock = 0.0  # time at which `_progress` holds; ahead of the present while a prefill is worked off
        self._step = self._base[0]
        self._started = 0.0  # sum of the progress at which the running ones started
        self.waiting: collections.deque[Request] = collections.deque()
        self.running = 0
        self.held = 0.0
        self.next_finish = NEVER
        self.finished = 0
        self.done_tokens = 0
        self.done_prompt_tokens = 0
        # Not yet counted in the histograms; whoever reads them empties them.
        self.ttfts: list[float] = []
        self.durations: list[float] = []
        self.gaps: list[float] = []
        self.outputs: list[int] = []

    @property
    def kv_usage(self) -> float:
        """Share of the KV cache in use, 0..1."""
        return min(self.held / self._capacity, 1.0)

    def take(self, request: Request, now: float) -> None:
        """Admits the request, or lets it wait where the batch or the KV cache is full."""
        if self.running < self._most and not self.waiting and self.held + request.held <= self._capacity:
            self._admit(request, now)
        else:
            self.waiting.append(request)

    def finish(self) -> None:
        """Lets the next sequence finish, at `next_finish`, and admits whoever then has room."""
        now = self.next_finish
        last, first, request = heapq.heappop(self._batch)
        arrival, output, held, _prefill, prompt = request
        self._progress = last
        self._clock = now
        self.running -= 1
        self.held = self.held - held if self.running else 0.0
        self._started -= last - output
        self._step = self._base[self.running] + self._per_token * self.held
        self.finished += 1
        self.done_tokens += output
        self.done_prompt_tokens += prompt
        end = now + self._delay
        self.durations.append(end - arrival)
        if output > 1:
            self.gaps.append((end - first) / (output - 1))
            self.outputs.append(output - 1)
        waiting = self.waiting
        while waiting and self.running < self._most and self.held + waiting[0].held <= self._capacity:
            self._admit(waiting.popleft(), now)
        batch = self._batch
        self.next_finish = self._clock + (batch[0][0] - self._progress) * self._step if batch else NEVER

    def generated(self, now: float) -> int:
        """Tokens generated since the start, those of the running sequences included."""
        ahead = max(now - self._clock, 0.0) / self._step if self.running else 0.0
        return self.done_tokens + int(max(self.running * (self._progress + ahead) - self._started, 0.0))

    def prefilled(self) -> int:
        """Prompt tokens taken in since the start."""
        return self.done_prompt_tokens + sum(request.prompt for _, _, request in self._batch)

    def _admit(self, request: Request, now: float) -> None:
        arrival, output, held, prefill, _prompt = request
        running = self.running
        under_way = 0.0
        if running:
            under_way = self._step / 2
            if self._clock < now:
                self._progress += (now - self._clock) / self._step
                self._clock = now
        elif self._clock < now:
            self._clock = now
        self.running = running = running + 1
        self.held = total = self.held + held
        self._step = step = self._base[running] + self._per_token * total
        self._clock = clock = self._clock + prefill
        self._started += self._progress
        first = clock + step + under_way + self._delay
        batch = self._batch
        heapq.heappush(batch, (self._progress + output, first, request))
        self.ttfts.append(first - arrival)
        self.next_finish = clock + (batch[0][0] - self._progress) * step
