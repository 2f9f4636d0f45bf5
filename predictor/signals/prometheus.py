"""Readings and history from a Prometheus, or anything that answers its query API."""

import concurrent.futures
import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from models.series import Series
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.signals import catalog, checked, past, replies, rows, transport
from predictor.targets import Target

CLOCK_CHECKED_EVERY = 600.0  # seconds

_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """How a Prometheus is reached and read.

    Attributes:
        url: address of the query API, up to and without /api/v1.
        bearer_token_file: file with a bearer token, read for each request.
        username: user for basic authentication.
        password_file: file with the password.
        ca_file: certificates to trust instead of the system's, PEM.
        cert_file: client certificate, PEM.
        key_file: its key, PEM.
        verify: whether the server's certificate is checked.
        headers: more request headers.
        timeout: seconds for one answer.
        budget: seconds for all queries of a tick, retries included.
        history_budget: seconds for the history of one signal.
        scrape_interval: seconds between two scrapes of an engine; windows and the limit for stale samples follow it.
        labels: label names.
        selector: matchers added to every selector, such as 'cluster="prod"' in a store of several clusters.
        method: POST, or GET where a proxy lets nothing else through.
        workers: queries under way at once.
        clock_tolerance: seconds by which the server's clock may differ from ours before queries go by its own; None
            for half a scrape interval.
    """

    url: str
    bearer_token_file: Path | None = None
    username: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    verify: bool = True
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timeout: float = 10.0
    budget: float = 10.0
    history_budget: float = 120.0
    scrape_interval: float = 15.0
    labels: catalog.Labels = dataclasses.field(default_factory=catalog.Labels)
    selector: str = ""
    method: str = "POST"
    workers: int = 4
    clock_tolerance: float | None = None

    @property
    def access(self) -> transport.Access:
        """The part about the connection."""
        names = [field.name for field in dataclasses.fields(transport.Access)]
        return transport.Access(**{name: getattr(self, name) for name in names})

    @property
    def asking(self) -> catalog.Asking:
        """The part about the queries."""
        return catalog.Asking(self.labels, catalog.Windows.for_interval(self.scrape_interval), self.selector)

    @property
    def stale_after(self) -> float:
        """Age in seconds from which a sample is stale: two scrapes missed."""
        return 2 * self.scrape_interval


class PrometheusSource:
    """A `SignalSource`: one query for each signal and engine answers for all targets.

    Values are those of one scrape interval ago, so that a scrape under way is whole for all pods.
    """

    def __init__(self, settings: PrometheusSettings, engines: catalog.Catalog) -> None:
        self.matched: dict[tuple[str, Signal], str] = {}
        self._settings = settings
        self._engines = engines
        self._api = transport.Api(settings.access)
        self._pool = concurrent.futures.ThreadPoolExecutor(settings.workers, thread_name_prefix="prometheus")
        self._ages: past.Ages = {}  # of the history asked for last: its signals are asked for one after the other
        self._skew = 0.0
        self._clock_checked = -math.inf

    def close(self) -> None:
        """Lets connections go."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._api.close()

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Mapping[Signal, Reading]]:
        """Readings by target key; see `SignalSource`. `matched` says afterwards which way of asking gave each."""
        self._ages = {}
        until = time.monotonic() + self._settings.budget
        self._check_clock(now, until)
        at = math.floor(now + self._skew - self._settings.scrape_interval)
        groups = rows.grouped(targets, self._engines)
        readings: dict[str, dict[Signal, Reading]] = {target.key: {} for target in targets}
        asked = {
            (group.engine.name, signal): self._pool.submit(self._ask, group, signal, at=at, until=until)
            for group in groups
            for signal in group.engine.queries
        }
        fresh = {group.engine.name: self._pool.submit(self._samples, group, at=at, until=until) for group in groups}
        for group in groups:
            samples = fresh[group.engine.name].result()
            for signal in Signal:
                future = asked.get((group.engine.name, signal))
                answers = future.result() if future else {}
                for target in group.targets:
                    answer = answers.get(target.key, Unknown(Cause.NOT_ASKED, f"{target.engine} has no query for it"))
                    readings[target.key][signal] = self._aged(answer, samples, target.key, at=at)
        for target in targets:
            if not readings[target.key]:
                unknown = Unknown(Cause.NOT_ASKED, f"engine {target.engine!r} is not in the catalogue")
                readings[target.key] = dict.fromkeys(Signal, unknown)
        return readings

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        """Values by target key on whole multiples of `step`; see `SignalSource`. Holes are NaN, and logged.

        Asked by the server's clock and told by ours, as readings are: a past that is an hour off repeats or lacks one
        where readings go on from it. Whole steps only, so that points stay on the grid.
        """
        ahead = round(self._skew / step) * step if self._skew else 0.0
        span = past.grid(since=since + ahead, until=until + ahead, step=step)
        if any(about[1] != span for about in self._ages):
            self._ages = {}
        asking = past.Asking(
            api=self._api,
            asking=self._settings.asking,
            until=time.monotonic() + self._settings.history_budget,
            stale_after=self._settings.stale_after,
            ages=self._ages,
        )
        answers: dict[str, Series | Unknown] = {}
        for group in rows.grouped(targets, self._engines):
            answers.update(past.series(asking, group, signal, span))
        missing = Unknown(Cause.NOT_ASKED, "no query is configured")
        return {target.key: _earlier(answers.get(target.key, missing), ahead) for target in targets}

    def scraped_twice(self, targets: Sequence[Target], *, now: float) -> Mapping[str, int]:
        """Number of series that two scrape jobs report, for targets that have any: harmless here, not elsewhere."""
        until = time.monotonic() + self._settings.budget
        at = math.floor(now + self._skew - self._settings.scrape_interval)
        found: dict[str, int] = {}
        for group in rows.grouped(targets, self._engines):
            if group.engine.duplicates:
                counts = self._numbers(group, group.engine.duplicates, at=at, until=until)
                found.update({key: int(count) for key, count in counts.items() if count > 0})
        return found

    def _ask(self, group: rows.Group, signal: Signal, *, at: int, until: float) -> dict[str, Reading]:
        """Readings of one signal, each from the first way of asking that knows the target."""
        answers: dict[str, Reading] = {}
        for way in group.engine.queries[signal]:
            left = group.without(answers)
            if not left.targets:
                break
            query = group.engine.render(way.query, self._settings.asking)
            try:
                found = left.matched(self._api.instant(query, at=at, until=until), self._settings.labels)
            except replies.AnswerError as error:
                return answers | dict.fromkeys(left.keys, Unknown(error.cause, f"{way.name}: {error}"))
            for key, row in found.items():
                answers[key] = checked.reading(signal, rows.value(row), at=at)
                self.matched[key, signal] = way.name
        names = ", ".join(way.name for way in group.engine.queries[signal])
        for target in group.without(answers).targets:
            answers[target.key] = Unknown(Cause.EMPTY, group.why_empty(target, names))
        return answers

    def _samples(self, group: rows.Group, *, at: int, until: float) -> dict[str, float] | Unknown:
        """Unix time of each target's newest sample; Unknown when that was asked and not answered.

        Where the catalogue has no way to ask, or a target no row, values are as old as the moment they are asked for.
        """
        if not group.engine.fresh:
            return {}
        try:
            return self._answered(group, group.engine.fresh, at=at, until=until)
        except replies.AnswerError as error:
            return Unknown(error.cause, f"how old the samples are is not known: {error}")

    def _numbers(self, group: rows.Group, query: str, *, at: int, until: float) -> dict[str, float]:
        """What a query about the series gives, by target key; nothing when there is no answer."""
        try:
            return self._answered(group, query, at=at, until=until)
        except replies.AnswerError:
            return {}

    def _answered(self, group: rows.Group, query: str, *, at: int, until: float) -> dict[str, float]:
        answer = self._api.instant(group.engine.render(query, self._settings.asking), at=at, until=until)
        return {key: rows.value(row) for key, row in group.matched(answer, self._settings.labels).items()}

    def _aged(self, reading: Reading, samples: Mapping[str, float] | Unknown, key: str, *, at: float) -> Reading:
        """The reading with the time of its newest sample, unless that is too old: a query looks back five minutes."""
        if isinstance(reading, Unknown):
            return reading
        if isinstance(samples, Unknown):
            return samples
        sample, limit = samples.get(key), self._settings.stale_after
        taken = at if sample is None or not math.isfinite(sample) else min(sample, at)
        if at - taken > limit:
            return Unknown(Cause.STALE, f"the newest sample was {at - taken:.0f} s old, the limit is {limit:.0f} s")
        return Known(reading.value, taken - self._skew)

    def _check_clock(self, now: float, until: float) -> None:
        """Asks the server by its own time where the clocks differ by more than half a scrape interval."""
        if 0 <= now - self._clock_checked < CLOCK_CHECKED_EVERY:
            return
        try:
            skew = self._api.server_time(until=until) - now
        except replies.AnswerError:
            return  # the queries themselves will say so
        self._clock_checked = now
        tolerance = self._settings.clock_tolerance
        used = skew if abs(skew) > (self._settings.scrape_interval / 2 if tolerance is None else tolerance) else 0.0
        if (used != 0) != (self._skew != 0):
            _log.warning("clock_differs_from_prometheus", seconds=round(skew, 1), corrected=used != 0)
        self._skew = used


def _earlier(answer: Series | Unknown, seconds: float) -> Series | Unknown:
    if isinstance(answer, Unknown) or not seconds:
        return answer
    return dataclasses.replace(answer, start=answer.start - seconds)
