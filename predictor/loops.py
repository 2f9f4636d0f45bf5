"""One pass of each loop: read -> history -> forecast -> plan -> decide -> write and record."""

import dataclasses
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from models.policy.decision import Decision
from models.signals import Cause, Signal, Unknown
from predictor import deciding
from predictor.board import Board, Entry, Plans
from predictor.history import History
from predictor.outlooks import FORECAST_SIGNALS, Outlooks, Pace
from predictor.ports import Clock, Readings, Refused, SignalSource, Workload, Workloads, Written
from predictor.targets import Mode, Target

LOADED_SIGNALS = (*FORECAST_SIGNALS, Signal.DURATION_MEAN)
PLANS_LIVE_FOR = 4  # slow intervals: one tick may fail and one be late before the fast loop stops trusting the plans


RETRIED = (Cause.SOURCE_DOWN, Cause.PARTIAL)  # causes that pass; any other means that there is no history to be had


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

    def write(self, target: Target, outcome: Written | Refused) -> None:
        """A write was tried."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """Everything outside, by port."""

    clock: Clock
    source: SignalSource
    workloads: Workloads
    recorder: Recorder


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """What one look at the world gave, and until when (monotonic seconds) it may be acted on."""

    now: float
    until: float
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
        self._loaded = False

    @property
    def loaded(self) -> bool:
        """Whether the history has been loaded; until then nothing is lowered."""
        return self._loaded

    def slow_tick(self) -> None:
        """Looks, loads the history where it is missing, forecasts, plans, decides and writes for every target."""
        with self._recorded("slow"):
            seen = self._look(self._pace.slow)
            if not self._loaded:
                self._loaded = self._load_history(now=seen.now)
                self._world.recorder.history(loaded=self._loaded)
            with self._turn:
                self._absorb(seen)
                self._outlooks.refresh(self.board, now=seen.now)
                self._act(seen)

    def fast_tick(self) -> None:
        """Looks, decides and writes for every target with the plans of the last slow tick."""
        with self._recorded("fast"):
            seen = self._look(self._pace.fast)
            with self._turn:
                self._absorb(seen)
                self._act(seen)

    def _look(self, interval: float) -> Seen:
        until = time.monotonic() + (self._pace.deadline or interval)
        now = self._world.clock.now()
        targets = self.board.targets
        workloads = self._world.workloads.observe(targets, now=now)
        return Seen(now, until, self._world.source.read(targets, now=now), workloads)

    def _absorb(self, seen: Seen) -> None:
        for key, entry in self.board.entries.items():
            entry.readings = seen.readings[key]
            entry.workload = seen.workloads[key]
            for signal in LOADED_SIGNALS:
                if signal in entry.readings:
                    self._history.record(key, signal, entry.readings[signal], now=seen.now)

    def _load_history(self, *, now: float) -> bool:
        """Asks the source for what it still has; False when it did not answer: the next slow tick asks again."""
        grid = {"since": now - self._history.span, "until": now, "step": self._history.step}
        complete = True
        for signal in LOADED_SIGNALS:
            for key, answer in self._world.source.history(self.board.targets, signal, **grid).items():
                if not isinstance(answer, Unknown):
                    self._history.load(key, signal, answer)
                elif answer.cause in RETRIED:
                    complete = False
        return complete

    def _act(self, seen: Seen) -> None:
        # Who has waited longest comes first: where the API server is slow, the last ones are not always the same.
        for entry in sorted(self.board.entries.values(), key=lambda entry: entry.acted_at):
            if self.stopping.is_set() or time.monotonic() > seen.until:
                raise Abandoned
            self._act_on(entry, seen.workloads[entry.target.key], now=seen.now)

    def _act_on(self, entry: Entry, workload: Workload | Refused, *, now: float) -> None:
        if entry.acted_at > now:
            return  # the other loop acted after this look: what was seen is no longer what stands
        entry.refused = workload if isinstance(workload, Refused) else None
        if isinstance(workload, Workload):
            ttl = PLANS_LIVE_FOR * self._pace.slow
            decision = deciding.decide(entry, workload, now=now, loading=not self._loaded, plans_ttl=ttl)
            if entry.remember(decision):
                self._world.workloads.announce(entry.target, decision)
            self._carry_out(entry, workload, decision, now=now)
            entry.acted_at = self._world.clock.now()
        self._record(entry, workload, now=now)

    def _carry_out(self, entry: Entry, workload: Workload, decision: Decision, *, now: float) -> None:
        if entry.target.mode is Mode.SHADOW:
            entry.shadow_floor = decision.replicas
        elif decision.changes:
            outcome = self._world.workloads.write(entry.target, decision.replicas, seen=workload, now=now)
            entry.refused = outcome if isinstance(outcome, Refused) else None
            self._world.recorder.write(entry.target, outcome)

    def _record(self, entry: Entry, workload: Workload | Refused, *, now: float) -> None:
        recorder = self._world.recorder
        recorder.readings(entry.target, entry.readings, now=now)
        recorder.workload(entry.target, workload)
        if entry.plans and entry.plans.made_at == now:
            recorder.plans(entry.target, entry.plans)
        if entry.decision and entry.decision.at == now:
            recorder.decision(entry.target, entry.decision, news=entry.history[-1] is entry.decision)

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
