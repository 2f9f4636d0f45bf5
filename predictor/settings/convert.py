"""From settings to what the core and the adapters are given; the only place that knows both."""

import dataclasses
import datetime as dt
import zoneinfo
from collections.abc import Mapping

from models.capacity import profile, sizes, trusting
from models.forecasting.events import Event
from models.forecasting.settings import ForecastSettings
from models.policy.context import FloorSettings
from models.policy.planning import Objectives
from predictor.settings import events, workloads
from predictor.settings.root import Settings
from predictor.targets import GpuLimits, KnownEvent, Learning, Mode, Target


def targets(settings: Settings) -> tuple[Target, ...]:
    """The targets, in the order of the file, each with the mode it really has."""
    zone = zoneinfo.ZoneInfo(settings.forecast.zone)
    pools = settings.gpu_pools
    return tuple(_target(one, ceiling=settings.mode, zone=zone, pools=pools) for one in settings.targets)


def forecast(settings: Settings) -> ForecastSettings:
    """The forecast's numbers."""
    given = settings.forecast
    return ForecastSettings(
        quantiles=given.quantiles,
        seasons=given.seasons,
        zone=zoneinfo.ZoneInfo(given.zone),
        level_window=given.level_window,
        score_window=given.score_window,
    )


def _target(given: workloads.TargetSettings, *, ceiling: Mode, zone: dt.tzinfo, pools: Mapping[str, int]) -> Target:
    return Target(
        namespace=given.namespace,
        name=given.name,
        kind=given.kind,
        resource=given.resource,
        from_zero=given.from_zero,
        gitops_ignored=given.gitops_ignored,
        engine=given.engine,
        model=given.model,
        # Shadow at the top forbids every write: it must be possible to say so in one place, whatever the targets say.
        mode=Mode.SHADOW if ceiling is Mode.SHADOW else given.mode or ceiling,
        objectives=_objectives(given),
        warm_up=given.warm_up,
        minimum=given.minimum,
        maximum=given.maximum,
        events=tuple(_event(one, zone) for one in given.events),
        learning=Learning(given.capacity.ttft, given.capacity.learn, given.capacity.headroom),
        gpus=_gpus(given.gpus, pools),
    )


def _gpus(given: workloads.Gpus, pools: Mapping[str, int]) -> GpuLimits:
    return GpuLimits(given.budget, given.per_replica, given.pool, pools[given.pool] if given.pool else None)


def _event(given: events.EventSettings, zone: dt.tzinfo) -> KnownEvent:
    start = given.start if given.start.tzinfo else given.start.replace(tzinfo=zone)
    event = Event(
        start=start.timestamp(),
        duration=given.duration,
        every=given.every,
        ratio=given.ratio,
        value=given.value,
        zone=zone,
    )
    return KnownEvent(name=given.name, event=event, signals=(given.signal,) if given.signal else events.SIGNALS)


def _objectives(given: workloads.Defaults) -> Objectives:
    return Objectives(
        profile=_profile(given.capacity),
        raise_quantile=given.quantiles.raising,
        lower_quantile=given.quantiles.lowering,
        drain=given.drain,
        floor=FloorSettings(**dict(given.floor)),
    )


def _profile(given: workloads.Capacity) -> profile.Profile:
    return dataclasses.replace(
        _told(given), kv_tokens=given.kv_tokens, tokens_in=given.tokens_in, tokens_out=given.tokens_out
    )


def _told(given: workloads.Capacity) -> profile.Profile:
    if given.load_tests:
        return _tested(given)
    concurrency = given.concurrency
    if concurrency is None:
        if given.knee is None:
            return trusting.default()
        concurrency = profile.concurrency_target(knee=given.knee, headroom=given.headroom)
    return profile.Profile(
        concurrency=concurrency,
        throughput=given.throughput,
        duration=given.duration,
    )


def _tested(given: workloads.Capacity) -> profile.Profile:
    """From load tests: the figures of the first, and how they change with the size of requests."""
    tests = [one.test for one in given.load_tests]
    return profile.Profile(
        concurrency=profile.concurrency_target(knee=tests[0].concurrency, headroom=given.headroom),
        throughput=tests[0].throughput / (1 + given.headroom),
        source=trusting.Source.LOAD_TEST,
        by_size=sizes.fitted(tests),
    )
