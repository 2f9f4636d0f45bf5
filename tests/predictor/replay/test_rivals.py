"""Rivals that fit a model anew: on which points, and what comes of series that no model likes."""

import importlib.util

import numpy as np
import pytest

from benchmarks.forecast import baselines
from benchmarks.forecast.baselines import Task
from benchmarks.forecast.traces import Trace
from predictor.replay import rivals

needs_prophet = pytest.mark.skipif(
    importlib.util.find_spec("prophet") is None, reason="prophet is not installed: it is in the dependency group rivals"
)


def task(values: np.ndarray, *, step: float = 60.0, steps: int = 5) -> Task:
    counts = np.asarray(values, dtype=np.float64)
    return Task(Trace("made up", step, counts, held_out=False), steps, np.full(len(counts), np.nan), (0.5, 0.95))


@needs_prophet
def test_prophet_goes_on_along_a_straight_line_and_has_no_quantiles() -> None:
    (bounds,) = rivals.prophet(task(10.0 + np.arange(200)), [150])
    assert bounds == pytest.approx([165.0, 165.0], rel=0.01)  # five steps on from 160


@needs_prophet
@pytest.mark.parametrize("step", [60.0, 1800.0])
def test_prophet_sees_fifty_points_however_far_apart_and_none_to_come(step: float) -> None:
    values = np.random.default_rng(1).poisson(50, 200).astype(np.float64)
    other = np.where((np.arange(200) <= 100) | (np.arange(200) > 150), 9000.0, values)
    assert (
        rivals.prophet(task(values, step=step), [150]).tolist()
        == rivals.prophet(task(other, step=step), [150]).tolist()
    )


@needs_prophet
@pytest.mark.parametrize(
    "values", [np.zeros(99), np.full(99, 5.0), np.full(99, 1e9), np.where(np.arange(99) % 2, np.nan, 3.0)]
)
def test_prophet_bears_what_does_not_change_and_what_is_half_unknown(values: np.ndarray) -> None:
    assert rivals.prophet(task(values), [98]) == pytest.approx(np.full((1, 2), np.nanmax(values)), rel=1e-3, abs=1e-3)


@needs_prophet
def test_prophet_says_nothing_on_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    rivals.prophet(task(np.random.default_rng(2).poisson(50, 99)), [98])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", [name for name in baselines.SLOW if name not in baselines.missing()])
def test_too_few_points_give_no_bounds(name: str) -> None:
    assert np.isnan(baselines.SLOW[name](task(np.arange(50.0)), [rivals.LEAST - 1])).all()


def test_what_is_not_installed_is_named() -> None:
    missing = importlib.util.find_spec("prophet") is None
    assert rivals.missing() == (("planner: Prophet",) if missing else ())
    assert baselines.missing() == ({"prophet"} if missing else set())
