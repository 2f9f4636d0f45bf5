"""Who takes part, how each is made, and at which values of its knob."""

import dataclasses
from collections.abc import Callable

from benchmarks.scoreboard import mistaken
from benchmarks.scoreboard.mistaken import Mistaken
from benchmarks.scoreboard.traces import Prepared
from models.fleet import profiles
from models.peers import registry
from models.peers.engine import Engine
from models.policy.protocol import Autoscaler
from models.race import ours
from models.race.foresight import Foresight

OURS, ORACLE, STATIC = "floorcast", "oracle", "static"
CLAIRVOYANT = ("oracle", "oracle-99.9", "oracle-99")
# Sweeps of a policy over another knob: who asks for the policy gets both, and their runs are one frontier.
OTHER_KNOBS = {"keda-cron-day-share": "keda-cron-day", "keda-cron-week-share": "keda-cron-week"}
QUICKEST = 5.0  # seconds; Knative looks every 2 s, at pages that change every 15 s
# Those of the registry that the table has when nobody says otherwise: one of each kind, the best of its kind where
# there are several. `--policies all` takes the rest as well.
USUAL = (
    "static", "hpa-queue", "hpa-in-flight", "keda-load", "keda-cron-day", "knative-kpa", "wva-v2",
    "dynamo-both-kalman",
)  # fmt: skip
REACTIVE_ONLY = "floorcast-reactive"
ABLATED = f"{OURS}-without-"
# Each rule that a race can show something of; the others are bounds, or about clusters (rollouts, unknown signals).
RULES = ("cover_the_backlog", "answer_a_missed_objective", "hold_recently_needed", "step_down")


@dataclasses.dataclass(frozen=True, slots=True)
class Contender:
    """A policy on one trace at one warm-up; as a `registry.Rival`, but for what a benchmark need not know."""

    name: str
    make: Callable[[float], Autoscaler]
    knob: str
    values: tuple[float, ...]
    default: float
    interval: float


def contenders(trace: Prepared, warm_up: float, foreseen: Foresight | None) -> dict[str, Contender]:
    """Everybody who can take part, by name."""
    found = {rival.name: _rival(rival) for rival in registry.rivals(terms(trace, warm_up))}
    if foreseen is not None:
        found[OURS] = _mine(OURS, trace, foreseen)
        for name, rule in zip(ablated(), RULES, strict=True):
            found[name] = _mine(name, trace, foreseen, without=rule)
        found |= {each.name: _mistaken(each, trace, warm_up, foreseen) for each in mistaken.every(RULES)}
    knee = trace.knee
    found[REACTIVE_ONLY] = Contender(
        REACTIVE_ONLY, lambda headroom: ours.Floorcast(ours.objectives(knee, headroom), None, lead=warm_up), ours.KNOB,
        ours.CAUTION_ALONE, ours.HEADROOM, registry.SYNC,
    )  # fmt: skip
    return found


def names(asked: tuple[str, ...]) -> Callable[[str], bool]:
    """Which names are asked for: given ones, `all`, or the usual ones."""
    if asked == ("all",):
        return lambda name: not name.startswith(mistaken.PREFIX)
    chosen = set(asked or (*USUAL, REACTIVE_ONLY))
    chosen |= {name for name, whole in OTHER_KNOBS.items() if whole in chosen}
    return lambda name: name in {*chosen, *CLAIRVOYANT[::2], OURS}


def ablated() -> tuple[str, ...]:
    """Floorcast with each rule left out in turn."""
    return tuple(f"{ABLATED}{rule}" for rule in RULES)


def foreseeing() -> tuple[str, ...]:
    """Those who need a forecast."""
    return (OURS, *ablated(), *mistaken.names(RULES))


def is_ours(name: str) -> bool:
    """Whether it is Floorcast, whole or in part, well told or wrongly."""
    return name.startswith((OURS, mistaken.PREFIX))


def family(name: str) -> str:
    """Under which name a contender's points are shown: of the clairvoyant's three aims, of a schedule's two knobs."""
    return ORACLE if name in CLAIRVOYANT else OTHER_KNOBS.get(name, name)


def _mine(name: str, trace: Prepared, foreseen: Foresight, *, without: str = "") -> Contender:
    """One set of defaults on all traces, but for the knob."""
    knee = trace.knee

    def make(headroom: float) -> Autoscaler:
        return ours.Floorcast(ours.objectives(knee, headroom), foreseen, ttft=knee.objective, without=without)

    return Contender(name, make, ours.KNOB, tuple(ours.CAUTION), ours.HEADROOM, registry.SYNC)


def _mistaken(each: Mistaken, trace: Prepared, warm_up: float, foreseen: Foresight) -> Contender:
    """One setting only: whoever is told something wrong does not know how to set the knob for it."""
    values = (ours.HEADROOM,)
    return Contender(
        each.name, lambda _: each.make(trace, foreseen, warm_up), ours.KNOB, values, ours.HEADROOM, registry.SYNC
    )  # fmt: skip


def _rival(rival: registry.Rival) -> Contender:
    interval = max(rival.interval, QUICKEST)
    return Contender(rival.name, rival.make, rival.knob, rival.values, rival.default, interval)


def terms(trace: Prepared, warm_up: float) -> registry.Terms:
    """What the rivals' owners know: the same load test, and the same history."""
    profile, knee = profiles.named(trace.profile), trace.knee
    engine = Engine(
        profile.law, profile.kv_tokens, profile.token_budget, profile.max_num_seqs, profile.law.alpha0 / 1e3
    )  # fmt: skip
    history = trace.arrivals.until(trace.start)
    future = trace.arrivals.since(trace.start + trace.arrivals.step)
    weighed = future.values * trace.work[: len(future)]
    return registry.Terms(
        rate=knee.rate,
        concurrency=knee.concurrency,
        engine=engine,
        ttft=knee.objective,
        itl=max(knee.itl, 0.05),
        warm_up=warm_up,
        peak=trace.peak,
        minimum=1,
        maximum=trace.maximum,
        history=history if history.known else None,
        future=dataclasses.replace(future, start=trace.start, values=weighed),
    )
