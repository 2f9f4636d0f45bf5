import numpy as np
import pytest

from models.forecasting import levels


@pytest.mark.parametrize("window", [5.0, 40.0])
def test_levels_are_the_same_whichever_way_they_are_computed(window: float) -> None:
    rng = np.random.default_rng(1)
    values = rng.poisson(20, (3, 700)) + np.linspace(0, 30, 700)
    values[1, :200] = np.nan
    values[2, :] = 7.0
    assert np.allclose(
        levels._by_filter(values, window), levels._by_column(values, window), rtol=1e-9, atol=0, equal_nan=True
    )


def test_levels_begin_with_the_first_known_value() -> None:
    values = np.array([[np.nan, np.nan, 4.0, 4.0]])
    assert np.array_equal(levels.past_levels(values, 10.0), [[np.nan, np.nan, 4.0, 4.0]], equal_nan=True)
