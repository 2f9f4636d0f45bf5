from collections.abc import Hashable

import numpy as np
import pytest

from models.forecasting.engine import Forecaster, grid_steps
from models.forecasting.forecast import Forecast
from models.forecasting.settings import ForecastSettings
from models.series import Floats, Series

STEP = 60.0
HORIZONS = (240.0, 900.0)
SETTINGS = ForecastSettings(seasons=(3600.0, 7200.0), score_window=36000.0)


def load(key: int, n: int = 1500) -> Floats:
    times = np.arange(n) * STEP
    rng = np.random.default_rng(key)
    values = rng.poisson(30 + 20 * np.sin(times / 3600 * 2 * np.pi + key)).astype(float)
    values[200 + 50 * key : 230 + 50 * key] = np.nan
    return values


def forecasts(
    forecaster: Forecaster, values: dict[int, Floats], horizons: tuple[float, ...] = HORIZONS
) -> dict[Hashable, tuple[Forecast, ...]]:
    outlooks = forecaster.update(
        {key: Series(0.0, STEP, each) for key, each in values.items()}, horizons=dict.fromkeys(values, horizons)
    )
    return {key: tuple(o for o in each if isinstance(o, Forecast)) for key, each in outlooks.items()}


def assert_alike(one: dict[Hashable, tuple[Forecast, ...]], other: dict[Hashable, tuple[Forecast, ...]]) -> None:
    assert one.keys() == other.keys()
    for key, each in one.items():
        for a, b in zip(each, other[key], strict=True):
            assert (a.quality, a.experts) == (b.quality, b.experts)
            assert list(a.quantiles.values()) == pytest.approx(list(b.quantiles.values()), rel=1e-12)
            assert a.steady == pytest.approx(b.steady, rel=1e-12)


def test_a_restart_forecasts_as_if_it_had_never_stopped() -> None:
    whole = {key: load(key) for key in range(3)}
    followed = Forecaster(SETTINGS)
    for n in range(2, 1500, 23):
        forecasts(followed, {key: values[:n] for key, values in whole.items()})
    assert_alike(forecasts(followed, whole), forecasts(Forecaster(SETTINGS), whole))


def test_a_changed_horizon_is_learned_from_the_history() -> None:
    whole = {1: load(1)}
    changed = Forecaster(SETTINGS)
    forecasts(changed, {1: whole[1][:-1]})
    horizons = (300.0, 900.0)
    assert_alike(forecasts(changed, whole, horizons), forecasts(Forecaster(SETTINGS), whole, horizons))


def test_a_horizon_that_drifts_by_less_than_six_percent_stays_in_its_lane() -> None:
    assert [grid_steps(steps * 5.0, 5.0) for steps in (8, 15, 16)] == [8, 15, 16]
    assert grid_steps(1.0, 30.0) == 1
    for steps in range(17, 2000):
        assert grid_steps(float(steps), 1.0) == pytest.approx(steps, rel=1 / 16)
    assert len({grid_steps(float(steps), 1.0) for steps in range(64, 128)}) <= 17


def test_a_key_does_not_depend_on_the_others() -> None:
    whole = {key: load(key) for key in range(3)}
    together = forecasts(Forecaster(SETTINGS), whole)
    alone = forecasts(Forecaster(SETTINGS), {1: whole[1]})
    assert_alike({1: together[1]}, alone)


def test_a_key_that_comes_goes_and_comes_back_is_learned_anew() -> None:
    whole = {key: load(key) for key in range(2)}
    forecaster = Forecaster(SETTINGS)
    forecasts(forecaster, {0: whole[0][:900]})
    forecasts(forecaster, {key: values[:1000] for key, values in whole.items()})
    forecasts(forecaster, {1: whole[1][:1100]})
    assert_alike(forecasts(forecaster, whole), forecasts(Forecaster(SETTINGS), whole))


def test_a_series_that_fell_behind_is_carried_on_from_where_it_stopped() -> None:
    whole = {key: load(key) for key in range(2)}
    forecaster = Forecaster(SETTINGS)
    forecasts(forecaster, {0: whole[0][:1000], 1: whole[1][:1000]})
    forecasts(forecaster, {0: whole[0][:1100], 1: whole[1][:1000]})
    assert_alike(forecasts(forecaster, whole), forecasts(Forecaster(SETTINGS), whole))


def test_another_series_under_the_same_key_is_noticed() -> None:
    forecaster = Forecaster(SETTINGS)
    forecasts(forecaster, {0: load(4)[:1000]})
    assert_alike(forecasts(forecaster, {0: load(5)}), forecasts(Forecaster(SETTINGS), {0: load(5)}))


def test_an_earlier_end_starts_again() -> None:
    forecaster = Forecaster(SETTINGS)
    forecasts(forecaster, {0: load(4)})
    earlier = {0: load(4)[:1200]}
    assert_alike(forecasts(forecaster, earlier), forecasts(Forecaster(SETTINGS), earlier))


@pytest.mark.parametrize("own", [2, 30])
def test_a_past_that_is_loaded_after_a_few_readings_is_learned_from(own: int) -> None:
    whole = {key: Series(0.0, STEP, load(key, 1000)) for key in range(2)}
    late = Forecaster(SETTINGS)
    for end in (1000 - 1, 1000):
        seen = {key: series.since((1000 - own) * STEP).until((end - 1) * STEP) for key, series in whole.items()}
        late.update(seen, horizons=dict.fromkeys(seen, HORIZONS))
    horizons = dict.fromkeys(whole, HORIZONS)
    assert late.update(whole, horizons=horizons) == Forecaster(SETTINGS).update(whole, horizons=horizons)


def test_a_past_that_is_forgotten_or_unknown_at_its_beginning_is_not_replayed() -> None:
    """The forecaster follows: a point that was corrected after it was taken in does not change its scores."""
    values = load(1, 1000)
    followed = Forecaster(SETTINGS)
    forecasts(followed, {1: values[:999]})
    rewritten = values.copy()
    rewritten[300:800] *= 2  # before the two hours of the level
    unknown = np.concatenate([np.full(50, np.nan), rewritten])
    shorter = Series(-50 * STEP, STEP, unknown).since(-20 * STEP)
    (outlook, _) = followed.update({1: shorter}, horizons={1: HORIZONS})[1]
    (expected, _) = forecasts(Forecaster(SETTINGS), {1: values})[1]
    assert outlook == expected


def test_a_past_longer_than_a_forecast_looks_back_is_not_replayed_at_each_tick() -> None:
    """Eight days are 192 of these points: what lies before them was never known to the lane, and need not be."""
    values = np.random.default_rng(3).poisson(30.0, 400).astype(float)
    rewritten = values.copy()
    rewritten[250:380] *= 2
    outlooks = []
    for last in (values, rewritten):
        followed = Forecaster()
        followed.update({1: Series(0.0, 3600.0, values[:399])}, horizons={1: (7200.0,)})
        outlooks.append(followed.update({1: Series(0.0, 3600.0, last)}, horizons={1: (7200.0,)}))
    assert (
        outlooks[0] == outlooks[1] != Forecaster().update({1: Series(0.0, 3600.0, rewritten)}, horizons={1: (7200.0,)})
    )
