"""Room that is kept all the time, where a band that follows the load costs more than it is worth."""

import hypothesis
import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest

from models.forecasting import levels
from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast
from models.forecasting.lanes import Plan
from models.forecasting.settings import ForecastSettings
from models.forecasting.steady import ALL, NONE, ROUNDING, WHOLE, Present, Steady
from models.series import Floats, Series

NAN = float("nan")
PROBABILITIES = (0.5, 0.9, 0.99)
SCORES = 10
MINUTES = 2 * 1440
HORIZON = 360.0


def empty(delay: int = 8) -> Steady:
    return Steady.empty(1, delay=delay, scores=SCORES, probabilities=len(PROBABILITIES))


def calm(now: float, rows: int = 1) -> Present:
    return Present(*np.full((3, rows), now))


def with_costs(following: float, steady: float, known: int = SCORES) -> Steady:
    kept = empty()
    kept.costs[:, 0, :known], kept.costs[:, 1, :known] = following, steady
    kept.measure(np.array([0]), np.full((1, SCORES), 3.0), PROBABILITIES, newest=SCORES - 1)
    return kept


def test_the_cheaper_one_is_planned_for_and_between_the_two_limits_a_mixture() -> None:
    assert with_costs(1.0, 0.5).share.tolist() == [1.0]
    assert with_costs(1.0, ALL).share == pytest.approx([1.0])
    assert with_costs(1.0, (ALL + NONE) / 2).share == pytest.approx([0.5])
    assert with_costs(1.0, NONE).share == pytest.approx([0.0], abs=1e-6)
    assert with_costs(1.0, 5.0).share.tolist() == [0.0]


def test_less_than_a_whole_window_is_not_judged_by() -> None:
    assert with_costs(1.0, 0.5, known=int(SCORES * WHOLE)).share.tolist() == [1.0]
    assert with_costs(1.0, 0.5, known=int(SCORES * WHOLE) - 1).share.tolist() == [0.0]


def test_what_follows_for_nothing_is_left_to_follow() -> None:
    assert with_costs(0.0, 0.0).share.tolist() == [0.0]


DAY = 200  # scores
SURGES = np.arange(DAY) % 20 == 0


def of_a_day(steady: Floats, following: Floats, maxima: Floats, *, newest: int = DAY - 1) -> float:
    """Share of the steady bound after a day of costs and maxima, all oldest first."""
    kept = Steady.empty(1, delay=8, scores=DAY, probabilities=len(PROBABILITIES))
    shift = newest + 1 - DAY
    kept.costs[0] = np.roll(np.stack([following, steady]), shift, axis=1)
    kept.measure(np.array([0]), np.roll(maxima, shift)[None], PROBABILITIES, newest=newest)
    return float(kept.share[0])


def fallen(scores: int, *, low: float, dear: float) -> float:
    """The share where each surge paid for the calm before it, and since then room cost `dear` while `low` came."""
    steady, following = np.where(SURGES, 1.0, 2.0), np.where(SURGES, 60.0, 1.0)
    maxima = np.where(SURGES, 20.0, 9.0 + np.arange(DAY) % 5)
    steady[DAY - scores :], following[DAY - scores :], maxima[DAY - scores :] = dear, 1.0, low
    return of_a_day(steady, following, maxima)


def test_room_is_let_go_of_once_it_has_cost_more_than_ever_for_a_load_that_is_lower_than_ever() -> None:
    assert fallen(9, low=3.0, dear=10.0) == 0.0
    assert fallen(1, low=3.0, dear=10.0) == 1.0


def test_a_long_lull_as_low_as_the_others_is_waited_out() -> None:
    assert fallen(19, low=9.0, dear=10.0) == 1.0


def test_a_low_load_for_which_room_costs_no_more_than_between_two_surges_is_waited_out() -> None:
    assert fallen(19, low=3.0, dear=1.9) == 1.0


def test_what_came_before_the_fall_within_its_spell_does_not_hide_it() -> None:
    steady, following, maxima = np.full((3, DAY), 1.0)
    maxima[:], following[: DAY // 2] = 9.0, 2.0
    steady[-30:], maxima[-20:] = 3.0, 2.0
    assert of_a_day(steady, following, maxima) == 0.0
    maxima[-20:-6] = 9.0
    assert of_a_day(steady, following, maxima) == 1.0


def test_unknown_scores_are_no_fall() -> None:
    steady, following, maxima = np.where(SURGES, 1.0, 2.0), np.where(SURGES, 60.0, 1.0), np.full(DAY, 9.0)
    for rows in (steady, following, maxima):
        rows[-15:] = NAN
    assert of_a_day(steady, following, maxima) == 1.0


@hypothesis.given(st.integers(0, DAY - 1), st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_it_does_not_matter_at_which_score_a_day_begins(newest: int, seed: int, since: int) -> None:
    rng = np.random.default_rng(seed)
    steady, following = rng.exponential([[0.8], [1.0]], (2, DAY))
    maxima = rng.uniform(8, 10, DAY)
    steady[-since:], maxima[-since:] = 3.0, 5.0
    assert of_a_day(steady, following, maxima, newest=newest) == of_a_day(steady, following, maxima)


def test_what_follows_stands_for_its_highest_while_replicas_stay() -> None:
    kept, bands = empty(), np.full((1, 8, 3), NAN)
    for slot, bound in enumerate((1.0, 9.0, 2.0, 3.0, 1.0)):
        bands[:, slot] = bound
        kept.issue(bands, calm(0.5), PROBABILITIES, slot=slot, stays=np.array([2]))
    assert kept.bounds[0, :5, 0, 0].tolist() == [1.0, 9.0, 9.0, 9.0, 3.0]


def test_lanes_whose_replicas_stay_for_different_times_are_judged_by_their_own() -> None:
    kept = Steady.empty(2, delay=4, scores=SCORES, probabilities=1)
    bands = np.array([[[9.0], [1.0], [2.0], [NAN]]] * 2)
    kept.issue(bands, calm(0.0, 2), (0.9,), slot=2, stays=np.array([1, 2]))
    assert kept.bounds[:, 2, 0, 0].tolist() == [2.0, 9.0]


def test_neither_is_less_than_the_value_of_then() -> None:
    kept = with_costs(1.0, 0.5)
    kept.issue(np.full((1, 8, 3), 2.0), calm(7.0), PROBABILITIES, slot=0, stays=np.array([1]))
    assert kept.bounds[0, 0].tolist() == [[7.0] * 3] * 2


def test_costs_are_pinball_losses_of_high_bounds_in_the_unit_of_the_signal() -> None:
    kept = empty()
    kept.bounds[0, 3, 0] = levels.root(np.array([1.0, 4.0, 8.0]))
    kept.bounds[0, 3, 1] = levels.root(np.array([1.0, 20.0, 20.0]))
    kept.score(levels.root(np.array([10.0])), PROBABILITIES, slots=np.array([3]), column=0)
    assert kept.costs[0, :, 0] == pytest.approx([0.9 * 6 + 0.99 * 2, 0.1 * 10 + 0.01 * 10], rel=1e-5)
    kept.score(np.array([NAN]), PROBABILITIES, slots=np.array([3]), column=1)
    assert np.isnan(kept.costs[0, :, 1]).all()


def test_a_cost_beyond_what_is_kept_of_it_is_neither_infinite_nor_does_it_decide_for_ever() -> None:
    kept = empty()
    kept.bounds[0, :, :] = levels.root(np.array([1.0, 4.0, 8.0]))
    for column, came in enumerate([3e38, *[9.0] * (SCORES - 1)]):
        kept.score(levels.root(np.array([came])), PROBABILITIES, slots=np.array([0]), column=column)
    assert np.isfinite(kept.costs).all()
    kept.measure(np.array([0]), np.full((1, SCORES), 3.0), PROBABILITIES, newest=SCORES - 1)
    assert 0 <= kept.share[0] <= 1


values = st.floats(0, 1e6)
rows = arrays.arrays(np.float64, (1, 3), elements=values)


@hypothesis.given(rows, rows, st.floats(0, 1), values)
def test_what_is_planned_for_lies_between_the_two_grows_and_is_never_below_now(
    bounds: Floats, steady: Floats, share: float, present: float
) -> None:
    bounds = np.maximum(np.sort(bounds), present)
    kept = empty()
    kept.quantiles, kept.share = levels.root(np.sort(steady)), np.array([share])
    found = kept.planned(bounds, calm(levels.root(np.array(present))), PROBABILITIES)
    other = np.maximum(np.sort(steady), present)
    slack = 1e-6 * (1 + np.maximum(bounds, other))
    rounding = 2 * ROUNDING * (other + 1)
    assert (found >= np.minimum(bounds, other) - rounding - slack).all()
    assert (found <= np.maximum(bounds, other) + slack).all()
    assert (np.diff(found) >= 0).all()
    assert (found >= present - 1e-9 * (1 + present)).all()


@hypothesis.given(rows)
def test_without_a_share_the_forecast_is_planned_for(bounds: Floats) -> None:
    bounds = np.sort(bounds)
    assert empty().planned(bounds, calm(0.0), PROBABILITIES).tolist() == bounds.tolist()


def planned(*, now: float, lately: float, most: float) -> list[float]:
    """From a band of 8, 8 and 9 and a steady bound of 4, 5 and 6, roots, all for the steady one."""
    kept = empty()
    kept.quantiles, kept.share = np.array([[4.0, 5.0, 6.0]]), np.ones(1)
    seen = Present(np.array([now]), np.array([lately]), np.array([most]))
    found = kept.planned(levels.square(np.array([[8.0, 8.0, 9.0]])), seen, PROBABILITIES)
    return [float(value) for value in levels.root(found)[0]]


def test_a_load_within_what_the_last_day_tells_of_is_no_reason_to_follow() -> None:
    assert planned(now=3, lately=5, most=6) == pytest.approx([4, 5, 6], rel=ROUNDING)


def test_a_load_that_has_outgrown_the_last_day_is_followed() -> None:
    assert planned(now=3, lately=3, most=6.1) == pytest.approx([8, 8, 9])
    assert planned(now=3, lately=5.1, most=5.5) == pytest.approx([8, 8, 9])


def test_without_a_bound_that_replicas_are_asked_for_by_nothing_is_kept() -> None:
    kept = Steady.empty(1, delay=4, scores=SCORES, probabilities=1)
    kept.issue(np.zeros((1, 4, 1)), calm(1.0), (0.5,), slot=0, stays=np.array([1]))
    kept.score(np.ones(1), (0.5,), slots=np.array([0]), column=0)
    kept.measure(np.array([0]), np.ones((1, SCORES)), (0.5,), newest=0)
    assert kept.share.tolist() == [0.0]


def forecast(values: Floats) -> Forecast:
    (outlook,) = Forecaster(ForecastSettings()).update({0: Series(0.0, 60.0, values)}, horizons={0: (HORIZON,)})[0]
    assert isinstance(outlook, Forecast)
    return outlook


def surges(rng: np.random.Generator) -> Floats:
    """Some ten minutes of fifty requests a second, one to two hours apart, without warning."""
    found, at = np.full(MINUTES, 2.0), 30
    while at < MINUTES - 60:
        found[at : at + 10] = 50.0
        at += int(rng.integers(60, 120))
    return np.asarray(rng.poisson(found), dtype=float)


def test_surges_that_nothing_announces_are_kept_room_for_all_the_time() -> None:
    found = forecast(surges(np.random.default_rng(3)))
    assert found.steady
    assert found.room(0.975) == pytest.approx(60, rel=0.2)
    assert found.room(0.99) >= found.room(0.9) > 40


def test_a_load_that_tells_what_comes_is_followed() -> None:
    times = np.arange(MINUTES) * 60.0
    wave = 30 + 25 * np.sin(times / 3600 * 2 * np.pi / 6)
    found = forecast(np.random.default_rng(3).poisson(wave).astype(float))
    assert not found.steady
    assert found.room(0.975) == found.at(0.975)


def test_room_for_what_came_exactly_is_no_more_than_that() -> None:
    rng = np.random.default_rng(3)
    load = np.where(surges(rng) > 20, 60.0, 0.0)
    found = forecast(load)
    assert found.steady
    assert 59.8 <= found.room(0.99) <= 60.0


def test_scores_of_less_than_a_day_tell_nothing_of_surges() -> None:
    for hours in (3, 18):
        settings = ForecastSettings(score_window=hours * 3600.0)
        series = {0: Series(0.0, 60.0, surges(np.random.default_rng(3)))}
        (outlook,) = Forecaster(settings).update(series, horizons={0: (HORIZON,)})[0]
        assert isinstance(outlook, Forecast)
        assert not outlook.steady


@pytest.mark.parametrize("days", [1, 3])
def test_a_restart_finds_the_room_again_however_long_the_window(days: int) -> None:
    settings, rng = ForecastSettings(score_window=days * 86400.0), np.random.default_rng(3)
    load = np.concatenate([surges(rng), surges(rng)])
    followed = Forecaster(settings)
    for end in range(120, len(load) + 1, 120):
        (before,) = followed.update({0: Series(0.0, 60.0, load[:end])}, horizons={0: (HORIZON,)})[0]
    (after,) = Forecaster(settings).update({0: Series(0.0, 60.0, load)}, horizons={0: (HORIZON,)})[0]
    assert isinstance(before, Forecast)
    assert isinstance(after, Forecast)
    assert before.steady
    assert after.steady == pytest.approx(before.steady)


def test_less_than_a_day_of_surges_is_followed() -> None:
    assert not forecast(surges(np.random.default_rng(3))[:1000]).steady


def falling(scatter: float, minutes: int, *, to: float = 0.13) -> Floats:
    """A load of some 310 in flight that falls for good, so many minutes ago."""
    rng = np.random.default_rng(0)
    level = np.where(np.arange(MINUTES + minutes) < MINUTES, 310.0, 310.0 * to)
    noise = 1 + scatter * np.repeat(rng.standard_normal(len(level) // 5 + 1), 5)[: len(level)]
    return np.asarray(rng.poisson(level * np.maximum(noise, 0)), dtype=float)


def test_a_level_that_has_ended_is_let_go_of() -> None:
    loads = {(scatter, 0, 0.13): falling(scatter, 0) for scatter in (0, 0.1, 0.3)}
    for scatter, to, within in ((0, 0.5, 40), (0, 0, 40), (0.1, 0.5, 100), (0.3, 0.13, 100)):
        loads |= {(scatter, minutes, to): falling(scatter, minutes, to=to) for minutes in (within, 200, 720)}
    # All end at once: they are replayed together.
    histories = {case: Series(-60.0 * len(load), 60.0, load) for case, load in loads.items()}
    found = Forecaster(ForecastSettings()).update(histories, horizons=dict.fromkeys(histories, (HORIZON,)))
    kept = {case for case, (outlook,) in found.items() if isinstance(outlook, Forecast) and outlook.steady}
    assert kept == {(scatter, 0, 0.13) for scatter in (0, 0.1, 0.3)}


def test_a_calm_that_is_longer_than_any_between_two_surges_is_kept_room_in() -> None:
    rng = np.random.default_rng(3)
    assert forecast(np.concatenate([surges(rng), rng.poisson(np.full(270, 2.0))])).steady


def test_a_restart_lets_go_of_what_had_been_let_go_of() -> None:
    load, followed = falling(0.1, 120), Forecaster(ForecastSettings())
    for end in range(MINUTES - 40, len(load) + 1, 40):
        (before,) = followed.update({0: Series(0.0, 60.0, load[:end])}, horizons={0: (HORIZON,)})[0]
        assert isinstance(before, Forecast)
        assert bool(before.steady) == (end <= MINUTES)
    assert not forecast(load).steady


def test_a_new_level_is_followed_where_a_steady_load_was_before() -> None:
    rng = np.random.default_rng(1)
    noise = 1 + 0.1 * np.repeat(rng.standard_normal(MINUTES // 5 + 30), 5)[: MINUTES + 60]
    load = np.interp(np.arange(MINUTES + 60), [0, MINUTES, MINUTES + 60], [30.0, 30.0, 90.0]) * noise
    assert forecast(load[:MINUTES]).steady
    assert forecast(load[:MINUTES]).room(0.975) < 45
    for minute in range(15, 61, 15):
        found = forecast(load[: MINUTES + minute])
        assert found.room(0.975) == pytest.approx(found.at(0.975))


def test_replicas_stay_for_their_horizon_and_until_they_may_come_down() -> None:
    plan = Plan.of(ForecastSettings(), 60.0)
    assert plan.stays(np.array([3, 6, 60]), delay=16).tolist() == [4, 5, 15]
