"""From a trace file to a course: which hours are run, on which replica, with how many requests. All by stated rules.

- Hold-out: files in alphabetical order, every second one is held out (docs/decisions/0002).
- Hours: the last day of a trace of two days to nine; the ninth day of a longer one, after eight days of history; the
  last three quarters of a shorter one. What comes before is history for forecasts and schedules.
- Replica: `llama-8b-rtx4090`, and `llama-8b-h100` where a request has more than 2600 tokens on average, or
  an answer more than 500.
- Thinning: where one replica carries more than 1.5 requests a second, each request stands for several: its prompt and
  its output are made longer until a replica carries 1.5. Fewer requests, about as many tokens.
- Scale: requests are thinned or repeated so that the busiest five minutes need between 5 and 40 replicas: as many as
  keep a run at `budget` requests.
- Counts are drawn within their steps as Poisson streams: no file of counts says how bursty they were. Files of
  requests keep their own bursts; stamps rounded to 3 s are spread over those.
"""

import dataclasses
import gzip
from pathlib import Path

import numpy as np

from models.fleet import profiles, workload
from models.fleet.profiles import Profile
from models.fleet.requests import Requests
from models.fleet.workload import Counts, FromCounts
from models.race import loadtest
from models.race.loadtest import Knee
from models.series import Floats, Series

MINUTE, DAY = 60.0, 86400.0
MEMORY = 8 * DAY
LONG, LONG_ANSWER = 2600.0, 500.0  # tokens
CARRIES = 1.5  # requests a second of one replica at most
LEAST, MOST = 5, 40  # replicas at the peak
PEAK_OVER = 5  # minutes
STAMP = 3.0  # seconds
SAMPLE = 20_000


class IdleError(ValueError):
    """A trace that is idle in the hours that are run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How much of a trace is run: hours at most, and requests that a long one is scaled to."""

    hours: float = 24.0
    budget: int = 200_000


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A trace, ready to be run.

    Attributes:
        name: of the file.
        held_out: whether no choice was made on it.
        lasts: seconds of the whole recording.
        start: first second that is run, from the start of the trace.
        end: last one.
        requests: those of these hours.
        arrivals: requests a second by minute, history included; a point at t is the minute before t.
        profile: name of the replica.
        knee: what one sustains.
        tokens: factor on each request's tokens.
        work: of each minute that is run, how many requests of the load test one of its requests weighs as.
        peak: replicas the busiest five minutes need.
        initial: replicas that are there at the start.
    """

    name: str
    held_out: bool
    lasts: float
    start: float
    end: float
    requests: Requests
    arrivals: Series
    profile: str
    knee: Knee
    tokens: float
    work: Floats
    peak: int
    initial: int

    @property
    def maximum(self) -> int:
        """Replicas at most: half as many again as the peak needs."""
        return int(np.ceil(self.peak * 1.5))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    """A file: the requests of the hours that are run, and counts by minute of all of it."""

    counts: Floats
    requests: Requests | None
    steps: Counts | None


def files(folder: Path) -> list[tuple[Path, bool]]:
    """The traces of a folder and whether each is held out."""
    found = sorted([*folder.glob("*.csv.gz"), *folder.glob("*.csv")], key=lambda path: path.name)
    return [(path, i % 2 == 1) for i, path in enumerate(found)]


def name_of(path: Path) -> str:
    """A file's name without its endings."""
    return path.name.removesuffix(".gz").removesuffix(".csv")


def window(lasts: float, hours: float) -> tuple[float, float]:
    """First and last second that are run, of a trace that lasts so many seconds."""
    day = min(hours * 3600, DAY)
    if lasts >= MEMORY + DAY:
        return MEMORY, MEMORY + day
    if lasts >= 2 * DAY:
        start = np.floor((lasts - DAY) / MINUTE) * MINUTE
        return float(start), float(start + day)
    start = float(np.floor(lasts / 4 / MINUTE) * MINUTE)
    return start, min(lasts, start + day)


def prepared(path: Path, *, held_out: bool, limits: Limits) -> Prepared:
    """Reads, measures and scales one trace. The same file gives the same requests.

    Raises IdleError where none come in the hours that are run.
    """
    raw = _read(path)
    start, end = window(len(raw.counts) * MINUTE, limits.hours)
    rng = np.random.default_rng(20)
    mine = _drawn(raw, start, end, scale=1.0) if raw.steps is None else _sample(raw.steps, start, end)
    if not len(mine):
        raise IdleError(f"{name_of(path)}: no requests from {start / 3600:.1f} to {end / 3600:.1f} h, which are run")
    picked = rng.integers(0, len(mine), min(SAMPLE, len(mine)))
    lengths = mine.select(np.sort(picked))
    profile = profiles.LLAMA_8B_RTX4090
    if (lengths.prompts + lengths.outputs).mean() > LONG or lengths.outputs.mean() > LONG_ANSWER:
        profile = profiles.LLAMA_8B_H100
    knee, tokens = _thinned(profile, lengths)
    by_size = loadtest.by_size(profile, loadtest.longer(lengths, prompts=tokens, outputs=tokens), knee)
    knee = dataclasses.replace(knee, by_size=by_size)
    rates = raw.counts[int(start // MINUTE) : int(np.ceil(end / MINUTE))] / MINUTE
    busiest = (
        float(np.convolve(rates, np.ones(PEAK_OVER) / PEAK_OVER, "valid").max())
        if len(rates) > PEAK_OVER
        else float(rates.max())
    )
    peak = int(np.clip(limits.budget * busiest / (knee.rate * (end - start) * rates.mean()), LEAST, MOST))
    scale = peak * knee.rate / busiest
    requests = loadtest.longer(_drawn(raw, start, end, scale=scale), prompts=tokens, outputs=tokens)
    arrivals = _arrivals(raw, requests, scale, (start, end))
    first = arrivals.since(start + MINUTE).values[:15].max(initial=0.0)
    initial = int(np.clip(np.ceil(1.25 * first / knee.rate), 1, peak))
    work = loadtest.weights(requests, by_size, start=start, steps=int((end - start) // MINUTE))
    return Prepared(
        name_of(path), held_out, len(raw.counts) * MINUTE, start, end, requests, arrivals, profile.name, knee, tokens,
        work, peak, initial,
    )  # fmt: skip


def _thinned(profile: Profile, lengths: Requests) -> tuple[Knee, float]:
    """What a replica sustains, and the factor on each request's tokens with which it is no more than `CARRIES`."""
    knee = loadtest.knee(profile, lengths)
    if knee.rate <= CARRIES:
        return knee, 1.0
    low, high = 1.0, 2 * knee.rate / CARRIES
    for _ in range(5):
        tokens = float(np.sqrt(low * high))
        knee = loadtest.knee(profile, loadtest.longer(lengths, prompts=tokens, outputs=tokens))
        low, high = (tokens, high) if knee.rate > CARRIES else (low, tokens)
    return loadtest.knee(profile, loadtest.longer(lengths, prompts=high, outputs=high)), high


def _read(path: Path) -> _Raw:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    if "arrival_s" in text.partition("\n")[0]:
        requests = workload.read_requests(text)
        requests = requests.shifted(-float(requests.times[0]))
        if np.allclose(requests.times % STAMP, 0):
            requests = workload.spread(requests, STAMP, np.random.default_rng(3))
        counts = np.bincount((requests.times // MINUTE).astype(np.int64))[:-1].astype(np.float64)
        return _Raw(counts, requests, None)
    steps = workload.read_counts(text)
    each = round(steps.step / MINUTE)
    return _Raw(np.repeat(steps.requests / each, each), None, steps)


def _sample(steps: Counts, start: float, end: float) -> Requests:
    rows = slice(int(start // steps.step), max(int(end // steps.step), int(start // steps.step) + 1))
    total = float(steps.requests[rows].sum())
    return FromCounts(steps, seed=5, scale=min(SAMPLE / max(total, 1.0), 1.0)).between(start, end)


def _drawn(raw: _Raw, start: float, end: float, *, scale: float) -> Requests:
    if raw.steps is not None:
        return FromCounts(raw.steps, seed=11, scale=scale).between(start, end)
    assert raw.requests is not None  # noqa: S101  (one of the two is there)
    return workload.scaled(raw.requests.between(start, end), scale, np.random.default_rng(11)).between(start, end)


def _arrivals(raw: _Raw, requests: Requests, scale: float, window: tuple[float, float]) -> Series:
    """By minute: before the window as often as the trace says, with the chance of a draw; in it the requests."""
    start, end = window
    first = int(max(start - MEMORY, 0) // MINUTE)
    past = np.random.default_rng(13).poisson(raw.counts[first : int(start // MINUTE)] * scale)
    inside = np.bincount(((requests.times - start) // MINUTE).astype(np.int64), minlength=int((end - start) // MINUTE))
    rates = np.concatenate([past, inside]) / MINUTE
    return Series((first + 1) * MINUTE, MINUTE, rates)
