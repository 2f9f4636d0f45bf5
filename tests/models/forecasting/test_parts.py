"""The parts of the forecast, one by one."""

import datetime as dt
import zoneinfo

import numpy as np
import pytest

from models.forecasting import conformal, learning, priors, season, windows
from models.forecasting.lanes import PARTS, Plan
from models.forecasting.regress import Ridge
from models.forecasting.settings import DAY, WEEK, ForecastSettings

NAN = float("nan")
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def unix(*when: int) -> float:
    return dt.datetime(*when, tzinfo=BERLIN).timestamp()  # type: ignore[arg-type, misc]


def test_a_conformal_quantile_is_the_next_score_above_its_rank() -> None:
    scores = np.arange(1.0, 10.0)[None]  # nine scores: rank ceil(10 q)
    assert conformal.quantiles(scores, (0.5, 0.9, 0.99)).tolist() == [[5.0, 9.0, 9.0]]
    assert np.isnan(conformal.quantiles(np.full((1, 3), NAN), (0.5,))).all()


def test_mean_pinball_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    scores, weights = rng.standard_normal((2, 50)), rng.random((2, 50))
    scores[0, :10] = NAN
    values = np.array([[0.2, 1.0], [-0.3, 0.5]])
    over = scores[:, :, None] - values[:, None, :]
    q = np.array([0.5, 0.9])
    expected = np.nansum(np.maximum(q * over, (q - 1) * over) * weights[:, :, None], axis=1) / [[40], [50]]
    assert conformal.mean_pinball(scores, values, (0.5, 0.9), weights=weights) == pytest.approx(expected)


def test_quantiles_come_with_what_they_would_have_cost_on_their_own_scores() -> None:
    scores = np.random.default_rng(4).standard_normal((3, 50)).astype(np.float32)
    scores[1, 5:30] = NAN
    scores[2] = NAN
    found = conformal.measured(scores, (0.5, 0.9, 0.99), overlap=np.ones(3))
    weights = np.ones_like(scores)
    plain = conformal.mean_pinball(scores[:2], found.values[:2], (0.5, 0.9, 0.99), weights=weights[:2])
    np.testing.assert_allclose(found.losses[:2], plain, rtol=1e-5)
    assert found.losses[2].tolist() == [0, 0, 0]


def test_a_score_kept_in_half_precision_is_never_less_than_it_was() -> None:
    scores = np.concatenate([np.random.default_rng(5).standard_normal(500) * 10.0 ** np.arange(-4, 1)[:, None]])
    kept = learning.rounded_up(scores)
    assert kept.dtype == np.float16
    assert (kept >= scores).all()
    np.testing.assert_allclose(kept, scores, rtol=1e-3, atol=1e-7)
    assert np.isnan(learning.rounded_up(np.array([NAN]))).all()


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_the_largest_ahead_is_that_of_a_plain_loop(steps: int) -> None:
    values = np.random.default_rng(2).random((2, 30))
    values[0, 10:17] = NAN
    found = windows.largest_ahead(values, steps)
    for row, column in np.ndindex(2, 30):
        ahead = values[row, column + 1 : column + 1 + steps]
        known = ahead[~np.isnan(ahead)]
        enough = len(ahead) == steps and 2 * len(known) >= steps
        assert found[row, column] == (known.max() if enough else pytest.approx(NAN, nan_ok=True))
    assert np.isnan(windows.largest_ahead(values[:, :3], 3)).all()


def test_a_day_back_is_the_same_local_time_when_clocks_change() -> None:
    # clocks went forward on 29 March 2026: 23 hours lie between noon and noon
    noon, before = unix(2026, 3, 29, 12), unix(2026, 3, 28, 12)
    assert season.earlier(np.array([noon]), DAY, 1, BERLIN) == [before]
    assert season.earlier(np.array([noon]), DAY, 1, dt.UTC) == [noon - DAY]
    assert season.earlier(np.array([noon]), 3600.0, 1, BERLIN) == [noon - 3600]
    assert season.earlier(np.array([noon]), WEEK, 1, BERLIN) == [unix(2026, 3, 22, 12)]


def test_no_season_is_followed_more_coarsely_than_a_quarter_of_it() -> None:
    settings = ForecastSettings(seasons=(3600.0, DAY, WEEK))
    assert [p.period for p in season.phases(settings, 120.0)] == [3600.0, DAY, WEEK]
    assert [p.period for p in season.phases(settings, 1800.0)] == [DAY, WEEK]
    assert [p.spreads for p in season.phases(settings, 1800.0)] == [(0, 1, 5), (5,)]
    assert [p.previous for p in season.phases(settings, 120.0)] == [6, 6, 1]
    assert season.phases(ForecastSettings(seasons=(30 * DAY,)), 120.0) == ()
    assert season.reach((), 120.0) == 1


def test_a_usual_jump_looks_only_at_what_had_become_known() -> None:
    scores = np.full((2, 40), NAN)
    scores[:, :20] = np.arange(20.0)
    ring = season.Ring(scores, 10.0, np.array([2, 12]), dt.UTC)
    phase = season.Phase(100.0, (0,), 2)  # ten origins back, twenty origins back
    usual = ring.usual(np.array([190.0, 255.0]), (phase,))
    assert usual[0, 0].tolist() == [9.0, 9.0]  # 19 - 10; the one before lies in an empty place
    assert usual[1, 0].tolist() == [0.0, 0.0]  # twelve origins until it is known
    assert usual[0, 1].tolist() == [11.0, 11.0]  # (16 + 6) / 2
    assert season.Ring(scores, 10.0, np.array([2, 12]), dt.UTC).usual(np.array([1.0]), ()).shape == (2, 1, 0)


def test_a_regression_finds_a_line_and_forgets_it() -> None:
    rng = np.random.default_rng(3)
    ridge = Ridge.empty(1, 2)
    for slope in (2.0, -1.0):
        for x in rng.standard_normal(3000):
            ridge.observe(np.array([[1.0, x]]), np.array([slope * x]), np.ones(1), keep=0.995)
        ridge.solve(np.array([0]))
        assert ridge.predict(np.array([[1.0, 3.0]]))[0] == pytest.approx(3 * slope, rel=0.15)


def test_a_weight_of_zero_leaves_a_regression_as_it_is() -> None:
    ridge = Ridge.empty(1, 1)
    ridge.observe(np.ones((1, 1)), np.ones(1), np.ones(1), keep=0.9)
    before = ridge.moments.copy()
    ridge.observe(np.ones((1, 1)), np.full(1, 50.0), np.zeros(1), keep=0.9)
    assert (ridge.moments == before).all()
    assert ridge.count == 1


def test_prior_scores_grow_with_horizon_and_probability() -> None:
    table = np.array([priors.prior_scores(steps, (0.5, 0.9, 0.95, 0.99)) for steps in (1, 4, 10, 25, 500)])
    assert (np.diff(table, axis=0) >= 0).all()
    assert (np.diff(table, axis=1) > 0).all()


def test_sigma_starts_from_the_prior_and_ends_with_what_was_seen() -> None:
    assert priors.shrunk_sigma(np.zeros(1), np.zeros(1)) == pytest.approx(0.6)
    assert priors.shrunk_sigma(np.array([4000.0]), np.array([1000.0])) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"quantiles": ()}, "quantiles"),
        ({"quantiles": (0.9, 0.5)}, "grow"),
        ({"quantiles": (0.5, 1.0)}, "between 0 and 1"),
        ({"seasons": (0.0,)}, "seasons"),
        ({"score_window": 0.0}, "score_window"),
        ({"reaction": -0.1}, "reaction"),
        ({"forgetting": 1.0}, "forgetting"),
    ],
)
def test_settings_refuse_nonsense_by_name(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ForecastSettings(**wrong)  # type: ignore[arg-type]


def test_a_window_of_scores_is_as_long_as_asked_whatever_the_season() -> None:
    assert ForecastSettings().scores(30.0) == 720
    # a season of 200 s is followed every 5 s
    assert ForecastSettings(seasons=(200.0,), score_window=3600.0).scores(5.0) == 720
    assert ForecastSettings(seasons=(3600.0,), score_window=3600.0).scores(5.0) == 30
    assert ForecastSettings().scores(1800.0) == 720  # a day of half hours holds no p99
    assert Plan.of(ForecastSettings(score_window=60.0), 1800.0).scores == 1


def test_origins_scale_with_the_shortest_season() -> None:
    assert ForecastSettings().origin_steps(30.0) == 4  # 120 s
    assert ForecastSettings(seasons=(300.0,)).origin_steps(5.0) == 2  # 10 s: thirty to a season
    assert ForecastSettings(seasons=()).origin_steps(1800.0) == 1
    assert Plan.of(ForecastSettings(), 1800.0).refresh == 1
    assert Plan.of(ForecastSettings(), 30.0).refresh == 5


def test_the_work_of_ten_minutes_is_spread_over_its_origins_by_the_clock() -> None:
    plan = Plan.of(ForecastSettings(), 30.0)
    origins = range(1000, 1000 + plan.resolve)
    parts = [(origin, part) for origin in origins for part in range(PARTS) if plan.part_due(part, origin)]
    solved = [(origin, number) for origin in origins for number in range(3) if plan.regression_due(number, origin)]
    assert sorted(part for _, part in parts) == sorted([*range(PARTS)] * 3)
    assert sorted(number for _, number in solved) == [0, 1, 2]
    assert len({origin for origin, _ in parts}) == len(parts)
    assert len({origin for origin, _ in solved}) == len(solved)
