from pathlib import Path

import pytest

from tests.cluster import load


def test_a_season_repeats_and_runs_straight_between_its_points() -> None:
    season = load.ramp(period_s=100, base_per_s=2, peak_per_s=10)
    assert [season.rate_per_s(at) for at in (0, 50, 55, 60, 85, 90, 95)] == pytest.approx([2, 2, 6, 10, 10, 6, 2])
    assert season.rate_per_s(1_000_055) == pytest.approx(6)


def test_a_season_survives_its_file(tmp_path: Path) -> None:
    season = load.ramp(base_per_s=1.5, peak_per_s=9)
    assert load.Season.read(season.write(tmp_path / "load.yaml")) == season


def test_a_steady_load_is_a_season() -> None:
    assert load.steady(3).rate_per_s(12.34) == 3


@pytest.mark.parametrize("points", [(), ((5.0, 1.0), (1.0, 1.0)), ((10.0, 1.0),), ((0.0, -1.0),)])
def test_refuses_points_out_of_order_beyond_the_period_or_negative(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match=r"points must lie|negative"):
        load.Season(10.0, points)
