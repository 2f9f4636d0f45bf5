"""The pieces of work, each a function of plain values that a process of its own can do, and that is done once."""

import contextlib
import dataclasses
import functools
import itertools
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.scoreboard import contenders, store, traces
from benchmarks.scoreboard.contenders import Contender
from benchmarks.scoreboard.store import Store
from benchmarks.scoreboard.traces import Limits, Prepared
from models.fleet import profiles
from models.race import foresight, running
from models.race.foresight import Foresight, Past
from models.race.running import Course, Recording

TARGETS = ((0.01, 4), (0.001, 3))  # shares of misses, and how often the knob's interval around them is halved
RACE = tuple(f"models/race/{name}.py" for name in ("driver", "glance", "pods", "running"))
FLEET = ("models/fleet", *RACE, "models/signals.py", "models/series.py")  # what a run's outcome depends on


@dataclasses.dataclass(frozen=True, slots=True)
class Trace:
    """A trace file and how much of it is run."""

    path: Path
    held_out: bool
    limits: Limits
    key: str


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """One policy on one trace at one warm-up (seconds): its whole sweep."""

    trace: Trace
    warm_up: float
    policy: str
    close: bool


def trace_of(path: Path, limits: Limits, *, held_out: bool) -> Trace:
    """The trace of a file, known by the file's content and the code that prepares it."""
    code = store.version(
        "models/fleet", "benchmarks/scoreboard/traces.py", "models/race/loadtest.py", "models/capacity/sizes.py"
    )
    return Trace(path, held_out, limits, store.key("trace", store.of_file(path), dataclasses.astuple(limits), code))


def prepare(trace: Trace, folder: Path) -> Prepared:
    """The trace ready to be run, from the store if it was before."""
    kept = Store(folder)
    found = kept.kept(f"traces/{trace.key}")
    if not isinstance(found, Prepared):
        found = traces.prepared(trace.path, held_out=trace.held_out, limits=trace.limits)
        kept.put_object(f"traces/{trace.key}", found)
    return dataclasses.replace(found, name=traces.name_of(trace.path), held_out=trace.held_out)


def ready(trace: Trace, folder: Path) -> Prepared | str:
    """The same, or why there is nothing to run."""
    try:
        return prepare(trace, folder)
    except traces.IdleError as why:
        return str(why)


def foresee(group: Sequence[Trace], warm_ups: tuple[float, ...], folder: Path) -> None:
    """Forecasts of several traces, as far as they are not in the store."""
    warnings.simplefilter("ignore")
    kept = Store(folder)
    missing = {
        trace.key: trace for trace in group
        if not all(_foreseen(kept, trace, warm_up) for warm_up in warm_ups)
    }  # fmt: skip
    pasts = {key: _past(prepare(trace, folder)) for key, trace in missing.items()}
    for (key, warm_up), found in foresight.foresee(pasts, warm_ups).items():
        kept.put_object(_foresight_name(missing[key], warm_up), found)


def _past(trace: Prepared) -> Past:
    return Past(trace.arrivals, trace.start, trace.end)


def _foresight_name(trace: Trace, warm_up: float) -> str:
    return f"forecasts/{store.key(trace.key, warm_up, _forecast_code())}"


@functools.cache
def _forecast_code() -> str:
    return store.version("models/forecasting", "models/race/foresight.py", "models/capacity/warmup.py")


def _foreseen(kept: Store, trace: Trace, warm_up: float) -> Foresight | None:
    found = kept.kept(_foresight_name(trace, warm_up))
    return found if isinstance(found, Foresight) else None


@functools.cache
def _code(policy: str) -> str:
    if contenders.is_ours(policy):
        mine = ("models/race/ours.py", "models/race/foresight.py", "models/policy", "models/capacity")
        return store.version(*FLEET, *mine, "models/forecasting")
    return store.version(*FLEET, "models/peers")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A worker's progress bar is all there is to see; whoever calls it in process gets its log and warnings back."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


@_quiet()
def sweep(job: Job, folder: Path) -> list[dict[str, Any]]:
    """The points of one policy, as `sought` says; `took` is the seconds of a run made now, None of one made before."""
    kept, trace = Store(folder), _prepared(job.trace, folder)
    foreseen = _foreseen(kept, job.trace, job.warm_up) if contenders.is_ours(job.policy) else None
    contender = contenders.contenders(trace, job.warm_up, foreseen).get(job.policy)
    if contender is None:
        return []

    def run(value: float) -> dict[str, Any]:
        warm_up = 0.0 if job.policy == contenders.STATIC else job.warm_up
        name = f"runs/{store.key(job.trace.key, warm_up, job.policy, value, _code(job.policy))}"
        found, took = kept.json(name), None
        if found is None:
            began = time.monotonic()
            found = _run(trace, contender, value, warm_up)
            took = time.monotonic() - began
            kept.put_json(name, found)
        of_sweep = {"knob": value, "knob_is": contender.knob, "default": value == contender.default}
        return {**found, **of_sweep, "took": took}

    return sought(contender.values, contender.default, run, close=job.close)


@functools.lru_cache(maxsize=2)
def _prepared(trace: Trace, folder: Path) -> Prepared:
    return prepare(trace, folder)


def _run(trace: Prepared, contender: Contender, value: float, warm_up: float) -> dict[str, Any]:
    always = contender.name == contenders.STATIC
    initial = min(round(value), trace.maximum) if always else trace.initial
    course = Course(
        profile=profiles.named(trace.profile),
        source=Recording(trace.requests),
        start=trace.start,
        end=trace.end,
        warm_up=warm_up,
        objective=trace.knee.objective,
        initial=initial,
        maximum=trace.maximum,
        timeout=max(60.0, 2 * trace.knee.objective),
    )
    policy = contender.make(value)
    interval = 600.0 if always else contender.interval
    return dataclasses.asdict(running.run(course, policy, interval=interval))


def sought(
    values: Sequence[float], default: float, run: Callable[[float], dict[str, Any]], *, close: bool
) -> list[dict[str, Any]]:
    """Runs the default and both ends, then halves the knob's interval around each target share of misses.

    Where none of them meets a target, the values beside the best are run, and so on from the new best, until one meets
    it or both beside the best are worse: a policy that is good only in the middle of its sweep is found, as long as
    its attainment has one peak over the knob. A sweep of nine values takes four to nine runs so; `close` off leaves it
    at the first three.
    """
    done = {place: run(values[place]) for place in {values.index(default), 0, len(values) - 1}}
    for allowed, halvings in TARGETS if close else ():
        while (place := _beside_the_best(done, len(values), allowed)) is not None:
            done[place] = run(values[place])
        for _ in range(halvings):
            if (place := _between(done, allowed)) is not None:
                done[place] = run(values[place])
    return [done[place] for place in sorted(done)]


def _beside_the_best(done: dict[int, dict[str, Any]], values: int, allowed: float) -> int | None:
    """A neighbour of the best run, to try next; None when it keeps to the allowed misses, or both were tried."""
    best = min(sorted(done), key=lambda place: _missed(done[place]))
    if _missed(done[best]) <= allowed:
        return None
    return next((place for place in (best - 1, best + 1) if 0 <= place < values and place not in done), None)


def _between(done: dict[int, dict[str, Any]], allowed: float) -> int | None:
    """The middle of two neighbours of which one keeps to the allowed misses; None when they are next to each other.

    Of several such pairs one whose miss is the cheaper of the two goes first: only there is the frontier.
    """
    found = []
    for low, high in itertools.pairwise(sorted(done)):
        good, bad = sorted((done[low], done[high]), key=_missed)
        if _missed(good) <= allowed < _missed(bad) and high - low > 1:
            found.append((bad["replica_hours"] > good["replica_hours"], (low + high) // 2))
    return min(found)[1] if found else None


def _missed(point: dict[str, Any]) -> float:
    return float(point["missed"] / point["requests"]) if point["requests"] else 0.0


def groups(every: Iterable[Trace], parts: int) -> list[list[Trace]]:
    """Traces dealt out to so many processes."""
    listed = list(every)
    return [part for k in range(parts) if (part := listed[k::parts])]
