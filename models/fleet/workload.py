"""Requests from traces and from a generator: the same seed gives the same ones, in whatever pieces they are asked for.

A source is asked for the requests of one piece of time after another. What it draws for a minute depends on the seed
and the minute alone.
"""

import dataclasses
import io
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from models.fleet import requests
from models.fleet.requests import Requests
from models.series import Floats

MINUTE = 60.0
TOKEN_SIGMA = (
    0.8  # spread of the logarithm of prompt and output lengths inside a minute, near that of the request traces
)

LEAST_CV, MOST_CV = 0.05, 100.0  # nearly a clock; all of a step at once


class Source(Protocol):
    """Where requests come from."""

    def between(self, start: float, end: float) -> Requests:
        """Those at or after `start` and before `end`, seconds from the start of the trace."""
        ...


# -------------------------------------------------------------------------------------------------------- request files
def read_requests(text: str) -> Requests:
    """A request file: columns arrival_s, prompt_tokens, output_tokens. Raises ValueError for any other."""
    columns = _columns(text, ("arrival_s", "prompt_tokens", "output_tokens"))
    order = np.argsort(columns[0], kind="stable")
    times, prompts, outputs = (column[order] for column in columns)
    if np.isnan(times).any() or np.isnan(prompts).any() or np.isnan(outputs).any():
        raise ValueError("a request file has no empty cells: a request without a length cannot be served")
    return Requests(times, np.maximum(prompts, 1).astype(np.int64), np.maximum(outputs, 1).astype(np.int64))


def _columns(text: str, names: tuple[str, ...]) -> list[Floats]:
    have = text.partition("\n")[0].strip().split(",")
    missing = [name for name in names if name not in have]
    if missing:
        raise ValueError(f"columns {', '.join(missing)} are missing; there are {', '.join(have)}")
    table = pd.read_csv(io.StringIO(text), usecols=list(names), dtype=np.float64)
    return [table[name].to_numpy() for name in names]


def burstiness(times: Floats) -> float:
    """Coefficient of variation of the time between arrivals: 1 for a Poisson stream. Raises ValueError below 3."""
    gaps = np.diff(times)
    if len(gaps) < 2 or gaps.mean() == 0:  # noqa: PLR2004  (a spread needs two)
        raise ValueError(f"{len(times)} arrivals: at least 3 at different times are needed")
    return float(gaps.std() / gaps.mean())


def spread(given: Requests, seconds: float, rng: np.random.Generator) -> Requests:
    """Adds U(0, seconds) to each arrival: for stamps that were rounded down to a grid of that width."""
    times = given.times + rng.uniform(0, seconds, len(given))
    order = np.argsort(times, kind="stable")
    return dataclasses.replace(given.select(order), times=times[order]) if len(given) else given


def scaled(given: Requests, factor: float, rng: np.random.Generator, *, jitter: float = 5.0) -> Requests:
    """Thinned or repeated to `factor` times as many, binomially; tokens stay with their request.

    A repetition arrives up to `jitter` seconds later than the original: other users like it, not the same one twice.
    """
    if not factor >= 0:
        raise ValueError(f"factor is {factor!r}: must not be negative")
    copies = int(factor) + (rng.random(len(given)) < factor % 1)
    which = np.repeat(np.arange(len(given)), copies)
    first = np.concatenate([[True], which[1:] != which[:-1]]) if len(which) else np.zeros(0, bool)
    times = given.times[which] + np.where(first, 0.0, rng.uniform(0, jitter, len(which)))
    order = np.argsort(times, kind="stable")
    return dataclasses.replace(_unordered(given, which[order]), times=times[order])


def _unordered(given: Requests, which: npt.NDArray[np.int64]) -> Requests:
    chunk = given.chunk()
    placeholder = np.zeros(len(which))
    return Requests(placeholder, *[column[which] for column in chunk[1:]])


# -------------------------------------------------------------------------------------------------------- minute counts
@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Requests and tokens in steps of equal length; arrays of shape (n,).

    Attributes:
        step: seconds.
        requests: in each step; NaN where unknown, which is served as the mean of the neighbours.
        prompt: mean prompt tokens of a request.
        output: mean output tokens of a request.
    """

    step: float
    requests: Floats
    prompt: Floats
    output: Floats

    def __post_init__(self) -> None:
        if not self.step > 0 or len(self.requests) == 0:
            raise ValueError(f"step is {self.step!r} s with {len(self.requests)} steps: both must be positive")
        for name in ("requests", "prompt", "output"):
            object.__setattr__(self, name, _filled(np.asarray(getattr(self, name), dtype=np.float64), name))


def _filled(values: Floats, name: str) -> Floats:
    known = np.flatnonzero(np.isfinite(values))
    if len(known) == 0:
        raise ValueError(f"{name}: no step has a value")
    filled: Floats = np.interp(np.arange(len(values)), known, values[known])
    return filled


def read_counts(text: str, *, prompt: float = 1000.0, output: float = 200.0) -> Counts:
    """A file of counts: columns minute, requests, prompt_tokens, output_tokens, the last two sums over the step.

    `prompt` and `output` are the means of a request where the file knows no tokens.
    """
    minutes, count, prompts, outputs = _columns(text, ("minute", "requests", "prompt_tokens", "output_tokens"))
    if len(minutes) < 2:  # noqa: PLR2004  (the step is the distance of two)
        raise ValueError("a file of counts needs two steps at least")
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [np.where(count > 0, tokens / count, np.nan) for tokens in (prompts, outputs)]
    means = [np.full(len(count), usual) if np.isnan(mean).all() else mean
             for mean, usual in zip(means, (prompt, output), strict=True)]  # fmt: skip
    return Counts(float(np.median(np.diff(minutes))) * MINUTE, count, *means)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class FromCounts:
    """Requests drawn inside the steps of counts, each with as many as it counts.

    Arrivals are a renewal process with gamma gaps, given that a step has its count: one number says how bursty it is,
    1 is Poisson exactly, and gamma gaps are among those that ServeGen (arXiv 2505.09999) fits to production streams.

    Attributes:
        counts: what is drawn from.
        seed: of the draws.
        scale: times as many requests, by thinning or repeating binomially.
        cv: coefficient of variation of the time between arrivals inside a step: 1 is Poisson, more is bursts. Among n
            arrivals it cannot exceed the root of n, all of them at once; what is asked for is reached where n is some
            times its square.
    """

    counts: Counts
    seed: int = 0
    scale: float = 1.0
    cv: float = 1.0

    def __post_init__(self) -> None:
        if not LEAST_CV <= self.cv <= MOST_CV:
            raise ValueError(f"cv is {self.cv!r}: must lie in {LEAST_CV:g}..{MOST_CV:g}; 1 is Poisson")

    def between(self, start: float, end: float) -> Requests:
        """Those at or after `start` and before `end`, seconds."""
        first, last = int(max(start, 0) // self.counts.step), int(np.ceil(end / self.counts.step))
        steps = range(first, min(last, len(self.counts.requests)))
        return requests.joined(map(self._step, steps)).between(start, end)

    def _step(self, k: int) -> Requests:
        rng = np.random.default_rng([self.seed, k])
        whole = int(self.counts.requests[k]) + int(rng.random() < self.counts.requests[k] % 1)
        n = int(self.scale) * whole + int(rng.binomial(whole, self.scale % 1))
        times = (k + _positions(rng, n, self.cv)) * self.counts.step
        return Requests(
            times,
            drawn_lengths(rng, n, float(self.counts.prompt[k])),
            drawn_lengths(rng, n, float(self.counts.output[k])),
        )


def _positions(rng: np.random.Generator, n: int, cv: float) -> Floats:
    """So many arrivals in 0..1, not falling, with gamma gaps of the given coefficient of variation.

    Drawn on a circle that is then turned: from one end of the step to the other, most steps would begin and end with
    a burst, and all streams would beat with the minute. For Poisson gaps it makes no difference.
    """
    if cv == 1:
        gaps = rng.gamma(1.0, 1.0, n + 1) + 1e-300
        found: Floats = np.minimum(np.cumsum(gaps)[:n] / gaps.sum(), 1 - 1e-12)
        return found
    # By their logarithms and from the largest on: in great bursts all would underflow, and come out even.
    logs = np.log(rng.gamma(1 / cv**2 + 1, 1.0, n)) - rng.exponential(cv**2, n)
    gaps = np.exp(logs - logs.max(initial=-np.inf))
    turned = np.cumsum(gaps) / max(gaps.sum(), 1.0) + rng.random()
    return np.minimum(np.sort(turned % 1.0), 1 - 1e-12)


def drawn_lengths(rng: np.random.Generator, n: int, mean: float) -> npt.NDArray[np.int64]:
    """Tokens of so many requests around a mean, as they spread inside a minute; shape (n,)."""
    drawn = rng.lognormal(np.log(max(mean, 1.0)) - TOKEN_SIGMA**2 / 2, TOKEN_SIGMA, n)
    return np.clip(np.rint(drawn), 1, 1 << 17).astype(np.int64)


# ------------------------------------------------------------------------------------------------------------ generator
@dataclasses.dataclass(frozen=True, slots=True)
class Surge:
    """A rise to `factor` times the rate at `at`, over `ramp` seconds, gone again after `lasts` (inf: a launch)."""

    at: float
    factor: float
    lasts: float = np.inf
    ramp: float = 60.0

    def at_time(self, t: Floats) -> Floats:
        """The factor at times t, seconds."""
        up = np.clip((t - self.at) / self.ramp, 0, 1)
        down = np.clip((t - self.at - self.lasts) / self.ramp, 0, 1) if np.isfinite(self.lasts) else 0.0
        found: Floats = 1 + (self.factor - 1) * (up - down)
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Synthetic:
    """A generated workload: a level with seasons, a trend, surges and launches, and noise that wanders.

    Attributes:
        rate: mean requests per second.
        day: share of the rate by which the day swings about it, 0..1, highest at `peak` (hours).
        hour: share of the rate by which each hour swings.
        weekend: factor on the last two days of each seven.
        growth: share by which the rate grows in a day.
        surges: rises, foreseen by nobody.
        noise: spread of the logarithm of the rate from minute to minute.
        cv: coefficient of variation of the time between arrivals inside a minute.
        prompt: mean prompt tokens.
        output: mean output tokens.
        turns: mean turns of a session; 1 for requests without sessions. A turn shares the earlier turns' tokens.
        seed: of the draws.
    """

    rate: float
    day: float = 0.5
    peak: float = 14.0
    hour: float = 0.0
    weekend: float = 1.0
    growth: float = 0.0
    surges: tuple[Surge, ...] = ()
    noise: float = 0.1
    cv: float = 1.0
    prompt: float = 1000.0
    output: float = 200.0
    turns: float = 1.0
    seed: int = 0

    def expected(self, t: Floats) -> Floats:
        """Requests per second at times t (seconds), without noise."""
        days = t / 86400
        level = self.rate * (1 + self.day * np.cos(2 * np.pi * (days - self.peak / 24)))
        level = level * (1 + self.hour * np.sin(2 * np.pi * t / 3600)) * (1 + self.growth * days)
        level = np.where(days % 7 >= 5, level * self.weekend, level)  # noqa: PLR2004  (days of a week)
        for surge in self.surges:
            level = level * surge.at_time(t)
        return np.maximum(level, 0.0)

    def between(self, start: float, end: float) -> Requests:
        """Those at or after `start` and before `end`, seconds."""
        minutes = range(int(max(start, 0) // MINUTE), int(np.ceil(end / MINUTE)))
        return requests.joined(map(self._minute, minutes)).between(start, end)

    def _minute(self, k: int) -> Requests:
        rng = np.random.default_rng([self.seed, k])
        rate = float(self.expected(np.array([(k + 0.5) * MINUTE]))[0]) * rng.lognormal(-(self.noise**2) / 2, self.noise)
        n = int(rng.poisson(rate * MINUTE))
        times = (k + _positions(rng, n, self.cv)) * MINUTE
        prompts, outputs = drawn_lengths(rng, n, self.prompt), drawn_lengths(rng, n, self.output)
        if self.turns <= 1:
            return Requests(times, prompts, outputs)
        # Sessions of a geometric number of turns, spread over the minutes around: those alive number rate x turns.
        alive = max(int(self.rate * MINUTE * self.turns), 1)
        sessions = rng.integers(0, alive, n) + alive * (k // max(int(self.turns), 1))
        shared = np.where(rng.random(n) < 1 - 1 / self.turns, (prompts * rng.uniform(0.5, 1.0, n)).astype(np.int64), 0)
        return Requests(times, prompts, outputs, sessions, shared)
