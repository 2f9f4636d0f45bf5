"""The service's own scores: what they hold, what they forget, and that a back-test over the same span agrees."""

from collections.abc import Iterable

import numpy as np
import pytest

from models.capacity.profile import Profile
from models.forecasting import scoring
from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast, NotEnoughHistory, Quality
from models.forecasting.settings import ForecastSettings
from models.policy.planning import Objectives
from models.series import Series
from models.signals import Signal
from predictor.board import Board
from predictor.grading import Grading
from predictor.history import History
from predictor.loops import Loops, World
from predictor.outlooks import Outlooks, Pace
from predictor.replay import backtest
from predictor.targets import Kind, Mode, Target
from predictor.telemetry.health import Pulse
from predictor.telemetry.metrics import Metrics
from predictor.telemetry.recording import Telemetry
from tests.fakes.world import FakeClock, FakeSource, FakeWorkloads

PACE = Pace(slow=30, fast=10, signal_age=15)
KEY = ("llm/chat", Signal.IN_FLIGHT)
TARGET = Target(
    namespace="llm",
    name="chat",
    kind=Kind.DEPLOYMENT,
    engine="vllm",
    model="m",
    mode=Mode.SHADOW,
    objectives=Objectives(profile=Profile(concurrency=40)),
)
FORECAST = ForecastSettings(seasons=(3600.0,))
BEGIN = 1_080_000.0  # a whole multiple of two minutes, as the back-test's origins are
LOADED = 36 * 3600.0
SERVED = 4 * 3600.0
NOISE = np.random.default_rng(5).normal(1.0, 0.15, 20_000)


def load(time: float) -> float:
    """A wave an hour long with noise, level within each step of 30 s."""
    cell = int(time // 30)
    return round(float(100 + 60 * np.sin(cell * 30 / 3600 * 2 * np.pi)) * abs(NOISE[cell % len(NOISE)]))


def forecast(at: float, bound: float) -> Forecast:
    return Forecast(issued_at=at, horizon=60.0, level=1.0, quantiles={0.9: bound}, quality=Quality.YOUNG)


def flat(until: float, value: float = 5.0) -> Series:
    return Series(0.0, 30.0, np.full(int(until // 30) + 1, value))


def test_a_forecast_is_graded_once_its_horizon_has_passed_and_the_newest_point_is_whole() -> None:
    grading = Grading()
    assert grading.grade({KEY: forecast(0.0, 9.0)}, {KEY: flat(0)}) == {}
    assert grading.grade({KEY: forecast(60.0, 9.0)}, {KEY: flat(60)}) == {}
    grade = grading.grade({KEY: forecast(90.0, 9.0)}, {KEY: flat(90)})[KEY]
    assert (grade.fresh, grade.scored, grade.coverage) == (1, 1, {0.9: 1.0})
    assert grade.pinball[0.9] == pytest.approx((1 - 0.9) * (9 - 5))
    assert grading.grade({KEY: forecast(120.0, 9.0)}, {KEY: flat(120)})[KEY].fresh == 0


def issued(grading: Grading, ticks: Iterable[float]) -> int:
    """How many of the forecasts made at those times were scored in the end."""
    times = list(ticks)
    fresh = 0
    for at in [*times, times[-1] + 600.0]:
        outlook = forecast(at, 9.0) if at in times else NotEnoughHistory(1, 2)
        grades = grading.grade({KEY: outlook}, {KEY: flat(at)})
        fresh += grades[KEY].fresh if KEY in grades else 0
    return fresh


def test_one_forecast_of_each_stretch_is_scored_also_where_the_horizon_is_the_shorter() -> None:
    """The horizon is 60 s: nothing waits any more when the next tick comes, and two minutes are two minutes still."""
    assert issued(Grading(), np.arange(0.0, 1200.0, 30.0)) == 10
    assert issued(Grading(apart=30.0), np.arange(0.0, 1200.0, 30.0)) == 40


def test_who_started_later_scores_the_same_forecasts() -> None:
    """From the next whole multiple on, as another replica and a back-test do."""
    assert issued(Grading(), np.arange(30.0, 600.0, 30.0)) == issued(Grading(), np.arange(90.0, 600.0, 30.0)) == 4
    assert issued(Grading(), [0.0, 30.0, 150.0, 210.0, 240.0]) == 3  # the tick at 120 was missed: the next one counts


def test_a_miss_lowers_the_coverage() -> None:
    grading = Grading()
    for step in range(100):
        bound = 9.0 if step % 4 else 3.0
        grades = grading.grade({KEY: forecast(step * 120.0, bound)}, {KEY: flat(step * 120.0)})
    assert grades[KEY].scored == 99
    assert grades[KEY].coverage[0.9] == pytest.approx(1 - 25 / 99)


def test_grades_look_back_over_a_day() -> None:
    grading = Grading()
    for step in range(1500):
        bound = 3.0 if step < 720 else 9.0  # the first day misses throughout
        grades = grading.grade({KEY: forecast(step * 120.0, bound)}, {KEY: flat(step * 120.0)})
    assert grades[KEY].coverage[0.9] == 1.0
    assert grades[KEY].scored <= 24 * 30


def test_a_clock_that_ran_a_year_ahead_for_a_while_stops_no_grading() -> None:
    """It was set back: what came by the wrong time is no longer told, nor are all scores since kept in one hour."""
    grading, year = Grading(), 365 * 86400.0
    for step in range(40):
        grading.grade({KEY: forecast(year + step * 120.0, 3.0)}, {KEY: flat_at(year + step * 120.0)})
    for step in range(1500):
        grades = grading.grade({KEY: forecast(step * 120.0, 9.0)}, {KEY: flat_at(step * 120.0)})
    assert grades[KEY].coverage[0.9] == 1.0
    assert 23 * 30 <= grades[KEY].scored <= 24 * 30


def test_of_a_series_that_is_unknown_for_longer_than_a_day_no_grade_is_left() -> None:
    grading, known = Grading(), 10
    seen = {}
    for step in range(known + 800):
        at = step * 120.0
        series = flat_at(at) if step < known else flat_at(at, float("nan"))
        seen[step] = KEY in grading.grade({KEY: forecast(at, 9.0)}, {KEY: series})
    assert seen[known + 23 * 30]
    assert not seen[known + 26 * 30]


def flat_at(until: float, value: float = 5.0) -> Series:
    """The last five minutes of it."""
    return Series(until - 300.0, 30.0, np.full(11, value))


def test_a_series_that_is_no_longer_forecast_is_forgotten() -> None:
    grading = Grading()
    for step in range(5):
        grading.grade({KEY: forecast(step * 120.0, 9.0)}, {KEY: flat(step * 120.0)})
    assert grading.grade({}, {}) == {}
    assert grading.grade({KEY: NotEnoughHistory(1, 2)}, {KEY: flat(900)}) == {}


def served() -> tuple[Metrics, float]:
    """A service walked for some hours; its metrics, and the time of its last slow tick."""
    clock, metrics = FakeClock(BEGIN), Metrics()
    metrics.targets([TARGET])
    history = History(step=30, span=LOADED)
    loops = Loops(
        World(
            clock,
            FakeSource(in_flight=load, waiting=lambda _: 0.0),
            FakeWorkloads(),
            Telemetry(metrics, Pulse({"slow": 30, "fast": 10}), clock),
        ),
        Board([TARGET]),
        history=history,
        outlooks=Outlooks(Forecaster(FORECAST), history, PACE),
        pace=PACE,
    )
    while clock.time < BEGIN + SERVED:
        loops.slow_tick()
        clock.time += PACE.slow
    return metrics, clock.time - PACE.slow


def test_the_service_grades_itself_as_a_backtest_over_the_same_span_does() -> None:
    metrics, last = served()
    start = BEGIN - LOADED
    times = start + 30.0 * np.arange(round((last - start) / 30) + 1)
    series = Series(start, 30.0, np.array([load(time) for time in times]))
    questions = backtest.Questions(
        {TARGET.key: (60.0,)}, interval=PACE.slow, signal_age=PACE.signal_age, forecast=FORECAST
    )
    (replayed,) = backtest.run({KEY: series}, questions)
    about = {"target": TARGET.key, "signal": "in_flight"}

    def told(name: str, **labels: str) -> float:
        value = metrics.registry.get_sample_value(f"floorcast_{name}", {**about, **labels})
        assert value is not None
        return value

    scored = int(told("forecast_scored_total"))
    assert scored > 100
    first = int(np.searchsorted(replayed.times, BEGIN))
    came, bounds = replayed.came[first : first + scored], replayed.bounds[first : first + scored]
    coverage = scoring.coverage(came, bounds)
    pinball = scoring.pinball(came, bounds, replayed.probabilities)
    for place, q in enumerate(replayed.probabilities):
        assert told("forecast_coverage_ratio", quantile=f"{q:g}") == pytest.approx(coverage[place], abs=1e-9)
        assert told("forecast_pinball", quantile=f"{q:g}") == pytest.approx(pinball[place], rel=1e-9)
