"""The service of the demo grades its own forecasts; a back-test of the same day comes to the same."""

import numpy as np
import pytest

from models.forecasting import scoring
from models.series import Floats, Series
from models.signals import Known, Signal
from predictor.demo import graded, pages, scenario, summary
from predictor.demo.options import DemoOptions
from predictor.demo.past import WarmStart
from predictor.demo.stage import Chronicle, Stage
from predictor.ports import Readings
from predictor.replay import backtest
from predictor.targets import Target

HOURS, DAYS = 3.0, 1
STEP = scenario.PACE.slow
FEW = 6.5  # of some ninety forecasts: six, and no rounding decides


class Recorder(Chronicle):
    """Keeps what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[Signal, dict[float, float]] = {Signal.ARRIVALS: {}, Signal.IN_FLIGHT: {}}

    def readings(self, target: Target, readings: Readings, *, now: float) -> None:  # noqa: ARG002
        for signal, values in self.read.items():
            if isinstance(reading := readings[signal], Known):
                values[now] = reading.value


@pytest.fixture(scope="module")
def day() -> tuple[Stage, dict[Signal, Series]]:
    """The demo played, and what a Prometheus remembers of it, the day before included."""
    stage = Stage(DemoOptions(hours=HOURS, days=DAYS))
    recorder = stage.chronicle = Recorder()
    source = pages.in_process(stage)
    stage.begin(source)
    before = WarmStart(source, stage.traffic, seed=stage.options.seed, days=DAYS)
    since, until = scenario.MIDNIGHT - DAYS * 86400.0, scenario.MIDNIGHT - STEP
    past = {
        signal: before.history([scenario.TARGET], signal, since=since, until=until, step=STEP)[scenario.TARGET.key]
        for signal in recorder.read
    }
    while not stage.over:
        stage.step()
    source.close()
    remembered = {}
    for signal, series in past.items():
        assert isinstance(series, Series)
        remembered[signal] = Series(
            series.start, STEP, np.append(series.values, _on_grid(signal, recorder.read[signal]))
        )
    return stage, remembered


def _on_grid(signal: Signal, values: dict[float, float]) -> Floats:
    """As a Prometheus tells them once a step: a rate is a mean already, a gauge by `avg_over_time`."""
    looks_back = STEP if signal is Signal.IN_FLIGHT else 1.0
    ends = scenario.MIDNIGHT + STEP * np.arange(round(HOURS * 3600 / STEP) + 1)
    cells = [[value for time, value in values.items() if end - looks_back < time <= end] for end in ends.tolist()]
    return np.array([np.mean(cell) if cell else np.nan for cell in cells])


@pytest.mark.parametrize("signal", [Signal.ARRIVALS, Signal.IN_FLIGHT])
def test_the_services_own_coverage_is_that_of_a_backtest_of_the_same_day(
    day: tuple[Stage, dict[Signal, Series]], signal: Signal
) -> None:
    stage, remembered = day
    key = scenario.TARGET.key
    questions = backtest.Questions(
        {key: (scenario.TYPICAL_WARM_UP,)}, interval=scenario.PACE.slow, signal_age=scenario.PACE.signal_age
    )
    (replayed,) = backtest.run({(key, signal): remembered[signal]}, questions)
    assert stage.entry.plans is not None
    assert replayed.horizons == stage.entry.plans.horizons
    grade = stage.entry.plans.grades[signal]
    first = int(np.searchsorted(replayed.times, scenario.MIDNIGHT))
    assert replayed.times[first] == scenario.MIDNIGHT
    assert grade.scored > 80
    came, bounds = replayed.came[first:][: grade.scored], replayed.bounds[first:][: grade.scored]
    # Not exactly: the newest point of the service is a single reading as yet, the others are means of four.
    for q, share in zip(replayed.probabilities, scoring.coverage(came, bounds), strict=True):
        assert grade.coverage[q] == pytest.approx(share, abs=FEW / grade.scored), q


def test_the_headless_run_tells_both_coverages(day: tuple[Stage, dict[Signal, Series]]) -> None:
    stage, _ = day
    found = graded.of(stage)
    assert list(found) == [Signal.ARRIVALS, Signal.IN_FLIGHT]
    told = summary.grades(found)
    for signal, one in found.items():
        assert one.scored > 80
        for q, share in one.coverage.items():
            assert one.backtested[q] == pytest.approx(share, abs=FEW / one.scored), (signal, q)
        assert set(told[signal]["backtest"]) == {f"{q:g}" for q in one.coverage}


def test_a_grade_as_a_sentence() -> None:
    one = {"scored": 717, "coverage": {"0.95": 0.9414}, "backtest": {"0.95": 0.9456}}
    said = "p95 of in flight covered 94.1 % of 717 forecasts; a back-test of the same day says 94.6 %."
    assert summary.graded("in_flight", one) == said


def test_a_day_that_has_just_begun_has_no_grades() -> None:
    assert graded.of(Stage(DemoOptions())) == {}
