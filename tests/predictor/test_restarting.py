"""Scenarios: a service that is started anew, or taken over from, half-way decides as one that went on."""

import dataclasses
from pathlib import Path

import pytest

from models.capacity.trusting import Learn
from models.forecasting.engine import Forecaster
from models.forecasting.settings import ForecastSettings
from predictor.board import Board
from predictor.history import History
from predictor.keeping import Keeping, Place
from predictor.loops import Loops, World
from predictor.outlooks import Outlooks, Pace
from predictor.ports import Workload
from predictor.targets import Learning
from tests.fakes.pod_fleet import Observer, PodFleet
from tests.fakes.stage import SEASON, TARGET
from tests.fakes.world import FakeClock, FakeRecorder

PACE = Pace(slow=60, fast=20, signal_age=15)
LEARNS = dataclasses.replace(TARGET, learning=Learning(ttft=2.0, learn=Learn.BOTH))
BEGIN = SEASON * 300
RESTART = BEGIN + 3 * SEASON + SEASON * 2 / 3 - 60  # a minute before the end of a busy time: all is needed then
END = RESTART + SEASON
KEY = LEARNS.key


def demand(time: float) -> float:
    """60 in flight, 230 in the middle third of every hour."""
    return 230.0 if SEASON / 3 <= time % SEASON < SEASON * 2 / 3 else 60.0


class Process:
    """The loops over a fleet.

    Args:
        fleet: what runs.
        clock: what time it is.
        folder: where it finds what was learned before; None for nowhere.
        past: a process whose history it has, as it would load it from Prometheus, with the forecasts that come of it.
    """

    def __init__(
        self, fleet: PodFleet, clock: FakeClock, folder: Path | None = None, *, past: "Process | None" = None
    ) -> None:
        self.leads = True
        self.board, self.seen = Board([LEARNS]), Observer(fleet)
        self.history = past.history if past else History(step=PACE.slow, span=48 * 3600)
        forecaster = Forecaster(ForecastSettings(seasons=(SEASON,)))
        self.outlooks = past.outlooks if past else Outlooks(forecaster, self.history, PACE)
        world = World(clock, self.seen, self.seen, FakeRecorder(), lambda: self.leads)
        self.loops = Loops(world, self.board, history=self.history, outlooks=self.outlooks, pace=PACE)
        if past:
            self.loops.resume()
        place = Place(self.loops.between_ticks, self.seen.warm_ups, lambda: self.leads, clock)
        self.keeping = Keeping(folder, place) if folder else None
        if self.keeping:
            self.keeping.give(self.board)

    def tick(self, now: float) -> None:
        (self.loops.slow_tick if now % PACE.slow == 0 else self.loops.fast_tick)()

    @property
    def known(self) -> tuple[float | None, int, float]:
        """The warm-up it plans with, of how many starts, and the concurrency."""
        entry = self.board.entries[KEY]
        assert isinstance(entry.workload, Workload)
        assert entry.workload.warm_up is not None
        usual = entry.workload.warm_up
        return usual.seconds, usual.measured, round(entry.objectives.profile.concurrency, 1)


class Play:
    """A fleet, and the processes over it."""

    def __init__(self) -> None:
        self.clock = FakeClock(BEGIN)
        self.fleet = PodFleet(demand, BEGIN)

    def until(self, time: float, *processes: Process) -> "Play":
        while self.clock.time < time:
            for process in processes:
                process.tick(self.clock.time)
            self.clock.time += PACE.fast
            self.fleet.now = self.clock.time
        return self

    def change(self) -> float:
        """From now on there may be more replicas than four, and what they are thought to sustain matters."""
        self.fleet.maximum = 40
        return self.clock.time

    def written(self) -> list[tuple[float, int]]:
        """The floors written since the change."""
        return [(at, floor) for at, floor in self.fleet.written if at >= RESTART]


@pytest.fixture(scope="module")
def went_on() -> tuple[Play, Process]:
    play = Play()
    process = Process(play.fleet, play.clock)
    play.until(RESTART, process).change()
    return play.until(END, process), process


def restarted(folder: Path | None) -> tuple[Play, Process]:
    """The process ends at RESTART, and another begins."""
    play = Play()
    before = Process(play.fleet, play.clock, folder)
    play.until(RESTART, before).change()
    if before.keeping:
        before.keeping.save()
    after = Process(play.fleet, play.clock, folder, past=before)
    return play.until(END, after), after


def test_a_service_that_was_restarted_decides_as_one_that_went_on(
    went_on: tuple[Play, Process], tmp_path: Path
) -> None:
    play, process = restarted(tmp_path)
    assert play.written() == went_on[0].written()
    assert process.known == went_on[1].known
    seconds, measured, concurrency = process.known
    assert (seconds, concurrency) == (240, pytest.approx(50.2))
    assert measured > 6


def test_without_the_file_it_would_decide_otherwise(went_on: tuple[Play, Process]) -> None:
    play, process = restarted(None)
    assert play.written() != went_on[0].written()
    assert process.known[2] == 40


def test_a_standby_has_learned_the_same_and_decides_as_the_leader_would_have(went_on: tuple[Play, Process]) -> None:
    play = Play()
    leader, standby = Process(play.fleet, play.clock), Process(play.fleet, play.clock)
    standby.leads = False
    play.until(RESTART, leader, standby).change()
    assert standby.known == leader.known
    standby.leads = True
    play.until(END, standby)
    assert play.written() == went_on[0].written()
    assert standby.known == went_on[1].known
