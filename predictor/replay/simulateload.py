"""What `floorcast simulate` serves: a trace, a generated workload, or what a Prometheus remembers."""

import dataclasses

import numpy as np

from models.fleet import requests, workload
from models.fleet.requests import Requests
from models.fleet.workload import Counts, FromCounts, Source, Surge, Synthetic
from models.series import Floats, Series
from models.signals import Signal
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay.recorded import Note, Recorded
from predictor.settings import durations

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MEMORY = 8 * DAY
SAMPLE = 5000  # requests from which the load test draws lengths
SIGNALS = (Signal.ARRIVALS, Signal.TOKENS_IN, Signal.TOKENS_OUT)
GENERATED = ("rate", "day", "peak", "hour", "weekend", "growth", "noise", "cv", "prompt", "output", "days", "surge")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Requests of some hours, and the arrivals before and in them.

    Attributes:
        name: for people.
        source: where the requests come from.
        arrivals: a second, by minute; a point at t is the minute before t. History included.
        start: first second that is simulated, on the axis of the arrivals.
        end: last one.
        lengths: some of the requests, for a load test.
        notes: what was assumed or repaired.
    """

    name: str
    source: Source
    arrivals: Series
    start: float
    end: float
    lengths: Requests
    notes: tuple[Note, ...] = ()


def window(lasts: float, hours: float) -> tuple[float, float]:
    """The last `hours` of a recording of so many seconds, but never its first quarter, which forecasts learn from."""
    start = max(lasts - hours * HOUR, lasts / 4)
    return float(np.ceil(start / MINUTE) * MINUTE), float(np.floor(lasts / MINUTE) * MINUTE)


def usual_tokens(mean: float) -> str:
    """Says what was assumed of requests whose tokens nobody knows."""
    return f"unknown: requests have {mean:g} tokens on average (--prompt, --output)"


def of_counts(name: str, steps: Counts, *, hours: float, seed: int, notes: tuple[Note, ...] = ()) -> Workload:
    """Requests drawn inside steps of counts.

    Raises ValueError where they cannot be.
    """
    longer, shorter = max(steps.step, MINUTE), min(steps.step, MINUTE)
    if abs(longer / shorter - round(longer / shorter)) > 1e-6:  # noqa: PLR2004  (rounding of times in decimals)
        raise ValueError(f"rows are {steps.step:g} s apart: must be whole minutes, or parts of one")
    start, end = checked(window(len(steps.requests) * steps.step, hours))
    source = FromCounts(steps, seed=seed)
    each = max(round(steps.step / MINUTE), 1)
    rates = np.repeat(steps.requests / steps.step, each) if steps.step >= MINUTE else _coarse(steps)
    return Workload(name, source, Series(MINUTE, MINUTE, rates), start, end, some_of(source, start), notes)


def _coarse(steps: Counts) -> Floats:
    each = round(MINUTE / steps.step)
    whole = len(steps.requests) // each * each
    return np.asarray(steps.requests[:whole].reshape(-1, each).sum(axis=1) / MINUTE, dtype=np.float64)


def bursty(load: Workload, cv: float) -> Workload:
    """The same counts with their requests in bursts; `cv` of the time between two, 1 for Poisson.

    Raises:
        ConfigurationError: the requests are not drawn inside steps of counts, or `cv` cannot be had.
    """
    if isinstance(load.source, Synthetic):
        raise ConfigurationError(
            f"--burstiness: {cv:g}: a generated workload has its own; write cv={cv:g} in --generate"
        )
    if not isinstance(load.source, FromCounts):
        raise ConfigurationError(f"--burstiness: {cv:g}: {load.name} says when each request came; leave the flag out")
    if not workload.LEAST_CV <= cv <= workload.MOST_CV:
        raise ConfigurationError(
            f"--burstiness: {cv:g} must lie in {workload.LEAST_CV:g}..{workload.MOST_CV:g}; 1 is Poisson"
        )
    source = dataclasses.replace(load.source, cv=cv)
    what = f"gaps inside a step of {source.counts.step:g} s have a coefficient of variation of {cv:g}"
    return dataclasses.replace(load, source=source, notes=(*load.notes, Note("--burstiness", what)))


def checked(span: tuple[float, float]) -> tuple[float, float]:
    """The span, if it is long enough to simulate; ValueError else."""
    if span[1] - span[0] < 10 * MINUTE:
        raise ValueError("is shorter than a quarter of an hour: nothing to simulate after the history")
    return span


def some_of(source: Source, start: float) -> Requests:
    """Requests from the beginning of what is simulated, as many hours as a sample takes; ValueError if none."""
    given = requests.none()
    for hours in (1, 6, 24):
        given = source.between(start, start + hours * HOUR)
        if len(given) >= SAMPLE:
            break
    if len(given) == 0:
        raise ValueError("has no requests on the day that is simulated")
    return given.select(slice(0, 4 * SAMPLE))


def generated(text: str, *, hours: float, seed: int) -> Workload:
    """A generated workload from `rate=20,day=0.6,surge=6h:3:30m,...`.

    Raises ConfigurationError naming the parameter that cannot be used.
    """
    given = _parameters(text)
    surges = tuple(_surge(one) for one in given.pop("surge", []))
    numbers = {name: _number(name, values[-1]) for name, values in given.items()}
    days = numbers.pop("days", 8.0)
    if not days > 0:
        raise ConfigurationError(f"--generate: days is {days:g}: the history before the simulated day must be positive")
    start = days * DAY
    placed = tuple(dataclasses.replace(surge, at=surge.at + start) for surge in surges)
    source = Synthetic(**{"rate": 20.0, **numbers}, surges=placed, seed=seed)
    end = start + hours * HOUR
    middles = np.arange(MINUTE / 2, end, MINUTE)
    wander = np.random.default_rng([seed, 1]).lognormal(0, source.noise, len(middles))
    history = np.random.default_rng([seed, 2]).poisson(source.expected(middles) * wander * MINUTE) / MINUTE
    arrivals = Series(MINUTE, MINUTE, history.astype(np.float64))
    return Workload("generated", source, arrivals, start, end, some_of(source, start))


def _parameters(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, sign, value = part.partition("=")
        if not sign or name not in GENERATED:
            raise ConfigurationError(f"--generate: {part!r}: write name=value with one of {', '.join(GENERATED)}")
        found.setdefault(name, []).append(value)
    return found


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ConfigurationError(f"--generate: {name}={value!r}: must be a number") from None
    if not np.isfinite(number) or number < 0 or (name in {"rate", "cv", "prompt", "output"} and number == 0):
        raise ConfigurationError(f"--generate: {name}={value}: must be {'positive' if number == 0 else 'finite, not negative'}")  # fmt: skip  # noqa: E501
    return number


def _surge(text: str) -> Surge:
    """AT:FACTOR[:LASTS], as 6h:3:30m; without LASTS it stays."""
    parts = text.split(":")
    try:
        at, factor = float(durations.parse(parts[0])), float(parts[1])
        lasts = float(durations.parse(parts[2])) if len(parts) > 2 else np.inf  # noqa: PLR2004  (the third part)
    except (ValueError, IndexError) as error:
        raise ConfigurationError(f"--generate: surge={text!r}: write AT:FACTOR:LASTS, as 6h:3:30m") from error
    return Surge(at, factor, lasts)


def recorded(found: Recorded, target: str, *, hours: float, seed: int, tokens: tuple[float, float]) -> Workload:
    """Steps of a target, from a Prometheus or a file; requests have the mean lengths its tokens say, else `tokens`.

    Raises:
        HistoryError: there is nothing to simulate.
    """
    series = found.series.get((target, Signal.ARRIVALS))
    if series is None or series.known == 0:
        raise HistoryError(f"{target}: its arrivals are not known: nothing to simulate")
    if not np.nansum(series.values) > 0:
        raise HistoryError(f"{target}: has no requests: nothing to simulate")
    notes = [note for note in found.notes if note.where.startswith(target)]
    means = []
    for signal, usual in ((Signal.TOKENS_IN, tokens[0]), (Signal.TOKENS_OUT, tokens[1])):
        known = found.series.get((target, signal))
        if known is None or len(known) != len(series) or known.known == 0:
            notes.append(Note(f"{target}: {signal}", usual_tokens(usual)))
            means.append(np.full(len(series), usual))
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                means.append(np.where(series.values > 0, known.values / series.values, np.nan))
    counts = Counts(series.step, series.values * series.step, *means)
    try:
        return of_counts(target, counts, hours=hours, seed=seed, notes=tuple(notes))
    except ValueError as error:
        raise HistoryError(f"{target}: {error}") from error
