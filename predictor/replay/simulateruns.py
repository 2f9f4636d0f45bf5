"""Every asked-for policy on one workload: its default with the course of the day, and its frontier."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from models.fleet.profiles import Profile
from models.fleet.scorecard import Scorecard
from models.peers import registry
from models.peers.engine import Engine
from models.policy.protocol import Autoscaler
from models.race import foresight, loadtest, ours, running
from models.race.foresight import Foresight, Past
from models.race.frontier import Point
from models.race.loadtest import Knee
from models.race.running import Course, Glimpse, Outcome
from models.series import Floats, Series
from predictor.errors import ConfigurationError
from predictor.replay import simulatepolicies
from predictor.replay.simulateload import Workload
from predictor.replay.simulatemanifest import Own
from predictor.replay.simulatepolicies import Chosen

OURS, REACTIVE = "floorcast", "floorcast-reactive"
PLANNED = 0.9  # quantile of the warm-ups that is planned with, as in the service
QUICKEST = 5.0  # seconds between two decisions: the pages are scraped every 15
MOMENTS = 1500  # points of a timeline


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is simulated.

    Attributes:
        profile: of a replica.
        warm_up: shortest and longest, seconds; each is drawn evenly between.
        retries: how often a client that gave up comes back.
        objective: seconds to the first token; None for twice what an idle replica needs for 99.9 % of the requests.
        concurrency: requests in flight a replica is planned for; None for what a load test on the fleet says.
        policies: none for all there are, as usually set up; with `own` for Floorcast alone.
        own: policies from manifests, each between its own bounds.
        minimum: replicas at least.
        maximum: replicas at most; None for twice what the busiest minute needs.
        sweep: runs at other settings than the default, by policy, for the frontier.
        seed: of what the fleet draws.
    """

    profile: Profile
    warm_up: tuple[float, float] = (300.0, 300.0)
    retries: int = 0
    objective: float | None = None
    concurrency: float | None = None
    policies: tuple[Chosen, ...] = ()
    own: tuple[Own, ...] = ()
    minimum: int = 1
    maximum: int | None = None
    sweep: int = 2
    seed: int = 1

    @property
    def planned(self) -> float:
        """Seconds of warm-up that policies plan with: the p90, which even draws have at nine tenths of the way."""
        shortest, longest = self.warm_up
        return shortest + PLANNED * (longest - shortest)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The course of one run; arrays of shape (n,).

    Attributes:
        times: seconds.
        demand: requests a second that arrived since the point before.
        ready: replicas that serve.
        warming: replicas on their way.
        queue: requests that wait for a place in a batch.
        missed: share of misses among the requests judged since the point before; NaN without any.
        ttft: p99 of the requests that got their first token since then, seconds; NaN without any.
    """

    times: Floats
    demand: Floats
    ready: Floats
    warming: Floats
    queue: Floats
    missed: Floats
    ttft: Floats


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Raced:
    """One policy.

    Attributes:
        name: of the policy; with its value where that was given.
        knob: what its sweep turns.
        default: the setting of the run shown; None where that is a manifest.
        outcome: what came of it.
        card: how it served, as of the last point of the timeline.
        timeline: how it went.
        points: of its frontier, the default among them.
        given: whether the setting is the user's own, which no sweep turns.
    """

    name: str
    knob: str
    default: float | None
    outcome: Outcome
    card: Scorecard
    timeline: Timeline
    points: tuple[Point, ...]
    given: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Found:
    """All that a simulation found."""

    knee: Knee
    course: Course
    raced: tuple[Raced, ...]


def run(load: Workload, question: Question, *, tell: Callable[[str, float], None]) -> Found:
    """Load test, forecasts, and every policy. `tell` gets what is done now and the share that is done.

    Raises ConfigurationError for a policy nobody knows, and for a number of replicas that the bounds forbid.
    """
    tell("load test", 0.0)
    knee = _knee(load, question)
    course = _course(load, question, knee)
    known = _contenders(load, question, (knee, course))
    usual = (OURS,) if question.own else (OURS, *known)
    policies = tuple(dict.fromkeys(question.policies)) or tuple(map(Chosen, usual))
    unknown = [one.name for one in policies if one.name not in {*known, OURS}]
    if unknown:
        raise ConfigurationError(
            f"--policy: {unknown[0]!r} is not known; there are {', '.join((OURS, *sorted(known)))}"
        )
    for one in policies:
        simulatepolicies.check(one, minimum=course.minimum, maximum=course.maximum)
    if any(one.name == OURS for one in policies):
        past = {load.name: Past(load.arrivals, load.start, load.end)}
        foreseen = foresight.foresee(past, (question.planned,), tell=lambda share: tell("forecasting", share * 0.3))
        known[OURS] = _ours(knee, foreseen[load.name, question.planned])
    raced, runs = [], len(question.own) + len(policies)
    for i, own in enumerate(question.own):
        tell(own.name, 0.3 + 0.7 * i / runs)
        raced.append(
            _own(own, _course(load, dataclasses.replace(question, minimum=own.minimum, maximum=own.maximum), knee))
        )
    for i, one in enumerate(policies, len(question.own)):
        begun = 0.3 + 0.7 * i / runs
        sweep = question.sweep if one.value is None else 0
        outcome = _raced(_set(known[one.name], one), course, sweep, functools.partial(_tell, tell, begun))
        raced.append(dataclasses.replace(outcome, given=one.value is not None))
    return Found(knee, course, tuple(raced))


def _set(rival: registry.Rival, chosen: Chosen) -> registry.Rival:
    """The policy as it was asked for."""
    if chosen.value is None:
        return rival
    return dataclasses.replace(rival, name=chosen.label, default=chosen.value)


def _tell(tell: Callable[[str, float], None], share: float, what: str) -> None:
    tell(what, share)


def _knee(load: Workload, question: Question) -> Knee:
    knee = loadtest.knee(question.profile, load.lengths, objective=question.objective)
    if question.concurrency is None:
        by_size = loadtest.by_size(question.profile, load.lengths, knee)
        return dataclasses.replace(knee, by_size=by_size)
    stays = knee.concurrency / knee.rate
    return dataclasses.replace(knee, concurrency=question.concurrency, rate=question.concurrency / stays)


def _course(load: Workload, question: Question, knee: Knee) -> Course:
    inside = load.arrivals.since(load.start + load.arrivals.step).values
    busiest = float(np.nanmax(inside, initial=0.0))
    first = float(np.nanmax(inside[:15], initial=0.0))
    minimum = question.minimum
    maximum = question.maximum or max(int(np.ceil(2 * busiest / knee.rate)), 2, minimum)
    return Course(
        profile=question.profile,
        source=load.source,
        start=load.start,
        end=load.end,
        warm_up=question.planned,
        drawn=question.warm_up,
        retries=question.retries,
        seed=question.seed,
        objective=knee.objective,
        initial=int(np.clip(np.ceil(1.25 * first / knee.rate), minimum, maximum)),
        minimum=minimum,
        maximum=maximum,
        timeout=max(60.0, 2 * knee.objective),
    )


def _contenders(load: Workload, question: Question, found: tuple[Knee, Course]) -> dict[str, registry.Rival]:
    knee, course = found
    profile = question.profile
    engine = Engine(
        profile.law, profile.kv_tokens, profile.token_budget, profile.max_num_seqs, profile.law.alpha0 / 1e3
    )
    inside = load.arrivals.since(load.start + load.arrivals.step)
    history = load.arrivals.until(load.start)
    terms = registry.Terms(
        rate=knee.rate,
        concurrency=knee.concurrency,
        engine=engine,
        ttft=knee.objective,
        itl=max(knee.itl, 0.05),
        warm_up=question.planned,
        peak=max(int(np.ceil(np.nanmax(inside.values, initial=0.0) / knee.rate)), 1),
        minimum=course.minimum,
        maximum=course.maximum,
        history=history if history.known else None,
        future=dataclasses.replace(inside, start=load.start, values=_weighed(load, inside, knee)),
    )

    def alone(headroom: float) -> Autoscaler:
        return ours.Floorcast(ours.objectives(knee, headroom), None, lead=question.planned)

    reactive = registry.Rival(
        REACTIVE, alone, ours.KNOB, ours.CAUTION_ALONE, ours.HEADROOM, "Floorcast without its forecast"
    )
    return {rival.name: rival for rival in (reactive, *registry.rivals(terms))}


def _weighed(load: Workload, inside: Series, knee: Knee) -> Floats:
    """The arrivals by what each weighs, where load tests at several sizes were made."""
    values = np.nan_to_num(inside.values)
    if knee.by_size is None:
        return values
    requests = load.source.between(load.start, load.end)
    minutes = int((load.end - load.start) // 60)
    weights = loadtest.weights(requests, knee.by_size, start=load.start, steps=max(minutes, 1))
    at = ((np.arange(len(values)) * inside.step) // 60).astype(np.intp)
    return np.asarray(values * weights[np.minimum(at, len(weights) - 1)], dtype=np.float64)


def _ours(knee: Knee, foreseen: Foresight) -> registry.Rival:
    def make(headroom: float) -> Autoscaler:
        return ours.Floorcast(ours.objectives(knee, headroom), foreseen, ttft=knee.objective)

    return registry.Rival(OURS, make, ours.KNOB, tuple(ours.CAUTION), ours.HEADROOM, "Floorcast's defaults")


def _raced(rival: registry.Rival, course: Course, sweep: int, tell: Callable[[str], None]) -> Raced:
    interval = max(rival.interval, QUICKEST)
    tell(f"{rival.name}")
    outcome, film = _filmed(course, rival.make(rival.default), interval)
    points = [_point(f"{rival.default:g}", outcome)]
    for value in chosen(rival.values, rival.default, sweep):
        tell(f"{rival.name} at {value:g}")
        points.append(_point(f"{value:g}", running.run(course, rival.make(value), interval=interval)))
    return Raced(rival.name, rival.knob, rival.default, outcome, film.last, film.timeline(), tuple(points))


def _own(own: Own, course: Course) -> Raced:
    outcome, film = _filmed(course, own.make(), registry.SYNC)
    points = (_point("as given", outcome),)
    return Raced(own.name, own.knob, None, outcome, film.last, film.timeline(), points, given=True)


def _filmed(course: Course, policy: Autoscaler, interval: float) -> "tuple[Outcome, _Film]":
    film = _Film(course)
    every = (course.end - course.start) / MOMENTS
    return running.run(course, policy, interval=interval, watch=film.watch, every=every), film


def chosen(values: Sequence[float], default: float, count: int) -> list[float]:
    """So many settings, evenly spread over a sweep, the default left out."""
    others = [value for value in values if value != default]
    places = np.linspace(0, len(others) - 1, min(count, len(others))).round().astype(int)
    return [others[place] for place in dict.fromkeys(places.tolist())]


def _point(knob: str, outcome: Outcome) -> Point:
    return Point(knob, outcome.replica_hours, 1 - outcome.attainment, outcome.starts)


class _Film:
    """Puts glimpses together to a timeline."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._shown: list[Glimpse] = []

    def watch(self, glimpse: Glimpse) -> None:
        """One more moment."""
        self._shown.append(glimpse)

    @property
    def last(self) -> Scorecard:
        """The scorecard of the last moment."""
        return self._shown[-1].card

    def timeline(self) -> Timeline:
        """All of them."""
        shown = self._shown
        times = np.array([one.now for one in shown])
        span = np.diff(times, prepend=np.nan)
        arrived = np.diff([float(one.arrived) for one in shown], prepend=np.nan)
        missed = np.diff([float(one.card.missed) for one in shown], prepend=np.nan)
        met = np.diff([float(one.card.met) for one in shown], prepend=np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            judged = np.maximum(missed, 0) + np.maximum(met, 0)
            share = np.where(judged > 0, np.maximum(missed, 0) / judged, np.nan)
            demand = arrived / span
        return Timeline(
            times=times,
            demand=demand,
            ready=np.array([float(one.supply.ready) for one in shown]),
            warming=np.array([float(one.supply.warming + one.supply.stuck) for one in shown]),
            queue=np.array([float(max(one.in_system - one.running, 0)) for one in shown]),
            missed=share,
            ttft=np.array([np.nan, *(_p99(a, b) for a, b in itertools.pairwise(shown))]),
        )


def _p99(before: Glimpse, after: Glimpse) -> float:
    more = after.card.ttft.counts - before.card.ttft.counts
    between = dataclasses.replace(after.card.ttft, counts=more)
    return between.quantile(0.99) or np.nan
