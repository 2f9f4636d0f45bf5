"""A world of fakes with the real loops over it, walked by the clock."""

from collections.abc import Callable

from models.capacity.profile import Profile
from models.forecasting.engine import Forecaster
from models.forecasting.settings import ForecastSettings
from models.policy.context import FloorSettings
from models.policy.planning import Objectives
from predictor.board import Board
from predictor.history import History
from predictor.loops import Loops, World
from predictor.outlooks import Outlooks, Pace
from predictor.ports import Refused, Workload
from predictor.targets import Kind, Mode, Target
from tests.fakes.world import CALM, FakeClock, FakeRecorder, FakeSource, FakeWorkloads

PACE = Pace(slow=30, fast=10, signal_age=15)

FLOOR = FloorSettings(hold=120, step_period=60, step_down_percent=0)

TARGET = Target(
    namespace="llm",
    name="chat",
    kind=Kind.DEPLOYMENT,
    engine="vllm",
    model="m",
    mode=Mode.CONTROL,
    objectives=Objectives(profile=Profile(concurrency=40), raise_quantile=0.95, floor=FLOOR),
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
