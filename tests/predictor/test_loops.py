"""Scenarios: both loops walked by the clock over a world of fakes."""

import dataclasses
import itertools
import threading
from collections.abc import Callable

import pytest

from models.capacity import warmup
from models.capacity.profile import Profile
from models.forecasting.engine import Forecaster
from models.forecasting.settings import ForecastSettings
from models.policy.context import FloorSettings, Supply
from models.policy.decision import Reason
from models.policy.planning import Objectives
from models.signals import Signal
from predictor.board import Board
from predictor.history import History
from predictor.loops import LOADED_SIGNALS, Loops, World
from predictor.outlooks import Outlooks, Pace
from predictor.ports import Refused, Workload, Written
from predictor.targets import Kind, Mode, Target
from tests.fakes.world import CALM, FakeClock, FakeRecorder, FakeSource, FakeWorkloads

PACE = Pace(slow=30, fast=10, signal_age=15)
FLOOR = FloorSettings(hold=120, step_period=60)
TARGET = Target(
    namespace="llm",
    name="chat",
    kind=Kind.DEPLOYMENT,
    engine="vllm",
    model="m",
    mode=Mode.CONTROL,
    objectives=Objectives(profile=Profile(concurrency=40), floor=FLOOR),
    warm_up=60,
)
SEASON = 3600.0


def recurring(time: float) -> float:
    """70 requests in flight, 230 in the middle third of every hour."""
    return 230.0 if SEASON / 3 <= time % SEASON < SEASON * 2 / 3 else 70.0


class Stage:
    """A world, the loops over it, and a way to let time pass."""

    def __init__(
        self,
        source: FakeSource,
        *,
        target: Target = TARGET,
        workload: Workload | Refused = CALM,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self.clock = FakeClock(SEASON * 300)
        self.source, self.workloads, self.recorder = source, FakeWorkloads(workload), FakeRecorder()
        history = History(step=30, span=48 * 3600)
        forecaster = Forecaster(ForecastSettings(seasons=(SEASON,)))
        self.loops = Loops(
            World(self.clock, self.source, self.workloads, self.recorder, leads),
            Board([target]),
            history=history,
            outlooks=Outlooks(forecaster, history, PACE),
            pace=PACE,
        )

    @property
    def entry(self):  # noqa: ANN201  (the board's own row)
        return self.loops.board.entries[TARGET.key]

    def pass_time(self, seconds: float) -> None:
        """Runs every tick that falls due: the fast loop each 10 s, the slow loop first at each 30 s."""
        end = self.clock.time + seconds
        while self.clock.time < end:
            if self.clock.time % PACE.slow == 0:
                self.loops.slow_tick()
            self.loops.fast_tick()
            self.clock.time += PACE.fast

    def standing(self) -> int:
        state = self.workloads.state[TARGET.key]
        assert isinstance(state, Workload)
        return state.standing


def demand(function=recurring) -> FakeSource:  # noqa: ANN001  (a function of time)
    return FakeSource(in_flight=function, waiting=lambda _: 0.0)


def test_the_floor_rises_before_a_recurring_load_and_comes_down_in_steps_after_it() -> None:
    stage = Stage(demand())
    stage.pass_time(SEASON / 3 - 60)
    assert stage.standing() >= 6  # 230 in flight at 40 a replica, asked for a warm-up ahead
    stage.pass_time(SEASON / 3 + 60)
    assert stage.standing() >= 6
    stage.pass_time(SEASON / 4)
    assert stage.standing() == 2
    numbers = [replicas for _, _, replicas in stage.workloads.writes]
    down = [b - a for a, b in itertools.pairwise(numbers) if b < a]
    assert set(down) == {-1}


def test_a_load_that_no_forecast_saw_is_met_by_the_fast_loop() -> None:
    stage = Stage(demand(lambda time: 70.0 if time < SEASON * 300 + 95 else 390.0))
    stage.pass_time(110)
    assert stage.standing() == 10
    assert stage.entry.decision.reason is Reason.RAISED_FOR_BACKLOG


def test_nothing_comes_down_while_the_source_is_down_and_the_loops_go_on_when_it_returns() -> None:
    stage = Stage(demand(lambda time: 310.0 if time < SEASON * 300 + 60 else 40.0))
    stage.pass_time(60)
    assert stage.standing() == 8
    stage.source.down = True
    stage.pass_time(1800)
    assert stage.standing() == 8
    assert stage.entry.decision.reason is Reason.HELD_UNKNOWN
    assert "in_flight source_down" in stage.entry.decision.note
    stage.source.down = False
    stage.pass_time(1800)
    assert stage.standing() < 8
    assert {outcome for _, outcome in stage.recorder.ticks} == {"finished"}


@pytest.mark.parametrize("name", ["arrivals", "in_flight", "waiting", "kv_usage"])
def test_nothing_comes_down_while_any_signal_that_is_planned_for_is_unknown(name: str) -> None:
    values = {
        "arrivals": lambda _: 1.0,
        "in_flight": lambda _: 40.0,
        "waiting": lambda _: 0.0,
        "kv_usage": lambda _: 0.8,  # of 6 replicas at 800 tokens each: 6 are needed
    }
    planned = dataclasses.replace(TARGET.objectives, profile=Profile(concurrency=40, kv_tokens=1000))
    stage = Stage(
        FakeSource(**values),
        target=dataclasses.replace(TARGET, objectives=planned),
        workload=dataclasses.replace(CALM, supply=Supply(ready=6)),
    )
    stage.pass_time(60)
    assert stage.standing() == 6
    stage.source.missing = {Signal(name)}
    stage.pass_time(900)
    assert stage.standing() == 6
    assert stage.entry.decision.reason is Reason.HELD_UNKNOWN
    assert f"{name} empty" in stage.entry.decision.note


def test_kv_usage_that_nothing_is_planned_from_may_be_unknown() -> None:
    stage = Stage(FakeSource(in_flight=lambda _: 40.0, waiting=lambda _: 0.0, kv_usage=lambda _: 0.8))
    stage.source.missing = {Signal.KV_USAGE}
    stage.pass_time(60)
    assert stage.entry.decision.reason is Reason.AT_PLAN


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


def test_a_target_that_could_not_be_observed_for_long_is_held_before_it_is_lowered() -> None:
    """It was needed until a moment ago, but nobody decided anything meanwhile."""
    begin = SEASON * 300
    stage = Stage(demand(lambda time: 310.0 if time < begin + 3600 else 40.0))
    stage.pass_time(60)
    before = stage.workloads.state[TARGET.key]
    stage.workloads.state[TARGET.key] = Refused("Unreachable", "no answer")
    stage.pass_time(3600)
    stage.workloads.state[TARGET.key] = before
    stage.pass_time(FLOOR.hold - PACE.fast)
    assert stage.standing() == 8


def test_shadow_mode_decides_everything_and_writes_nothing() -> None:
    stage = Stage(demand(), target=dataclasses.replace(TARGET, mode=Mode.SHADOW))
    stage.pass_time(SEASON / 2)
    assert stage.workloads.writes == []
    assert stage.entry.shadow_floor >= 6
    assert stage.standing() == 2


def test_a_replica_that_does_not_lead_decides_everything_writes_nothing_and_is_ready_to_take_over() -> None:
    leads = False
    stage = Stage(demand(lambda _: 310.0), leads=lambda: leads)
    stage.pass_time(120)
    assert stage.loops.loaded
    assert (stage.workloads.writes, stage.workloads.announced) == ([], [])
    assert (stage.entry.decision.replicas, stage.entry.refused) == (8, None)
    leads = True
    stage.pass_time(PACE.fast)
    assert stage.standing() == 8


def test_shadow_decisions_are_those_of_control_mode() -> None:
    control, shadow = Stage(demand()), Stage(demand(), target=dataclasses.replace(TARGET, mode=Mode.SHADOW))
    for stage in (control, shadow):
        stage.pass_time(SEASON)
    assert [d.replicas for d, _ in shadow.recorder.decisions] == [d.replicas for d, _ in control.recorder.decisions]


def test_nothing_comes_down_until_the_history_is_loaded() -> None:
    busy = dataclasses.replace(CALM, standing=8, adopted=True)
    stage = Stage(demand(lambda _: 40.0), workload=busy)
    stage.source.down = True
    stage.pass_time(300)
    assert not stage.loops.loaded
    assert stage.standing() == 8
    stage.source.down = False
    stage.pass_time(60)
    assert stage.loops.loaded


def test_a_source_without_history_counts_as_loaded_and_the_forecast_grows_from_the_readings() -> None:
    stage = Stage(demand(lambda _: 70.0))
    stage.source.keeps_history = False
    stage.pass_time(300)
    assert stage.loops.loaded
    assert stage.entry.decision.reason is Reason.AT_PLAN


def test_a_restart_holds_before_it_lowers() -> None:
    raised = dataclasses.replace(CALM, standing=8, adopted=True)
    stage = Stage(demand(lambda _: 40.0), workload=raised)
    stage.pass_time(FLOOR.hold - 10)
    assert stage.standing() == 8
    stage.pass_time(120)
    assert stage.standing() < 8


def test_a_refused_write_is_recorded_and_tried_again_with_what_then_stands() -> None:
    stage = Stage(demand(lambda _: 310.0))
    stage.workloads.refuse = Refused("Forbidden", "patch horizontalpodautoscalers in llm")
    stage.pass_time(30)
    assert stage.standing() == 2
    assert stage.entry.refused == stage.workloads.refuse
    stage.workloads.refuse = None
    stage.pass_time(30)
    assert stage.standing() == 8
    assert stage.entry.refused is None


def test_a_target_that_cannot_be_observed_is_left_alone_and_reported() -> None:
    refused = Refused("NotFound", "Deployment llm/chat")
    stage = Stage(demand(), workload=refused)
    stage.pass_time(60)
    assert stage.workloads.writes == []
    assert stage.entry.decision is None
    assert stage.recorder.seen[-1] == refused


def test_a_foreign_raise_of_the_base_is_followed() -> None:
    stage = Stage(demand(lambda _: 40.0))
    stage.pass_time(60)
    stage.workloads.state[TARGET.key] = dataclasses.replace(CALM, standing=5, base=5)
    stage.pass_time(600)
    assert stage.standing() == 5


def test_only_news_is_announced() -> None:
    stage = Stage(demand(lambda _: 70.0))
    stage.pass_time(600)
    assert len(stage.workloads.announced) == 1
    assert sum(news for _, news in stage.recorder.decisions) == 1


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


def test_the_horizon_follows_the_measured_warm_up() -> None:
    stage = Stage(demand(), workload=dataclasses.replace(CALM, warm_up=warmup.of_seconds(*[100.0] * 5), supply=Supply(ready=2)))
    stage.pass_time(30)
    assert stage.entry.plans.horizons.raising == 100 + PACE.slow + PACE.signal_age
    raising, lowering = stage.entry.plans.outlooks[Signal.IN_FLIGHT]
    assert (raising.horizon, lowering.horizon) == (145, 245)


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


def test_the_number_is_written_before_it_is_announced() -> None:
    stage = Stage(demand(lambda _: 310.0))
    order: list[str] = []
    stage.workloads.write = lambda _target, replicas, **_: order.append("write") or Written(replicas)  # type: ignore[func-returns-value]
    stage.workloads.announce = lambda *_: order.append("announce")
    stage.loops.fast_tick()
    assert order == ["write", "announce"]


def test_a_refused_write_is_not_announced_as_a_change_and_the_one_that_succeeds_is() -> None:
    stage = Stage(demand(lambda _: 310.0))
    stage.workloads.refuse = Refused("Conflict", "somebody was faster")
    stage.pass_time(30)
    assert stage.workloads.announced == []
    stage.workloads.refuse = None
    stage.pass_time(10)
    assert [(one.before, one.replicas) for one in stage.workloads.announced if one.changes] == [(2, 8)]


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
    assert len(asked) == 1 + len(LOADED_SIGNALS)
    assert stage.recorder.loads == [False, True]


def test_sums_over_fewer_pods_than_are_ready_lower_nothing_and_are_named() -> None:
    """Prometheus lost half of the pods: what it sums up halves."""
    half = SEASON * 300 + 600
    source = FakeSource(
        in_flight=lambda time: 310.0 if time < half else 155.0,
        waiting=lambda _: 0.0,
        reporting=lambda time: 8.0 if time < half else 4.0,
    )
    stage = Stage(source, workload=dataclasses.replace(CALM, standing=8, supply=Supply(ready=8)))
    stage.pass_time(1800)
    assert stage.standing() == 8
    assert stage.entry.decision.note == "reporting partial"
