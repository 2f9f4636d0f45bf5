"""History by range queries: in pieces the server accepts, stitched on the grid, holes counted."""

import dataclasses
import math
import re
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import structlog

from models.series import Floats, Series
from models.signals import Cause, Signal, Unknown
from predictor.signals import catalog, checked, replies, rows, transport

POINTS_A_QUERY = 10_000  # Prometheus refuses more than 11 000 points a series
VALUES_A_QUERY = 400_000  # some 15 MB of JSON
SAMPLED = re.compile(r"timestamp\(([^(){}\s]+\{[^{}]*\})\)")  # of one selector, as the catalogue asks it
FEWEST_POINTS = 20  # a piece this small that is still too much is a hole

_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Asking:
    """What a history is asked with.

    Attributes:
        api: who answers.
        asking: how queries are written.
        until: the `time.monotonic()` at which to give up.
        stale_after: seconds from which on a sample is too old.
        ages: filled in: which points rest on samples too old, by what was asked. All signals of an engine share them.
    """

    api: transport.Api
    asking: catalog.Asking
    until: float
    stale_after: float
    ages: "Ages"


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """Points wanted, and the whole-second times that are asked for them."""

    start: float
    step: float
    points: int
    asked: transport.Span

    def columns(self, times: Floats) -> npt.NDArray[np.intp]:
        """Indices of asked times; -1 for what cannot be one."""
        places = np.rint((times - self.asked.start) / self.asked.step)
        return np.where(np.abs(places) <= self.asked.points, places, -1).astype(np.intp)

    def series(self, values: Floats) -> Series:
        """Values at the asked times, shape (asked.points,), as a series on the grid."""
        wanted = self.start + self.step * np.arange(self.points)
        columns = np.floor((wanted - self.asked.start) / self.asked.step + 1e-6).astype(np.intp)
        return Series(self.start, self.step, values[np.clip(columns, 0, len(values) - 1)])


Ages: TypeAlias = dict[tuple[str, Grid, tuple[str, ...]], dict[str, npt.NDArray[np.bool_]]]
"""Engine, grid and target keys asked for -> target key -> which points of the grid rest on samples too old."""


def grid(*, since: float, until: float, step: float) -> Grid:
    """The whole multiples of `step` from `since` to `until`.

    The API takes whole seconds only; where `step` has a fraction, whole ones are asked and the last before each point
    is taken.

    Raises:
        ValueError: `step` is not positive or `until` lies before `since`.
    """
    if not step > 0 or until < since:
        raise ValueError(f"since {since!r}, until {until!r}, step {step!r}: step must be positive, since before until")
    first, last = math.ceil(since / step - 1e-9), math.floor(until / step + 1e-9)
    points = max(last - first + 1, 1)
    start, end = first * step, (first + points - 1) * step
    whole = max(math.floor(step), 1)
    begin = math.floor(start)
    return Grid(start, step, points, transport.Span(begin, begin + (math.floor(end) - begin) // whole * whole, whole))


def series(asking: Asking, group: rows.Group, signal: Signal, grid: Grid) -> dict[str, Series | Unknown]:
    """One signal of all targets of an engine: each from the first way of asking that knows it, stale points removed."""
    answers: dict[str, Series | Unknown] = {}
    ways = group.engine.queries.get(signal, ())
    for way in ways:
        left = group.without(answers)
        if not left.targets:
            break
        try:
            found = _stitched(asking, left, way.query, grid)
        except replies.AnswerError as error:
            return answers | dict.fromkeys(left.keys, Unknown(error.cause, f"{way.name}: {error}"))
        for key, values in found.items():
            answers[key] = grid.series(checked.values(signal, values))
    names = ", ".join(way.name for way in ways)
    if not ways:
        return dict.fromkeys(group.keys, Unknown(Cause.NOT_ASKED, f"{group.engine.name} has no query for it"))
    return _reported(_without_ghosts(asking, group, answers, grid), group, signal, names)


def _stitched(asking: Asking, group: rows.Group, query: str, grid: Grid) -> dict[str, Floats]:
    """Values at the asked times by target key; a target that is in no piece is left out.

    Raises:
        AnswerError: a piece has no answer for a passing reason.
    """
    text = group.engine.render(query, asking.asking)
    found: dict[str, Floats] = {}
    points = min(POINTS_A_QUERY, max(VALUES_A_QUERY // len(group.targets), FEWEST_POINTS))
    for piece in grid.asked.pieces(points):
        for row_of in _pieces(asking, text, piece):
            for key, row in group.matched(row_of, asking.asking.labels).items():
                values = found.setdefault(key, np.full(grid.asked.points, np.nan))
                times, numbers = rows.points(row)
                columns = grid.columns(times)
                inside = (columns >= 0) & (columns < len(values))
                values[columns[inside]] = numbers[inside]
    return found


def _pieces(asking: Asking, query: str, span: transport.Span) -> list[list[rows.Row]]:
    """Answers for a span; halved where the server finds it too much, and a hole where even little is."""
    try:
        return [list(asking.api.range(query, span, until=asking.until))]
    except replies.RefusedError as error:
        if not error.too_much:
            raise
        if span.points <= FEWEST_POINTS:
            _log.warning("history_piece_refused", start=span.start, end=span.end, error=str(error))
            return []
        halves = span.pieces(math.ceil(span.points / 2))
        return [answer for half in halves for answer in _pieces(asking, query, half)]


def _without_ghosts(
    asking: Asking, group: rows.Group, answers: dict[str, Series | Unknown], grid: Grid
) -> dict[str, Series | Unknown]:
    """Without the points that rest on samples too old: a query looks back up to 5 minutes and invents what it shows."""
    if not group.engine.fresh or not answers:
        return answers
    about = group.engine.name, grid, tuple(group.keys)
    found = asking.ages.get(about)
    if found is None:
        try:
            found = asking.ages[about] = _stale(asking, group, group.engine.fresh, grid)
        except replies.AnswerError as error:
            _log.warning("history_age_unknown", engine=group.engine.name, error=str(error))
            return answers
    for key, stale in found.items():
        answer = answers.get(key)
        if isinstance(answer, Series):
            answers[key] = Series(answer.start, answer.step, np.where(stale, np.nan, answer.values))
    return answers


def _stale(asking: Asking, group: rows.Group, query: str, grid: Grid) -> dict[str, npt.NDArray[np.bool_]]:
    """Which points of the grid rest on samples too old, by target key.

    Over a range `timestamp()` costs a Prometheus from before summer 2023 (pull request 12579) ten times what values do.
    The time of the newest sample is not needed: only whether a series that is shown has one that is young enough.
    """
    young = SAMPLED.sub(_counted(asking.stale_after), query)
    if young != query:
        counts = _stitched(asking, group, young, grid)
        return {key: grid.series((count == 0).astype(np.float64)).values > 0 for key, count in counts.items()}
    times = grid.asked.start + grid.asked.step * np.arange(grid.asked.points)
    return {
        key: grid.series((times - sampled > asking.stale_after).astype(np.float64)).values > 0
        for key, sampled in _stitched(asking, group, query, grid).items()
    }


def _counted(seconds: float) -> str:
    """How many samples a series had within that time: 0 where it is shown with an older one only."""
    return rf"(count_over_time(\1[{round(seconds * 1000)}ms]) or 0 * \1)"


def _reported(
    answers: dict[str, Series | Unknown], group: rows.Group, signal: Signal, names: str
) -> dict[str, Series | Unknown]:
    """Answers for every target; those shorter than asked, or with holes, are logged once each."""
    for target in group.targets:
        answer = answers.get(target.key)
        if isinstance(answer, Series) and answer.known:
            _log_gaps(target.key, signal, answer)
        elif not isinstance(answer, Unknown):
            answers[target.key] = Unknown(Cause.EMPTY, group.why_empty(target, names))
    return answers


def _log_gaps(key: str, signal: Signal, series: Series) -> None:
    known = np.flatnonzero(~np.isnan(series.values))
    holes = int(known[-1] - known[0] + 1 - len(known))
    if known[0] > 0 or holes:
        _log.info(
            "history_shorter_than_asked" if known[0] > 0 else "history_has_holes",
            target=key,
            signal=str(signal),
            asked_s=round((len(series) - 1) * series.step),
            returned_s=round((known[-1] - known[0]) * series.step),
            holes=holes,
        )
