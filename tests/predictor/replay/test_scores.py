"""Scores: ours and the rivals' on the same origins, by hour, and over several replays."""

import datetime as dt
import zoneinfo

import numpy as np
import pytest

from predictor.replay import backtest, rivals, scores
from tests.predictor.replay import histories
from tests.predictor.replay.histories import HOUR, KEY


@pytest.fixture(scope="module")
def scored() -> scores.Scores:
    (one,) = backtest.run(
        {KEY: histories.series(histories.daily(1.5))},
        backtest.Questions({"chat": (300.0,)}, every=240.0, learning=6 * HOUR),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "SAMPLES", 10)  # an automatic ARIMA takes half a second each
        return scores.of(one, dt.UTC, slow=True)


def test_every_rival_that_is_installed_is_compared(scored: scores.Scores) -> None:
    names = [row.name for row in scored.table]
    assert names == [scores.OURS, *(one.name for one in rivals.ALL if one.name not in rivals.missing())]
    assert all(np.isfinite(row.coverage).all() for row in scored.table)


def test_slow_rivals_are_asked_at_some_origins_and_that_is_said(scored: scores.Scores) -> None:
    assert set(scored.sampled.values()) == {10}
    by_name = {row.name: row for row in scored.table}
    for name in scored.sampled:
        assert by_name[name].scored <= 10
        assert np.isnan(by_name[name].worst).all()  # three hours in a row were not asked


def test_our_own_ratio_is_one_and_a_bare_level_covers_next_to_nothing(scored: scores.Scores) -> None:
    by_name = {row.name: row for row in scored.table}
    assert by_name[scores.OURS].ratio.tolist() == [1.0] * 6
    assert by_name["reactive level"].coverage[-1] < 0.4
    assert by_name["reactive level"].ratio[-1] < 0.5


def test_hours_of_day_are_those_of_the_zone(scored: scores.Scores) -> None:
    elsewhere = scores.of(scored.replayed, zoneinfo.ZoneInfo("Asia/Tokyo"), slow=False)
    np.testing.assert_array_equal(elsewhere.hours[(np.arange(24) + 9) % 24], scored.hours)
    assert elsewhere.sampled == {}


def test_the_overall_row_is_the_mean_of_coverage_and_the_geometric_mean_of_losses(scored: scores.Scores) -> None:
    (first, *_) = scores.overall([scored, scored])
    np.testing.assert_allclose(first.coverage, scored.ours.coverage)
    np.testing.assert_allclose(first.ratio, 1.0)
    assert scores.overall([]) == []
