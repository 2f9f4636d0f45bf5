"""Rare quantiles of few scores are taken higher than of many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecasting import conformal, learning
from models.forecasting.lanes import Lanes, Plan
from models.forecasting.settings import ForecastSettings
from models.series import Floats

GRID = (0.5, 0.9, 0.975, 0.99)
WINDOW = 720


def asked(known: int, *, overlap: float = 1.0, grid: tuple[float, ...] = GRID, window: int = WINDOW) -> Floats:
    """Probabilities whose ranks a lane takes that knows so many scores."""
    found = conformal.doubted(grid, np.array([[known]]), window=window, overlap=np.array([[overlap]]))
    return np.asarray(found[0])


def scores_of(known: int) -> Floats:
    """A window of scores of which the first are known: 1, 2, 3 and so on."""
    scores = np.full((1, WINDOW), np.nan)
    scores[0, :known] = np.arange(1.0, known + 1)
    return scores


def test_p99_of_a_quarter_of_a_day_is_taken_higher_by_its_own_deviation() -> None:
    assert asked(180)[3] == pytest.approx(0.99 + np.sqrt(0.99 * 0.01 * (1 / 180 - 1 / 720)))


def test_what_floors_follow_by_default_and_all_below_it_are_taken_as_they_are() -> None:
    assert asked(30, overlap=5.0)[:3].tolist() == [0.5, 0.9, 0.975]


def test_of_a_full_window_every_quantile_is_taken_as_it_is() -> None:
    assert asked(WINDOW, overlap=5.0).tolist() == list(GRID)


def test_scores_that_repeat_each_other_count_as_so_many_fewer() -> None:
    plain, repeated = asked(360)[3] - 0.99, asked(360, overlap=4.0)[3] - 0.99
    assert repeated == pytest.approx(2 * plain)


def test_of_very_few_scores_the_largest_is_taken_and_of_none_nothing() -> None:
    assert asked(3)[3] == 1.0
    found = conformal.measured(scores_of(3), GRID, overlap=np.array([5.0]))
    assert found.values[0, 3] == 3.0
    none = conformal.measured(scores_of(0), GRID, overlap=np.array([5.0]))
    assert np.isnan(none.values).all()
    assert none.losses.tolist() == [[0.0] * 4]


def test_the_quantile_is_the_score_at_that_rank() -> None:
    found = conformal.measured(scores_of(360), GRID, overlap=np.array([1.0]))
    plain = conformal.quantiles(scores_of(360), GRID)
    assert found.values[0, :3].tolist() == plain[0, :3].tolist()
    assert plain[0, 3] == 358.0  # ceil(361 * .99)
    assert found.values[0, 3] == 359.0  # ceil(361 * .9937)


def test_each_lane_is_doubted_for_its_own_horizon() -> None:
    found = conformal.measured(np.tile(scores_of(600), (2, 1)), (0.99,), overlap=np.array([1.0, 5.0]))
    assert found.values[:, 0].tolist() == [596.0, 598.0]


def test_what_a_doubted_quantile_would_have_cost_is_its_loss_at_its_own_probability() -> None:
    scores = np.random.default_rng(3).exponential(1.0, (1, WINDOW))
    scores[0, 200:] = np.nan
    found = conformal.measured(scores, (0.99,), overlap=np.array([5.0]))
    over = scores[0, :200] - found.values[0, 0]
    assert found.losses[0, 0] == pytest.approx(np.maximum(0.99 * over, -0.01 * over).mean())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(0.01, 0.999), min_size=1, max_size=8, unique=True).map(lambda qs: tuple(sorted(qs))),
    st.integers(0, WINDOW),
    st.integers(0, WINDOW),
    st.floats(1.0, 200.0),
)
def test_quantiles_stay_in_order_and_fewer_scores_never_take_one_lower(
    grid: tuple[float, ...], one: int, other: int, overlap: float
) -> None:
    few, many = (asked(known, overlap=overlap, grid=grid) for known in sorted((one, other)))
    assert (np.diff(many) >= 0).all()
    assert (few >= many).all()
    assert (many >= np.array(grid)).all()
    assert (few <= 1).all()


def test_independent_scores_are_covered_by_p99_of_few_of_them_five_times_out_of_six() -> None:
    """The deviation that is added leaves out a sixth; without it half of the lanes would cover less than .99."""
    scores = np.full((4000, WINDOW), np.nan)
    scores[:, :300] = np.random.default_rng(7).random((4000, 300))
    plain = conformal.quantiles(scores, (0.99,))[:, 0]
    surer = conformal.measured(scores, (0.99,), overlap=np.ones(4000)).values[:, 0]
    assert np.mean(plain >= 0.99) < 0.65
    assert np.mean(surer >= 0.99) > 0.8


def test_a_lane_takes_its_quantiles_by_the_origins_of_its_horizon() -> None:
    plan, horizons = Plan.of(ForecastSettings(quantiles=GRID), 120.0), np.array([1, 5], dtype=np.intp)
    lanes = Lanes.empty(horizons, delay=16, plan=plan)
    new = 572  # at the last of so many the first expert's quantiles are taken anew
    values = np.random.default_rng(6).poisson(20.0, learning.margin(lanes, plan) + new).astype(np.float64)
    learning.advance(lanes, plan, np.stack([values] * 2), first=0, settle_from=0)
    scores = lanes.scores[:, 0].astype(np.float32) * learning.UNIT
    found = conformal.measured(scores, GRID, overlap=horizons * 1.0)
    assert (lanes.quantiles[:, 0] == found.values).all()
    assert (found.values[:, 3] > conformal.quantiles(scores, GRID)[:, 3]).all()
