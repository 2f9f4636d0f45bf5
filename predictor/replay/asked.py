"""The history that a Prometheus keeps, through the service's own source."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import structlog

from models.series import Series
from models.signals import Signal, Unknown
from predictor import wiring
from predictor.errors import HistoryError
from predictor.outlooks import FORECAST_SIGNALS
from predictor.ports import SignalSource
from predictor.replay.recorded import Key, Note, Recorded
from predictor.settings.root import Settings
from predictor.targets import Target

SIGNALS = (Signal.ARRIVALS, Signal.IN_FLIGHT, Signal.DURATION_MEAN)


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """What is asked for: Unix seconds, and seconds between two points."""

    since: float
    until: float
    step: float


def read(source: SignalSource, targets: Sequence[Target], span: Span, signals: Sequence[Signal] = SIGNALS) -> Recorded:
    """What the source has of each target and signal; what is missing of the span is noted.

    Raises:
        HistoryError: it has nothing of any target.
    """
    series: dict[Key, Series] = {}
    notes: list[Note] = []
    for signal in signals:
        answers = source.history(targets, signal, since=span.since, until=span.until, step=span.step)
        for target in targets:
            answer = answers[target.key]
            where = f"{target.key}: {signal}"
            if isinstance(answer, Unknown):
                notes.append(Note(where, f"unknown: {answer.cause}: {answer.detail}"))
                continue
            series[target.key, signal] = _from_first_known(answer)
            notes += [Note(where, told) for told in _missing(answer, span)]
    if not any(signal in FORECAST_SIGNALS for _, signal in series):
        raise HistoryError(
            [
                "no history of any target; is source.prometheus right, and do namespace, model and engine name series?",
                *(f"  {one.where}: {one.what}" for one in notes),
            ]
        )
    for target in targets:
        if not any((target.key, signal) in series for signal in FORECAST_SIGNALS):
            what = f"left out: no history of {' or '.join(FORECAST_SIGNALS)}; is it named as its series are?"
            notes.append(Note(target.key, what, doubtful=True))
    return Recorded(series, tuple(notes))


def remembered(settings: Settings, targets: Sequence[Target], signals: Sequence[Signal], span: Span) -> Recorded:
    """What the configured Prometheus remembers.

    Raises:
        HistoryError: nothing is remembered of any target.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))  # gaps are told in the report
    source = wiring.prometheus(settings)
    try:
        return read(source, targets, span, signals)
    finally:
        source.close()


def _from_first_known(series: Series) -> Series:
    known = np.flatnonzero(~np.isnan(series.values))
    return series.since(series.start + float(known[0]) * series.step) if len(known) else series


def _missing(series: Series, span: Span) -> list[str]:
    """What lacks of the span that was asked for."""
    unknown = np.isnan(series.values)
    known = np.flatnonzero(~unknown)
    if not len(known):
        return ["no point is known"]
    told = []
    late = series.start + float(known[0]) * series.step - span.since
    if late > 2 * series.step:
        asked = (span.until - span.since) / 3600
        told.append(f"asked for {asked:.1f} h, the first {late / 3600:.1f} h are missing: is the retention shorter?")
    early = span.until - (series.start + float(known[-1]) * series.step)
    if early > max(2 * series.step, 300.0):
        told.append(f"the last {early / 60:.0f} min are missing: is the target still scraped?")
    holes = int(unknown[known[0] : known[-1] + 1].sum())
    if holes:
        told.append(f"{holes} of {known[-1] + 1 - known[0]} points between the first and the last are unknown")
    return told
