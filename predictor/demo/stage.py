"""Both fleets on one clock, the loops over one of them: what the page shows and the headless run counts."""

import collections
import threading
from typing import Any

from models.fleet import entry
from models.forecasting.engine import Forecaster
from models.forecasting.settings import DAY, HOUR
from models.policy.decision import Decision
from models.series import Series
from models.signals import Signal
from predictor.board import Board, Entry, Plans
from predictor.demo import film, scenario
from predictor.demo.cluster import Autoscaled, SimulatedCluster
from predictor.demo.options import MOST_DAYS, DemoOptions
from predictor.demo.past import WarmStart
from predictor.history import History
from predictor.loops import Loops, World
from predictor.outlooks import Outlooks
from predictor.ports import Owner, Readings, Refused, SignalSource, Workload, Written
from predictor.targets import Target

STEP = scenario.PACE.fast  # one fast tick, and one sync of the HPA, which is every 15 s by default as well
FRAME = 60.0
PREPARING = "compiling the simulated fleet, which takes half a minute the first time on a machine"


class SimulatedClock:
    """The scenario's clock: stands still until the stage moves it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Unix time, seconds."""
        return scenario.MIDNIGHT + self.seconds


class Chronicle:
    """A recorder that keeps the decisions which changed the number; the board has all else that the demo shows."""

    KEPT = 16

    def __init__(self) -> None:
        self.changes: collections.deque[Decision] = collections.deque(maxlen=self.KEPT)

    def decision(self, target: Target, decision: Decision, *, news: bool) -> None:  # noqa: ARG002
        """Kept when it changed the number."""
        if decision.changes:
            self.changes.appendleft(decision)

    def tick(self, loop: str, *, seconds: float, outcome: str) -> None:
        """Not shown."""

    def history(self, *, loaded: bool) -> None:
        """Not shown."""

    def readings(self, target: Target, readings: Readings, *, now: float) -> None:
        """Not shown."""

    def workload(self, target: Target, workload: Workload | Refused) -> None:
        """Not shown."""

    def plans(self, target: Target, plans: Plans) -> None:
        """Not shown."""

    def write(self, target: Target, outcome: Written | Refused) -> None:
        """Not shown."""

    def row(self, entry: Entry, *, now: float) -> None:
        """Not shown: the board has it."""


class Stage:
    """The day, step by step. One thread plays; any other may look, holding `lock`."""

    def __init__(self, options: DemoOptions) -> None:
        """Both fleets at midnight; `begin` before the first step."""
        self.options = options
        self.clock = SimulatedClock()
        self.lock = threading.Lock()
        self.board = Board([scenario.TARGET])
        self.frames: list[film.Frame] = []
        self.chronicle = Chronicle()
        self.preparing = PREPARING
        self.traffic = scenario.days(options.seed)
        managed = scenario.rival(options.rival) if options.owner is Owner.HPA else None
        self.floorcast = Autoscaled(scenario.cluster(options.seed), hpa=managed)
        self.hpa = Autoscaled(scenario.cluster(options.seed), hpa=scenario.rival(options.rival))
        self._history = History(step=scenario.PACE.slow, span=MOST_DAYS * DAY)
        self._loops: Loops | None = None

    @property
    def entry(self) -> Entry:
        """The board's row of the one target."""
        return self.board.entries[scenario.TARGET.key]

    @property
    def seconds(self) -> float:
        """Simulated seconds since midnight."""
        return self.clock.seconds

    @property
    def over(self) -> bool:
        """Whether the simulated time asked for has passed."""
        return self.seconds >= self.options.hours * HOUR

    def remembered(self, signal: Signal) -> Series:
        """What the service has in its memory of a signal, up to the last whole point."""
        return self._history.series(scenario.TARGET.key, signal, now=self.clock.now() - self._history.step)

    def begin(self, source: SignalSource) -> None:
        """Builds the loops over a source that reads the pages of Floorcast's fleet, and takes the first decision."""
        entry.run()  # compiles it while nobody waits for the lock
        with self.lock:
            self.floorcast.begin()
            self.hpa.begin()
        history = self._history
        warm = WarmStart(source, self.traffic, seed=self.options.seed, days=self.options.days)
        self._loops = Loops(
            World(self.clock, warm, SimulatedCluster(self.floorcast), self.chronicle),
            self.board,
            history=history,
            outlooks=Outlooks(Forecaster(), history, scenario.PACE),
            pace=scenario.PACE,
        )
        self._loops.slow_tick()
        with self.lock:
            self.frames.append(self._frame())
            self.preparing = ""

    def step(self) -> None:
        """Lets one fast interval pass in both fleets, then lets the HPAs and the loops act.

        The HPAs come first, so that a floor written now is acted upon a whole interval later: the slowest they can be.
        """
        if self._loops is None:
            raise RuntimeError("begin() comes before the first step()")
        until = min(self.seconds + STEP, self.options.hours * HOUR)
        arrivals = self.traffic.between(self.seconds, until)
        with self.lock:
            for side in (self.floorcast, self.hpa):
                side.serve(arrivals, until=until)
                side.sync()
            self.clock.seconds = until
        if until % scenario.PACE.slow == 0:
            self._loops.slow_tick()
        else:
            self._loops.fast_tick()
        with self.lock:
            if until % FRAME == 0 or self.over:
                self.frames.append(self._frame())

    def state(self) -> dict[str, Any]:
        """The present, for the page."""
        with self.lock:
            return {
                "t": self.seconds,
                "end": self.options.hours * HOUR,
                "over": self.over,
                "preparing": self.preparing,
                "frames": len(self.frames),
                "floorcast": film.replicas(self.floorcast),
                "hpa": film.replicas(self.hpa),
                "decision": film.decision(self.entry.decision) if self.entry.decision else None,
                "changes": [film.decision(change) for change in self.chronicle.changes],
                "hpa_note": self.hpa.last.note if self.hpa.last else "",
            }

    def _frame(self) -> film.Frame:
        floor = self.floorcast.minimum if self.floorcast.hpa else None
        ours = film.standing(self.floorcast, floor=floor)
        before = self.frames[-1] if self.frames else None
        passed = self.seconds - before.t if before else 0.0
        quantiles, ahead = film.band(self.entry)
        return film.Frame(
            t=self.seconds,
            arrivals=round((ours.requests - before.floorcast.requests) / passed, 3) if before and passed else 0.0,
            band=quantiles,
            ahead=ahead,
            room=film.room(self.entry),
            floorcast=ours,
            hpa=film.standing(self.hpa, floor=None),
        )
