"""Two loops, threads and clocks: what comes late, overtakes, fails or jumps."""

import dataclasses
import threading

import pytest

from models.forecasting.engine import Forecaster
from models.policy.decision import Reason
from models.signals import Signal
from predictor.board import Board
from predictor.history import History
from predictor.loops import Loops, World, remembered
from predictor.outlooks import Outlooks
from tests.fakes.stage import FLOOR, PACE, SEASON, TARGET, Stage, demand
from tests.fakes.world import FakeSource


@pytest.mark.parametrize("jump", [-86400.0, -3600.0, -60.0, 3600.0, 86400.0])
def test_a_clock_that_is_set_anew_stops_no_decision_and_shortens_no_hold(jump: float) -> None:
    stage = Stage(demand(lambda _: 310.0))
    stage.pass_time(60)
    assert stage.standing() == 8
    stage.source.values[Signal.IN_FLIGHT] = lambda _: 40.0
    stage.clock.time += jump
    stage.pass_time(FLOOR.hold - PACE.fast)
    assert stage.standing() == 8
    stage.pass_time(1800)
    assert stage.standing() < 8  # nor does it lengthen one by what it jumped
    stage.source.values[Signal.IN_FLIGHT] = lambda _: 390.0
    stage.pass_time(PACE.fast)
    assert stage.standing() == 10


def test_a_clock_set_back_does_not_keep_the_fast_loop_from_a_backlog() -> None:
    stage = Stage(demand(lambda _: 70.0))
    stage.pass_time(60)
    stage.clock.time -= 3600
    stage.source.values[Signal.IN_FLIGHT] = lambda _: 390.0
    stage.pass_time(PACE.fast)
    assert stage.standing() == 10


def test_plans_of_a_slow_loop_that_died_stop_counting() -> None:
    stage = Stage(demand(lambda time: 310.0 if time < SEASON * 300 + 60 else 40.0))
    stage.pass_time(60)
    for _ in range(100):
        stage.clock.time += PACE.fast
        stage.loops.fast_tick()
    assert stage.standing() == 8
    assert stage.entry.decision.reason is Reason.HELD_NO_FORECAST


def test_a_stopping_service_abandons_the_tick_between_two_targets() -> None:
    stage = Stage(demand())
    stage.loops.stopping.set()
    stage.loops.slow_tick()
    assert stage.recorder.ticks == [("slow", "abandoned")]
    assert stage.workloads.writes == []


def test_a_tick_that_fails_is_recorded_and_not_swallowed() -> None:
    stage = Stage(FakeSource(in_flight=lambda _: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        stage.loops.fast_tick()
    assert stage.recorder.ticks == [("fast", "failed")]


def test_a_look_that_the_other_loop_has_overtaken_decides_nothing() -> None:
    """The slow loop looks, the fast loop looks, decides and writes, then the slow loop's turn comes."""
    stage = Stage(demand(lambda _: 310.0))
    looking = stage.source.read

    def slowly(targets, *, now):  # noqa: ANN001, ANN202  (the source's own)
        stage.source.read = looking
        seen = looking(targets, now=now)
        stage.clock.time += 1
        stage.loops.fast_tick()
        return seen

    stage.source.read = slowly
    stage.loops.slow_tick()
    assert [replicas for _, _, replicas in stage.workloads.writes] == [8]
    assert len(stage.recorder.decisions) == 1
    assert stage.entry.plans is not None  # the forecast was made all the same


def test_a_tick_that_takes_too_long_is_given_up_and_who_waited_longest_comes_first() -> None:
    names = ("a", "b", "c")
    targets = [dataclasses.replace(TARGET, name=name) for name in names]
    stage = Stage(demand(lambda _: 70.0))
    history = History(step=30, span=3600)
    outlooks = Outlooks(Forecaster(), history, PACE)
    world = World(stage.clock, stage.source, stage.workloads, stage.recorder)
    hasty = dataclasses.replace(PACE, deadline=1e-9)
    loops = Loops(world, Board(targets), history=history, outlooks=outlooks, pace=hasty)
    loops.board.entries["llm/a"].acted_at = 2
    loops.board.entries["llm/b"].acted_at = 1
    loops.fast_tick()
    assert stage.recorder.ticks == [("fast", "abandoned")]

    class Stops:
        """Says stop after the first target."""

        def __init__(self) -> None:
            self.asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 1

    patient = Loops(world, loops.board, history=history, outlooks=outlooks, pace=PACE)
    patient.stopping = Stops()  # type: ignore[assignment]
    patient.fast_tick()
    assert [key for key, entry in loops.board.entries.items() if entry.decision] == ["llm/c"]


def test_a_clock_that_is_set_back_stops_no_decision() -> None:
    stage = Stage(demand(lambda _: 70.0))
    stage.pass_time(60)
    stage.clock.time -= 3600
    stage.source.values[Signal.IN_FLIGHT] = lambda _: 310.0
    stage.loops.fast_tick()
    assert stage.standing() == 8


def test_a_source_slower_than_the_loop_keeps_no_tick_from_deciding() -> None:
    stage = Stage(demand(lambda _: 310.0))
    stage.loops = Loops(
        World(stage.clock, Slow(stage.source, seconds=0.1), stage.workloads, stage.recorder),
        Board([TARGET]),
        history=History(step=30, span=3600),
        outlooks=Outlooks(Forecaster(), History(step=30, span=3600), PACE),
        pace=dataclasses.replace(PACE, deadline=0.09),
    )
    stage.loops.fast_tick()
    assert stage.recorder.ticks == [("fast", "finished")]
    assert stage.standing() == 8


class Slow:
    """A source that takes its time."""

    def __init__(self, source: FakeSource, *, seconds: float) -> None:
        self._source = source
        self._seconds = seconds

    def read(self, targets, *, now):  # noqa: ANN001, ANN201  (the source's own)
        threading.Event().wait(self._seconds)
        return self._source.read(targets, now=now)


def test_the_past_is_taken_in_while_no_other_loop_reads_or_writes_it() -> None:
    class Watched(History):
        """Lets a fast tick start while the past is taken in, and looks whether it gets in between."""

        recorded = 0
        meanwhile = -1

        def record(self, *arguments, **named) -> None:  # noqa: ANN002, ANN003
            self.recorded += 1
            super().record(*arguments, **named)

        def load(self, *arguments) -> None:  # noqa: ANN002
            if self.meanwhile < 0:
                other.start()
                other.join(0.2)
                self.meanwhile = self.recorded
            super().load(*arguments)

    stage = Stage(demand())
    history = Watched(step=30, span=3600)
    world = World(stage.clock, stage.source, stage.workloads, stage.recorder)
    loops = Loops(world, Board([TARGET]), history=history, outlooks=Outlooks(Forecaster(), history, PACE), pace=PACE)
    other = threading.Thread(target=loops.fast_tick)
    loops.slow_tick()
    other.join()
    assert history.meanwhile == 0
    assert history.recorded > 0


def test_a_source_that_is_down_is_asked_for_one_signal_of_the_past_a_tick() -> None:
    stage = Stage(demand())
    asked: list[Signal] = []
    answer = stage.source.history
    stage.source.history = lambda targets, signal, **grid: asked.append(signal) or answer(targets, signal, **grid)  # type: ignore[func-returns-value]
    stage.source.down = True
    stage.loops.slow_tick()
    assert len(asked) == 1
    stage.source.down = False
    stage.loops.slow_tick()
    assert len(asked) == 1 + len(remembered(TARGET))
    assert stage.recorder.loads == [False, True]
