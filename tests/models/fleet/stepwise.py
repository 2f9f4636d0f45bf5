"""The scheduler once more, plainly, one step and one sequence at a time: slow, and easy to compare with vLLM's."""

import collections
import dataclasses
import math

from models.fleet.profiles import Profile
from models.fleet.requests import Requests


@dataclasses.dataclass(eq=False)
class Sequence:
    number: int
    arrival: float
    prompt: int
    output: int
    made: int = 0
    computed: int = 0
    decodes: bool = False
    first: float = math.nan
    end: float = math.nan

    @property
    def tokens(self) -> int:
        return self.prompt + self.made


class Stepwise:
    """One replica that serves a list of requests."""

    def __init__(self, profile: Profile, given: Requests) -> None:
        self.profile = profile
        self.sequences = [
            Sequence(k, *values)
            for k, values in enumerate(
                zip(given.times.tolist(), given.prompts.tolist(), given.outputs.tolist(), strict=True)
            )
        ]
        self.waiting: collections.deque[Sequence] = collections.deque()
        self.running: list[Sequence] = []
        self.ended: list[Sequence] = []  # finished, but still holding what they had
        self.preemptions = self.peak = 0

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.profile.block)

    @property
    def free(self) -> int:
        return self.profile.blocks - sum(self.blocks(each.computed) for each in (*self.running, *self.ended))

    def serve(self) -> None:
        coming = collections.deque(self.sequences)
        now, seen = 0.0, 0.0
        while coming or self.waiting or self.running:
            if not self.running and not self.waiting:
                now = max(now, coming[0].arrival)
            while coming and coming[0].arrival <= now:
                self.waiting.append(coming.popleft())
            if not self.running:
                self.ended.clear()
                seen = now
            began, now = now, now + self.step(now, seen)
            seen = began if self.profile.async_scheduling else now

    def step(self, now: float, seen: float) -> float:
        budget, preempted = self.profile.token_budget, False
        chunks: dict[Sequence, int] = {}
        for each in list(self.running):
            if each not in self.running:
                continue
            wanted = min(each.tokens - each.computed, budget)
            while each in self.running and self.blocks(each.computed + wanted) - self.blocks(each.computed) > self.room(
                chunks
            ):
                victim = self.running.pop()
                chunks.pop(victim, None)
                victim.computed, victim.decodes = 0, False
                self.waiting.appendleft(victim)
                self.preemptions += 1
                preempted = True
            if each in self.running:
                chunks[each] = wanted
                budget -= wanted
        preempted = preempted and bool(self.running)
        while self.waiting and not preempted and budget > 0:
            head = self.waiting[0]
            wanted = min(head.tokens, budget)
            needed = head.tokens if self.profile.reserve_prompt else wanted
            places = len(self.running) + len(self.ended)
            late = head.arrival > seen and not head.made
            if late or places == self.profile.max_num_seqs or self.blocks(needed) > self.room(chunks):
                break
            self.running.append(self.waiting.popleft())
            chunks[head] = wanted
            budget -= wanted
            self.peak = max(self.peak, places + 1)
        self.ended.clear()
        return self.run(chunks, now) if chunks else 0.0

    def room(self, chunks: dict[Sequence, int]) -> int:
        return self.free - sum(self.blocks(s.computed + n) - self.blocks(s.computed) for s, n in chunks.items())

    def run(self, chunks: dict[Sequence, int], now: float) -> float:
        decoding = [s for s in chunks if s.decodes]
        prefill = {s: n for s, n in chunks.items() if not s.decodes}
        seconds = 1e-3 * self.profile.law.step(
            decoding=len(decoding),
            prefill=sum(prefill.values()),
            context=sum(s.tokens for s in decoding),
            square=sum(n * (s.computed + n / 2) for s, n in prefill.items()),
        )
        for each, count in chunks.items():
            each.computed += count
            if each.computed == each.tokens:
                each.made += 1
                each.decodes = True
                if math.isnan(each.first):
                    each.first = now + seconds
                if each.made == each.output:
                    each.end = now + seconds
                    self.running.remove(each)
                    if self.profile.async_scheduling:
                        self.ended.append(each)
        return seconds
