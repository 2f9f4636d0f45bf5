"""The forecasting stage: what of the past goes into the plans."""

import numpy as np
import pytest

from models.capacity import duration
from models.forecasting.engine import Forecaster
from models.series import Series
from models.signals import Signal
from predictor.board import Board
from predictor.history import History
from predictor.outlooks import Outlooks, Pace
from tests.predictor.telemetry import examples

DAY = 86400.0
STEP = 300.0
NOW = 10 * DAY


def test_how_long_a_request_takes_is_what_it_took_in_the_last_day() -> None:
    """A slower model came a day ago: the lower quartile of all days would still be that of the old one."""
    history = History(step=STEP, span=8 * DAY)
    times = np.arange(NOW - 8 * DAY, NOW + STEP, STEP)
    seconds = np.where(times < NOW - DAY, 4.0, 20.0)
    target = examples.target()
    history.load(target.key, Signal.DURATION_MEAN, Series(times[0], STEP, seconds))
    board = Board([target])
    Outlooks(Forecaster(), history, Pace()).refresh(board, now=NOW)
    plans = board.entries[target.key].plans
    assert plans is not None
    assert plans.duration == pytest.approx(20.0)
    assert duration.unloaded(history.series(target.key, Signal.DURATION_MEAN, now=NOW)) == pytest.approx(4.0)
