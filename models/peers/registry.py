"""Every rival under one small interface, so that a benchmark can sweep and tune each of them on each trace."""

import dataclasses
from collections.abc import Callable

from models.peers import oracle, seasonal, sight, triggers
from models.peers.aibrix import AibrixKpa, AibrixKpaSettings, Apa, ApaSettings
from models.peers.dynamo import DynamoSettings, Mode, Planner, Target
from models.peers.engine import Engine
from models.peers.hpa import Hpa, HpaSettings
from models.peers.keda import Keda, KedaSettings
from models.peers.kpa import Kpa, KpaSettings
from models.peers.metrics import External
from models.peers.serving import RayServe, RaySettings, SkyServe, SkySettings
from models.peers.static import Static
from models.peers.wva import Saturation, SaturationSettings
from models.peers.wva_tokens import Tokens, TokenSettings
from models.policy.protocol import Autoscaler
from models.series import Series
from models.signals import Signal

# Shares of what one replica sustains at which a sweep aims. 1 leaves no room at all; above it a replica carries more
# than a load test found well, which on a calm trace still keeps 99 % in time. No rival is kept from going that cheap.
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 1.8, 2.5)
STEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)  # of the peak's need, for fleets of one size
CAUTIONS = (0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0)
SYNC = 15.0  # seconds, of the HPA and of most others


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What a race tells the rivals' owners, who would have measured it.

    Attributes:
        rate: requests a second one replica serves within the objectives.
        concurrency: requests it then has in flight.
        engine: what one replica can do, step by step.
        ttft: objective, seconds.
        itl: objective, seconds.
        warm_up: seconds from being asked for to ready.
        peak: replicas the peak of the trace needs.
        minimum: replicas at least.
        maximum: replicas at most.
        history: requests a second before the race, for schedules; None for rivals without any.
        future: requests a second in the race, each weighed by its size, for the clairvoyant alone; None leaves it out.
    """

    rate: float
    concurrency: float
    engine: Engine
    ttft: float = 0.5
    itl: float = 0.05
    warm_up: float = 300.0
    peak: int = 10
    minimum: int = 1
    maximum: int = 1000
    history: Series | None = None
    future: Series | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "concurrency", "ttft", "itl", "peak"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must be positive")


@dataclasses.dataclass(frozen=True, slots=True)
class Rival:
    """A policy and how it is made more or less careful.

    Attributes:
        name: short, unique.
        make: a fresh one with its knob at a value.
        knob: what the value is.
        values: those of a sweep, from one end to the other; the default among them.
        default: the documented one, or where the project has none what one replica sustains.
        source: where rule and default come from.
        interval: seconds between its decisions; more often changes nothing, more rarely slows it down.
    """

    name: str
    make: Callable[[float], Autoscaler]
    knob: str
    values: tuple[float, ...]
    default: float
    source: str
    interval: float = SYNC

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted({*self.values, self.default})))


def rivals(terms: Terms) -> tuple[Rival, ...]:
    """All of them; schedules only with a history, the clairvoyant only with the future."""
    return (
        *_plain(terms),
        *_keda(terms),
        *_knative_and_kin(terms),
        *_wva(terms),
        *_dynamo(terms),
        *_schedules(terms),
        *_clairvoyant(terms),
    )


def named(name: str, terms: Terms) -> Rival:
    """The rival of that name. Raises ValueError naming those there are."""
    found = {rival.name: rival for rival in rivals(terms)}
    if name not in found:
        raise ValueError(f"no rival {name!r} under these terms; there are {', '.join(found)}")
    return found[name]


def _around(middle: float) -> tuple[float, ...]:
    return tuple(share * middle for share in SHARES)


def _plain(terms: Terms) -> tuple[Rival, ...]:
    steps = sorted({max(round(share * terms.peak), 1) for share in STEPS})
    each = "target per replica"
    return (
        Rival("static", lambda n: Static(round(n)), "replicas", tuple(map(float, steps)), float(terms.peak),
              "the peak's need, as fleets without an autoscaler are sized"),
        Rival("hpa-queue", lambda x: Hpa(HpaSettings(Signal.WAITING, x)), f"waiting, {each}",
              (0.25, 0.5, 1, 2, 3, 5, 8, 12), 5.0, "Kubernetes HPA v2; target of vLLM production-stack's example"),
        Rival("hpa-in-flight", lambda x: Hpa(HpaSettings(several=(External(sight.CONCURRENCY, x),))),
              f"in flight, {each}", _around(terms.concurrency), terms.concurrency,
              "Kubernetes HPA v2; target is what a replica sustains"),
        Rival("hpa-kv", lambda x: Hpa(HpaSettings(Signal.KV_USAGE, x)), f"KV usage, {each}",
              (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 0.8, "Kubernetes HPA v2; usual KV target"),
    )  # fmt: skip


def _keda(terms: Terms) -> tuple[Rival, ...]:
    def arrivals(x: float) -> Autoscaler:
        return Keda(KedaSettings((triggers.Prometheus((Signal.ARRIVALS,), x),)))

    def both(x: float) -> Autoscaler:
        load = triggers.Prometheus(sight.CONCURRENCY, x * terms.concurrency)
        return Keda(KedaSettings((load, triggers.Prometheus((Signal.ARRIVALS,), x * terms.rate))))

    def offset(x: float) -> Autoscaler:
        now = triggers.Prometheus((Signal.ARRIVALS,), x)
        return Keda(KedaSettings((now, triggers.Offset(now, history=terms.history))))

    return (
        Rival("keda-arrivals", arrivals, "requests/s, target per replica", _around(terms.rate), terms.rate,
              "KEDA defaults; threshold is what a replica sustains"),
        Rival("keda-load", both, "share of what a replica sustains", SHARES, 1.0,
              "KEDA defaults, triggers on load and arrivals"),
        Rival("keda-offset-7d", offset, "requests/s, target per replica", _around(terms.rate), terms.rate,
              "grafana/mimir#7775: the larger of now and 7 days ago less 30 min"),
    )  # fmt: skip


def _knative_and_kin(terms: Terms) -> tuple[Rival, ...]:
    load, knob = _around(terms.concurrency), "in flight, target per replica"
    return (
        Rival("knative-kpa", lambda x: Kpa(KpaSettings(target=x / 0.7)), knob, load, 70.0,
              "Knative Serving config-autoscaler: 100 at 70 %", 2.0),
        Rival("aibrix-apa", lambda x: Apa(ApaSettings(target=x)), knob, load, terms.concurrency,
              "AIBrix APA defaults; target is what a replica sustains"),
        Rival("aibrix-kpa", lambda x: AibrixKpa(AibrixKpaSettings(target=x)), knob, load, terms.concurrency,
              "AIBrix KPA defaults; target is what a replica sustains"),
        Rival("ray-serve", lambda x: RayServe(RaySettings(target=x)), knob, load, 2.0, "Ray Serve defaults", 5.0),
        Rival("skyserve", lambda x: SkyServe(SkySettings(target=x)), "requests/s, target per replica",
              _around(terms.rate), terms.rate, "SkyServe defaults; target is what a replica sustains"),
    )  # fmt: skip


def _wva(terms: Terms) -> tuple[Rival, ...]:
    engine = terms.engine

    def tokens(up: float) -> Autoscaler:
        known = TokenSettings(engine.kv_tokens, up=up, down=up * 0.70 / 0.85,
                              token_budget=engine.token_budget, max_seqs=engine.max_seqs)  # fmt: skip
        return Tokens(known)

    return (
        Rival("wva-v1", lambda x: Saturation(SaturationSettings(kv=x)), "KV usage at which a replica is saturated",
              (0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9), 0.80, "llm-d WVA 0.9.0 defaults"),
        Rival("wva-v2", tokens, "share of the supply at which it adds",
              (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0), 0.85, "llm-d WVA 0.9.0 defaults, enough at 70/85 of it"),
    )  # fmt: skip


def _dynamo(terms: Terms) -> tuple[Rival, ...]:
    def rival(name: str, **chosen: str) -> Rival:
        def make(caution: float) -> Autoscaler:
            mode, target = Mode(chosen.get("mode", Mode.BOTH)), Target(chosen.get("target", Target.SLA))
            return Planner(DynamoSettings(terms.engine, mode, target, chosen.get("predictor", "arima"),
                                          ttft=terms.ttft, itl=terms.itl, caution=caution))  # fmt: skip

        return Rival(name, make, "caution", CAUTIONS, 1.0, "NVIDIA Dynamo Planner 1.6.1 defaults", 5.0)

    return (
        rival("dynamo-constant", mode=Mode.THROUGHPUT, predictor="constant"),
        rival("dynamo-arima", mode=Mode.THROUGHPUT),
        rival("dynamo-kalman", mode=Mode.THROUGHPUT, predictor="kalman"),
        rival("dynamo-load", mode=Mode.LOAD),
        rival("dynamo-load-static", mode=Mode.LOAD, target=Target.THROUGHPUT),
        rival("dynamo-load-latency", mode=Mode.LOAD, target=Target.LATENCY),
        rival("dynamo-both", mode=Mode.BOTH),
        rival("dynamo-both-kalman", mode=Mode.BOTH, predictor="kalman"),
    )


def _schedules(terms: Terms) -> tuple[Rival, ...]:
    history = terms.history
    if history is None or not history.known:
        return ()

    def schedule(period: float, *, quantile: float, share: float) -> Autoscaler:
        table = seasonal.timetable(history, per_replica=share * terms.rate, quantile=quantile, period=period)
        load = triggers.Prometheus(sight.CONCURRENCY, share * terms.concurrency)
        return Keda(KedaSettings((seasonal.earlier(table, terms.warm_up), load)))

    def rivals_of(name: str, period: float) -> tuple[Rival, ...]:
        quantiles = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
        source = "KEDA cron triggers by the hour, opened a warm-up earlier, with one on load"
        return (
            Rival(name, lambda q: schedule(period, quantile=q, share=1.0), "quantile of the history", quantiles, 0.95,
                  source),
            Rival(f"{name}-share", lambda x: schedule(period, quantile=0.95, share=x),
                  "share of what a replica sustains, at the .95 quantile", SHARES, 1.0, source),
        )  # fmt: skip

    found = rivals_of("keda-cron-day", triggers.DAY)
    if history.step * len(history) >= triggers.WEEK:
        found += rivals_of("keda-cron-week", triggers.WEEK)
    return found


def _clairvoyant(terms: Terms) -> tuple[Rival, ...]:
    future = terms.future
    if future is None:
        return ()

    def rival(name: str, attainment: float) -> Rival:
        def make(share: float) -> Autoscaler:
            known = oracle.Terms(share * terms.rate, terms.warm_up, terms.minimum, terms.maximum)
            schedule = oracle.fewest(future, known, attainment=attainment)
            return oracle.Oracle(schedule, lead=terms.warm_up)

        return Rival(name, make, "share of what a replica sustains", (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1), 1.0,
                     "knows the arrivals, pays the warm-up")  # fmt: skip

    return rival("oracle", 1.0), rival("oracle-99.9", 0.999), rival("oracle-99", 0.99)
