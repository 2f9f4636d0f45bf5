"""`floorcast backtest`: from what was asked for on the command line to the report."""

import dataclasses
import math
import shlex
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import rich.console
import rich.progress
import rich.table

from models.capacity import duration
from models.capacity.profile import Profile
from models.forecasting.settings import ForecastSettings
from models.policy.planning import Objectives
from models.series import Series
from models.signals import Signal
from predictor import wiring
from predictor.clock import SystemClock
from predictor.errors import ConfigurationError, HistoryError
from predictor.outlooks import FORECAST_SIGNALS
from predictor.ports import Clock
from predictor.replay import (
    asked,
    backtest,
    commandline,
    csvfiles,
    economics,
    gridding,
    report,
    scores,
    tracefiles,
    verdict,
)
from predictor.replay.recorded import Note, Recorded
from predictor.settings import convert, durations
from predictor.settings.root import Settings

WARM_UP = 300.0  # seconds, where neither the command line nor a configuration says
SAID = 12  # verdicts that are on the terminal one by one; the report has all of them
SLOW_FOR = 12  # replays for which slow rivals are asked; each takes them half a minute
LEAST_POINTS = 10
NAMED = 5  # targets of a configuration in an error


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line; a source is one of `files`, `csv` and `since`. Durations and numbers are still text.

    Attributes:
        files: in the traces' format.
        csv: a CSV file.
        columns: which of its columns is what.
        unit: what its requests and tokens are given in.
        zone: of local times and of hours of day.
        since: how far back a Prometheus is asked.
        settings: the configuration, with `since`.
        warm_up: warm-ups, separated by commas.
        every: distance between two forecasts.
        step: distance between two points.
        quantile: the one probability to judge.
        objective: share of the load that should find enough replicas.
        concurrency: requests in flight one replica carries.
        throughput: requests a second one replica carries.
        duration: of a request.
        slow: whether slow rivals are asked.
        out: folder of the report.
        arguments: the command line as it was given.
    """

    files: tuple[Path, ...] = ()
    csv: Path | None = None
    columns: str = ""
    unit: csvfiles.Unit = csvfiles.Unit.RATE
    zone: str = "UTC"
    since: str = ""
    settings: Settings | None = None
    warm_up: str = ""
    every: str = "2m"
    step: str = ""
    quantile: float | None = None
    objective: float = verdict.OBJECTIVE
    concurrency: float | None = None
    throughput: float | None = None
    duration: str = ""
    slow: bool = True
    out: Path = Path("backtest")
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sources = sum(bool(one) for one in (self.files, self.csv, self.since))
        if sources != 1:
            raise ConfigurationError(
                f"{sources} sources are given; give one of --file, --csv with --columns, or --since with --config"
            )
        if self.csv and not self.columns:
            raise ConfigurationError("--columns: is missing; say which column is what, as in time=ts,requests=rps")
        for name in ("concurrency", "throughput"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigurationError(f"--{name}: {value:g} must be a positive number")
        if not 0 < self.objective < 1:
            raise ConfigurationError(f"--objective: {self.objective:g} must lie between 0 and 1, as 0.99")


def run(given: Asked, *, clock: Clock | None = None) -> int:
    """Runs the back-test and prints its sentence. Returns the exit code.

    Raises:
        ConfigurationError: the command line cannot be used.
        HistoryError: the recorded history cannot be.
    """
    clock = clock or SystemClock()
    commandline.folder("--out", given.out)  # before the minutes that the rest takes
    terminal = rich.console.Console(stderr=True)
    with commandline.progress(terminal) as bar:
        outcome = made(given, clock.now(), bar)
    try:
        page, table = report.write(outcome, given.out)
    except OSError as error:
        raise ConfigurationError(f"--out: {given.out}: {error.strerror or error}; name another folder") from error
    out = rich.console.Console()
    _show(outcome, out)
    for doubt in dict.fromkeys(f"{note.where}: {note.what}" for note in outcome.notes if note.doubtful):
        out.print(f"note: {doubt}", highlight=False, soft_wrap=True, markup=False)
    for line in (*_each(outcome.verdicts), f"\n{outcome.headline}\n", f"{page} and {table} have the rest."):
        out.print(line, highlight=False, soft_wrap=True, markup=False)
    return 0


def _each(verdicts: Sequence[verdict.Verdict]) -> Iterator[str]:
    """Where the last sentence is about several, what each of the first ones would say alone, its reason included."""
    if len(verdicts) > 1:
        yield ""
        for one in verdicts[:SAID]:
            yield f"{one.target} (warm-up {durations.written(one.warm_up)}): {one.sentence}"


def made(given: Asked, now: float, bar: rich.progress.Progress) -> report.Outcome:
    """What the back-test finds; `now` is Unix seconds."""
    step = bar.add_task("reading", total=None)
    recorded = _recorded(given, now)
    _configured(given, recorded)
    objectives, assumed = _objectives(given, recorded)
    questions = _questions(given, recorded)
    only = _only(given, questions)
    _plausible(recorded, objectives)
    bar.update(step, description="forecasting", total=1.0)
    found = backtest.run(recorded.series, questions, tell=lambda share: bar.update(step, completed=share))
    graded = _graded(found, given, bar)
    weighed = list(_weighed(found, recorded, objectives))
    notes = (*recorded.notes, *assumed)
    if len(found) > SLOW_FOR and given.slow:
        notes = (*notes, Note("rivals", f"slow ones are compared on the first {SLOW_FOR} of {len(found)} replays"))
    return report.Outcome(
        command=shlex.join(("floorcast", "backtest", *given.arguments)),
        made_at=now,
        notes=notes,
        absolute=recorded.absolute,
        zone=str(questions.forecast.zone),
        scores=tuple(graded),
        overall=tuple(scores.overall(graded)),
        economics=tuple(weighed),
        verdicts=tuple(verdict.of(one, objective=given.objective, only=only) for one in weighed),
        objective=given.objective,
    )


# ------------------------------------------------------------------------------------------------------------- reading


def _recorded(given: Asked, now: float) -> Recorded:
    step = commandline.seconds("--step", given.step) if given.step else None
    if given.files:
        recorded = tracefiles.read(given.files, step=step)
    elif given.csv:
        mapped = csvfiles.mapped(given.columns)
        recorded = csvfiles.read(given.csv, csvfiles.Reading(mapped, given.unit, _zone(given.zone), step))
    else:
        recorded = _from_prometheus(given, now)
    return _replayable(recorded, commandline.seconds("--every", given.every))


def _replayable(recorded: Recorded, every: float) -> Recorded:
    """Without series that are too short for any forecast; each is noted."""
    series, notes = dict(recorded.series), list(recorded.notes)
    for key, one in recorded.series.items():
        if key[1] not in FORECAST_SIGNALS:
            continue
        where = f"{key[0]}: {key[1]}"
        if one.known < LEAST_POINTS:
            notes.append(
                Note(where, f"{one.known} points are known, fewer than {LEAST_POINTS}: left out", doubtful=True)
            )
        elif len(one) * one.step < every:
            long, asked_for = durations.written(len(one) * one.step), durations.written(every)
            notes.append(Note(where, f"its {long} hold no forecast every {asked_for}: left out", doubtful=True))
        else:
            continue
        del series[key]
    if not any(signal in FORECAST_SIGNALS for _, signal in series):
        why = f"fewer than {LEAST_POINTS} points of {' or '.join(FORECAST_SIGNALS)}, or less than one --every"
        raise HistoryError([f"{why}: nothing to replay", *(f"  {note.where}: {note.what}" for note in notes)])
    return dataclasses.replace(recorded, series=series, notes=tuple(notes))


def _configured(given: Asked, recorded: Recorded) -> None:
    """Refuses a recording of targets that the configuration does not know, where it is asked about them.

    Raises:
        ConfigurationError: there is one.
    """
    if given.settings is None or (given.warm_up and (given.concurrency or given.throughput)):
        return
    have = sorted(target.key for target in convert.targets(given.settings))
    missing = sorted({target for target, _ in recorded.series} - set(have))
    if missing:
        named = ", ".join([*have[:NAMED], *(["others"] if len(have) > NAMED else [])]) or "none"
        raise ConfigurationError(
            f"--config: has no target {missing[0]!r}, as the recording calls it; it has {named}:"
            " call it so in a column of targets, or leave --config out"
        )


def _from_prometheus(given: Asked, now: float) -> Recorded:
    since, settings = commandline.since(given.since), commandline.prometheus(given.settings)
    step = commandline.seconds("--step", given.step) if given.step else settings.history.step
    points = since / step
    if points > gridding.LONGEST:
        raise ConfigurationError(
            f"--since: {given.since!r} has {points:,.0f} points of {step:g} s, more than {gridding.LONGEST:,}: ask for"
            " less, or for a longer --step"
        )
    until = now - settings.source.prometheus.scrape_interval
    span = asked.Span(until - since, until, step)
    return asked.remembered(settings, convert.targets(settings), asked.SIGNALS, span)


def _questions(given: Asked, recorded: Recorded) -> backtest.Questions:
    names = sorted({target for target, _ in recorded.series})
    told = tuple(
        dict.fromkeys(commandline.seconds("--warm-up", one) for one in given.warm_up.split(",") if one.strip())
    )
    forecast, settings = ForecastSettings(zone=_zone(given.zone)), given.settings
    every = commandline.seconds("--every", given.every)
    if settings is None:
        return backtest.Questions(dict.fromkeys(names, told or (WARM_UP,)), every=every, forecast=forecast)
    own = {target.key: (target.warm_up,) for target in convert.targets(settings)}
    pace = wiring.pace(settings)
    return backtest.Questions(
        {name: told or own[name] for name in names},
        every=every,
        interval=pace.slow,
        signal_age=pace.signal_age,
        forecast=convert.forecast(settings),
    )


def _only(given: Asked, questions: backtest.Questions) -> float | None:
    known = questions.forecast.quantiles
    if given.quantile is None:
        return None
    near = [q for q in known if abs(q - given.quantile) < 1e-9 and q > 0.5]  # noqa: PLR2004  (floors are above the median)
    if not near:
        have = ", ".join(f"{q:g}" for q in known if q > 0.5)  # noqa: PLR2004
        raise ConfigurationError(f"--quantile: {given.quantile:g} is not forecast; use one of {have}")
    return near[0]


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(f"--zone: {name!r} is no known time zone; write one like Europe/Berlin") from None


# ------------------------------------------------------------------------------------------------------------ judging


def _objectives(given: Asked, recorded: Recorded) -> tuple[Mapping[str, Objectives], tuple[Note, ...]]:
    """How each target is planned for, and what had to be assumed."""
    seconds = commandline.seconds("--duration", given.duration) if given.duration else None
    if given.settings is not None and given.concurrency is None and given.throughput is None:
        return {target.key: target.objectives for target in convert.targets(given.settings)}, ()
    found: dict[str, Objectives] = {}
    notes = []
    for target in dict.fromkeys(target for target, signal in recorded.series if signal in FORECAST_SIGNALS):
        seen = {signal: one for (whose, signal), one in recorded.series.items() if whose == target}
        profile, assumed = _profile(given, seen, seconds)
        found[target] = Objectives(profile=profile)
        notes += [Note(target, assumed)] if assumed else []
    return found, tuple(notes)


def _plausible(recorded: Recorded, objectives: Mapping[str, Objectives]) -> None:
    """Refuses what would take more replicas than anybody has: comparing ways to have them would say nothing.

    Raises:
        ConfigurationError: the busiest point takes more than are planned for.
    """
    for (target, signal), series in recorded.series.items():
        if signal not in FORECAST_SIGNALS:
            continue
        profile = objectives[target].profile
        seen = recorded.series.get((target, Signal.DURATION_MEAN))
        each = economics.per_replica(profile, signal, profile.duration or (duration.unloaded(seen) if seen else None))
        busiest = float(np.nanmax(series.values))
        if each and busiest / each > economics.UNBOUNDED:
            raise ConfigurationError(
                f"{target}: {signal} of {busiest:.3g} at the busiest point would take {busiest / each:.3g} replicas of"
                f" {each:.3g} each, more than {economics.UNBOUNDED:,}: give what one replica carries in the unit of the"
                " recording as --throughput, or --concurrency with --duration"
            )


def _profile(given: Asked, seen: Mapping[Signal, Series], seconds: float | None) -> tuple[Profile, str]:
    """What a replica carries of the signals that were seen, and what had to be assumed for it."""
    arrivals, in_flight, durations_seen = (
        seen.get(one) for one in (Signal.ARRIVALS, Signal.IN_FLIGHT, Signal.DURATION_MEAN)
    )
    lasts = seconds or (duration.unloaded(durations_seen) if durations_seen else None)
    if given.concurrency is not None and (given.throughput or lasts or in_flight):
        return Profile(concurrency=given.concurrency, throughput=given.throughput, duration=seconds), ""
    if given.throughput is not None and arrivals:
        return _at_throughput(given.throughput, arrivals, in_flight, seconds)
    profile = economics.assumed_profile(
        arrivals=arrivals.values if arrivals else None, in_flight=in_flight.values if in_flight else None
    )
    carries = f"{profile.throughput:.3g} requests/s" if profile.throughput else f"{profile.concurrency:.3g} in flight"
    both = f" and {profile.concurrency:.3g} in flight" if arrivals and in_flight else ""
    what = f"a replica is assumed to carry {carries}{both}, so that the busiest time takes ten; give --throughput"
    return profile, f"{what}, or --concurrency with --duration"


def _at_throughput(
    each: float, arrivals: Series, in_flight: Series | None, seconds: float | None
) -> tuple[Profile, str]:
    """What a replica carries where only requests a second were given; in flight as many replicas are busiest."""
    if in_flight is None:
        return Profile(concurrency=1.0, throughput=each, duration=seconds), ""
    holds = economics.busiest(in_flight.values) * each / economics.busiest(arrivals.values)
    what = f"a replica is assumed to hold {holds:.3g} in flight, so that both signals take as many; give --concurrency"
    return Profile(concurrency=holds, throughput=each, duration=seconds), what


def _graded(found: Sequence[backtest.Replayed], given: Asked, bar: rich.progress.Progress) -> list[scores.Scores]:
    step = bar.add_task("comparing", total=len(found))
    graded = []
    for i, one in enumerate(found):
        name = one.key[0]
        zone = _zone(given.zone) if given.settings is None else convert.forecast(given.settings).zone

        def tell(rival: str, name: str = name) -> None:
            bar.update(step, description=f"comparing {name}: {rival}")

        graded.append(scores.of(one, zone, slow=given.slow and i < SLOW_FOR, tell=tell))
        bar.advance(step)
    return graded


def _weighed(
    found: Sequence[backtest.Replayed], recorded: Recorded, objectives: Mapping[str, Objectives]
) -> Iterator[economics.Economics]:
    for target, warm_up in dict.fromkeys((one.key[0], one.warm_up) for one in found):
        durations_seen = recorded.series.get((target, Signal.DURATION_MEAN))
        weighed = economics.weigh(
            backtest.signals_of(found, target, warm_up),
            objectives[target],
            duration=duration.unloaded(durations_seen) if durations_seen else None,
        )
        if weighed is not None:
            yield weighed


def _show(outcome: report.Outcome, console: rich.console.Console) -> None:
    if not outcome.overall:
        console.print("No forecast could be scored: the history is shorter than the horizon.")
        return
    quantiles = outcome.scores[0].replayed.probabilities
    table = rich.table.Table("forecaster", *(f"p{q * 100:g}" for q in quantiles), "worst 3 h of p95", "loss")
    place = quantiles.index(0.95) if 0.95 in quantiles else len(quantiles) - 1  # noqa: PLR2004
    for one in outcome.overall:
        cells = [f"{value:.3f}" for value in one.coverage]
        table.add_row(one.name, *cells, *(_figure(value) for value in (one.worst[place], one.ratio[place])))
    console.print("Covered at each quantile; loss is Floorcast's over the other's at p95, below 1 Floorcast is better.")
    console.print(table)


def _figure(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "-"
