"""One pass of each loop: read -> history -> forecast -> plan -> decide -> write and record."""

import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

from models.capacity import mix
from models.policy.decision import Decision
from models.series import Series
from models.signals import Cause, Signal, Unknown
from predictor import deciding, learning, outlooks, recalling
from predictor.board import Board, Entry, Plans
from predictor.history import History
from predictor.outlooks import Outlooks, Pace
from predictor.ports import Clock, Readings, Refused, SignalSource, Workload, Workloads, Written
from predictor.targets import Mode, Target

SIZES_SHARE = 0.05  # of the time, at most, in which a source that cannot tell is asked for sizes of requests
RETRIED = (Cause.SOURCE_DOWN, Cause.PARTIAL)  # causes that pass; any other means that there is no history to be had

Answers: TypeAlias = list[tuple[str, Signal, Series | Unknown]]


class Recorder(Protocol):
    """Where the loops tell what happened: metrics and logs."""

    def tick(self, loop: str, *, seconds: float, outcome: str) -> None:
        """One pass ended, `outcome` one of "finished", "failed", "abandoned"."""
        ...

    def readings(self, target: Target, readings: Readings, *, now: float) -> None:
        """What a look gave."""
        ...

    def workload(self, target: Target, workload: Workload | Refused) -> None:
        """The state in the cluster, or why it cannot be had."""
        ...

    def history(self, *, loaded: bool) -> None:
        """The history was asked for."""
        ...

    def plans(self, target: Target, plans: Plans) -> None:
        """Forecasts and plans of a slow tick."""
        ...

    def decision(self, target: Target, decision: Decision, *, news: bool) -> None:
        """A decision; `news` when it says something else than the one before."""
        ...

    def row(self, entry: Entry, *, now: float) -> None:
        """All that is known of a target after a decision."""
        ...

    def write(self, target: Target, outcome: Written | Refused) -> None:
        """A write was tried."""
        ...


def _always() -> bool:
    return True


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """Everything outside, by port; `leads` tells whether this replica is the one that writes."""

    clock: Clock
    source: SignalSource
    workloads: Workloads
    recorder: Recorder
    leads: Callable[[], bool] = _always


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """What one look at the world gave; it began at `now` by the clock and at `at` in monotonic seconds."""

    now: float
    at: float
    readings: Mapping[str, Readings]
    workloads: Mapping[str, Workload | Refused]


class Loops:
    """The slow and the fast loop over the same board.

    The two may be called from two threads: looking happens side by side, deciding and writing one after the other.
    """

    def __init__(self, world: World, board: Board, *, history: History, outlooks: Outlooks, pace: Pace) -> None:
        self.board = board
        self.stopping = threading.Event()
        self._world = world
        self._history = history
        self._outlooks = outlooks
        self._pace = pace
        self._turn = threading.Lock()
        self._places = itertools.count(1)  # what came first; a wall clock that is set back does not say
        self._loaded = False
        self._recalled: set[str] = set()  # keys of targets of which the source has told how large requests were
        self._asked_for_sizes = float("-inf"), 0.0  # Unix time at which it was asked last, and for how long not again

    @property
    def loaded(self) -> bool:
        """Whether the history has been loaded; until then nothing is lowered."""
        return self._loaded

    def resume(self) -> None:
        """The history was loaded before, by loops that have ended; to be called before the first tick."""
        self._loaded = True

    @contextmanager
    def between_ticks(self) -> Iterator[Board]:
        """The board while neither loop changes it; waits for the one that does."""
        with self._turn:
            yield self.board

    def slow_tick(self) -> None:
        """Looks, loads the history where it is missing, forecasts, plans, decides and writes for every target."""
        with self._recorded("slow"):
            seen = self._look()
            past = None if self._loaded else self._ask_for_history(now=seen.now)
            sizes = self._ask_for_sizes(now=seen.now)
            with self._turn:
                if past is not None:
                    self._load(past)
                self._recall(sizes, now=seen.now)
                self._absorb(seen)
                self._outlooks.refresh(self.board, now=seen.now)
                self._act(seen, within=self._pace.slow)

    def fast_tick(self) -> None:
        """Looks, decides and writes for every target with the plans of the last slow tick."""
        with self._recorded("fast"):
            seen = self._look()
            with self._turn:
                self._absorb(seen)
                self._act(seen, within=self._pace.fast)

    def _look(self) -> Seen:
        at, now = time.monotonic(), self._world.clock.now()
        targets = self.board.targets
        workloads = self._world.workloads.observe(targets, now=now)
        return Seen(now, at, self._world.source.read(targets, now=now), workloads)

    def _absorb(self, seen: Seen) -> None:
        for key, entry in self.board.entries.items():
            entry.readings = seen.readings[key]
            entry.workload = seen.workloads[key]
            if entry.capacity is None and isinstance(entry.workload, Workload):
                # The first plans, too, are made with what was learned before a restart.
                entry.capacity = learning.known(entry, entry.workload)
            demanded = deciding.demanded(entry)
            for signal in remembered(entry.target):
                if signal in demanded:
                    self._history.record(key, signal, demanded[signal], now=seen.now)

    def _ask_for_history(self, *, now: float) -> Answers:
        """What the source still has; it is asked no further once it answers for no target at all."""
        grid = {"since": now - self._history.span, "until": now, "step": self._history.step}
        answers: Answers = []
        for signal, targets in _by_signal(self.board.targets).items():
            given = self._world.source.history(targets, signal, **grid)
            answers += [(key, signal, answer) for key, answer in given.items()]
            if given and all(_has_cause(answer, Cause.SOURCE_DOWN) for answer in given.values()):
                break
        return answers

    def _load(self, answers: Answers) -> None:
        """Takes the past in. While some of it may still be had, the next slow tick asks again."""
        for key, signal, answer in answers:
            if not isinstance(answer, Unknown):
                self._history.load(key, signal, answer)
        self._loaded = not any(_has_cause(answer, *RETRIED) for _, _, answer in answers)
        self._world.recorder.history(loaded=self._loaded)

    def _ask_for_sizes(self, *, now: float) -> recalling.Past:
        """How large requests were, of targets for which that matters and was not answered yet.

        A source that takes minutes to say nothing must not make every slow tick late: plans grow too old to count.
        """
        asked_at, wait = self._asked_for_sizes
        if self._loaded and 0 <= now - asked_at < wait:
            return {}
        entries = [entry for key, entry in self.board.entries.items() if key not in self._recalled]
        targets = [entry.target for entry in entries if recalling.wanted(entry, loaded=self._loaded)]
        if not targets:
            return {}
        began = time.monotonic()
        found = recalling.past(self._world.source, targets, now=now, lag=self._pace.rates_lag)
        self._asked_for_sizes = now, (time.monotonic() - began) / SIZES_SHARE
        return found

    def _recall(self, sizes: recalling.Past, *, now: float) -> None:
        """Goes on from them where they tell more than what was kept, or seen since the start."""
        for key, found in sizes.items():
            if recalling.answered(found):
                self._recalled.add(key)
            if not isinstance(found, Unknown):
                entry = self.board.entries[key]
                entry.mix = mix.fuller(entry.mix, found, now=now)

    def _act(self, seen: Seen, *, within: float) -> None:
        # Counted from here: a source that takes longer than the loop's distance to say nothing must not keep every tick
        # from telling so, and the service from being alive.
        until = time.monotonic() + (self._pace.deadline or within)
        # Who has waited longest comes first: where the API server is slow, the last ones are not always the same.
        for entry in sorted(self.board.entries.values(), key=lambda entry: entry.acted_at):
            if self.stopping.is_set() or time.monotonic() > until:
                raise Abandoned
            self._act_on(entry, seen)

    def _act_on(self, entry: Entry, seen: Seen) -> None:
        if entry.acted_at > seen.at:
            return  # the other loop acted after this look: what was seen is no longer what stands
        workload, now = seen.workloads[entry.target.key], seen.now
        entry.refused = workload if isinstance(workload, Refused) else None
        if isinstance(workload, Workload):
            decision = deciding.decide(
                entry,
                workload,
                now=now,
                loading=not self._loaded,
                pace=self._pace,
                others=self.board.entries.values(),
            )
            news = entry.remember(decision)
            done = self._carry_out(entry, workload, decision, now=now)
            entry.acted_at = time.monotonic()
            if workload.advice or (done and (news or decision.changes)):
                # After the write, which must not wait for an Event.
                self._world.workloads.announce(entry.target, decision)
        self._record(entry, workload, now=now)

    def _carry_out(self, entry: Entry, workload: Workload, decision: Decision, *, now: float) -> bool:
        """Writes the number where that is to be done; False when it was refused, or is another replica's to do."""
        if entry.target.mode is Mode.SHADOW or workload.advice:
            entry.shadow_floor = decision.replicas
            entry.refused = None if entry.target.mode is Mode.SHADOW else workload.advice
            return entry.refused is None
        entry.shadow_floor = None
        if not self._world.leads():
            return False
        if decision.changes:
            outcome = self._world.workloads.write(entry.target, decision.replicas, seen=workload, now=now)
            entry.refused = outcome if isinstance(outcome, Refused) else None
            self._world.recorder.write(entry.target, outcome)
        return entry.refused is None

    def _record(self, entry: Entry, workload: Workload | Refused, *, now: float) -> None:
        recorder = self._world.recorder
        recorder.readings(entry.target, entry.readings, now=now)
        recorder.workload(entry.target, workload)
        if entry.plans and entry.plans.made_at == now:
            recorder.plans(entry.target, entry.plans)
        if entry.decision and entry.decision.at == now:
            recorder.decision(entry.target, entry.decision, news=entry.history[-1] is entry.decision)
            recorder.row(entry, now=now)

    @contextmanager
    def _recorded(self, loop: str) -> Iterator[None]:
        """Times a tick and reports how it ended; a failure is reported and passed on to the scheduler's log."""
        start = time.monotonic()
        outcome = "failed"
        try:
            yield
            outcome = "finished"
        except Abandoned:
            outcome = "abandoned"
        finally:
            self._world.recorder.tick(loop, seconds=time.monotonic() - start, outcome=outcome)


class Abandoned(Exception):  # noqa: N818  (no error: the service was asked to stop)
    """A tick was given up between two targets: the service is stopping, or the next tick is due."""


def remembered(target: Target) -> tuple[Signal, ...]:
    """The signals of which a target's past is kept, and asked for at the start."""
    return (*outlooks.signals(target), Signal.DURATION_MEAN)


def _by_signal(targets: Sequence[Target]) -> dict[Signal, list[Target]]:
    """The targets whose past is asked for, by signal."""
    found: dict[Signal, list[Target]] = {}
    for target in targets:
        for signal in remembered(target):
            found.setdefault(signal, []).append(target)
    return found


def _has_cause(answer: Series | Unknown, *causes: Cause) -> bool:
    return isinstance(answer, Unknown) and answer.cause in causes
