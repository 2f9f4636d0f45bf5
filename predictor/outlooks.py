"""The forecasting stage of a slow tick: history -> outlooks -> plans, for all targets at once."""

import dataclasses
from collections.abc import Hashable, Iterable, Mapping

from models.capacity import duration, sizing, warmup
from models.forecasting import events
from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Outlook
from models.policy import planning
from models.series import Series
from models.signals import Signal
from predictor import grading
from predictor.board import Board, Entry, Plans
from predictor.history import History
from predictor.ports import Workload
from predictor.targets import Target

FORECAST_SIGNALS = (Signal.ARRIVALS, Signal.IN_FLIGHT)  # of every target; `signals` for those of one
MOST_IN_A_ROW = 4  # warm-ups that are looked ahead where replicas start one by one: a forecast for longer says little


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often is looked, how old what is seen may be, and how long a tick may decide, all in seconds.

    Without a `deadline` a tick may decide and write for as long as the distance to the next one. `rate_window` is how
    far back the source's rates look.
    """

    slow: float = 30.0
    fast: float = 10.0
    signal_age: float = 15.0
    deadline: float | None = None
    rate_window: float = 60.0

    @property
    def rates_lag(self) -> float:
        """Seconds by which rates are behind what is counted at the moment: they tell of the middle of their window."""
        return self.rate_window / 2


class Outlooks:
    """Makes the plans of all targets from their histories."""

    def __init__(self, forecaster: Forecaster, history: History, pace: Pace) -> None:
        self._forecaster = forecaster
        self._history = history
        self._pace = pace
        self._grading = grading.Grading(apart=min(grading.APART, grading.INTERVALS * pace.slow))

    def refresh(self, board: Board, *, now: float) -> None:
        """New plans in every row of the board."""
        ahead = {key: self._horizons(entry) for key, entry in board.entries.items()}
        keys = [(key, signal) for key, entry in board.entries.items() for signal in signals(entry.target)]
        histories = self._histories(keys, now=now)
        outlooks = self._forecaster.update(
            histories,
            horizons={(key, signal): (ahead[key].raising, ahead[key].lowering) for key, signal in keys},
        )
        grades = self._grading.grade({key: raising for key, (raising, _) in outlooks.items()}, histories)
        for key, entry in board.entries.items():
            mine = signals(entry.target)
            # Graded is what was forecast; planned with, what is known to come besides.
            pairs = {signal: _pair(_raised(entry, signal, outlooks, histories)) for signal in mine}
            graded = {signal: grades[key, signal] for signal in mine if (key, signal) in grades}
            entry.plans = dataclasses.replace(self._plans(entry, pairs, ahead[key], now=now), grades=graded)

    def _histories(self, keys: Iterable[tuple[str, Signal]], *, now: float) -> dict[Hashable, Series]:
        return {(key, signal): self._history.series(key, signal, now=now) for key, signal in keys}

    def _horizons(self, entry: Entry) -> warmup.Horizons:
        usual = entry.workload.warm_up if isinstance(entry.workload, Workload) else None
        seconds = warmup.warm_up(usual, default=entry.target.warm_up) * _in_a_row(entry)
        return warmup.horizons(seconds, interval=self._pace.slow, signal_age=self._pace.signal_age)

    def _plans(
        self,
        entry: Entry,
        outlooks: Mapping[Signal, tuple[Outlook, Outlook]],
        ahead: warmup.Horizons,
        *,
        now: float,
    ) -> Plans:
        objectives = entry.objectives
        since = now - duration.LOOKBACK
        day = self._history.series(entry.target.key, Signal.DURATION_MEAN, now=now, since=since)
        seconds = duration.unloaded(day)

        def plan(which: int, probability: float) -> sizing.Planned:
            chosen = {signal: pair[which] for signal, pair in outlooks.items()}
            return planning.plan_for(chosen, profile=objectives.profile, probability=probability, duration=seconds)

        return Plans(
            made_at=now,
            horizons=ahead,
            outlooks=outlooks,
            raising=plan(0, objectives.raise_quantile),
            lowering=plan(1, objectives.lower_quantile),
            duration=seconds,
        )


def signals(target: Target) -> tuple[Signal, ...]:
    """What is forecast of a target: token rates only where they are planned for."""
    return (*FORECAST_SIGNALS, *planning.token_signals(target.objectives.profile))


def _in_a_row(entry: Entry) -> int:
    """Warm-ups until the replicas of the last plan are all Ready: more than one where they start one by one."""
    workload, plans = entry.workload, entry.plans
    if not isinstance(workload, Workload) or not workload.one_by_one:
        return 1
    wanted = plans.raising.replicas if plans and isinstance(plans.raising, sizing.Plan) else 0
    return min(max(min(wanted, workload.maximum) - workload.supply.ready, 1), MOST_IN_A_ROW)


def _raised(
    entry: Entry,
    signal: Signal,
    outlooks: Mapping[Hashable, tuple[Outlook, ...]],
    histories: Mapping[Hashable, Series],
) -> tuple[Outlook, ...]:
    place = (entry.target.key, signal)
    known = [one.event for one in entry.target.events if signal in one.signals]
    return tuple(events.raised(outlook, known, histories[place]) for outlook in outlooks[place])


def _pair(outlooks: tuple[Outlook, ...]) -> tuple[Outlook, Outlook]:
    raising, lowering = outlooks
    return raising, lowering
