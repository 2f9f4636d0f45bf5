"""The sections about the targets: their defaults, and what each of them says for itself."""

from typing import Annotated

import pydantic

from models.capacity import economics
from models.capacity.trusting import Learn
from predictor.settings.durations import Duration
from predictor.settings.events import EventSettings
from predictor.settings.forecasting import Probability
from predictor.settings.loadtests import LoadTestSettings
from predictor.settings.section import Number, Section, key
from predictor.targets import Kind, Mode

Positive = Annotated[float, Number, pydantic.Field(gt=0)]
Count = Annotated[int, Number]
RIVALS = frozenset({"concurrency", "knee", "load_tests"})  # three ways to say what a replica holds
Name = Annotated[str, pydantic.Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]


class Capacity(Section):
    """What one replica sustains while it meets your latency objectives."""

    concurrency: Positive | None = key(
        None,
        "Requests in flight to plan one replica for. Give this, knee or load_tests; a target in shadow mode may do"
        " without, and is planned for a cautious 8. Too high and the replicas queue before new ones are ready, too low"
        " and they idle.",
        remedy="set it to the requests one replica serves at once",
    )
    knee: Positive | None = key(
        None,
        "Highest number of requests in flight at which a load test still met the objectives; concurrency is then"
        " knee / (1 + headroom).",
        remedy="set it to the highest load at which a load test met the objectives",
    )
    headroom: Annotated[float, Number] = key(
        0.2,
        "Share by which load may step up and still stay under the knee. 0.2 absorbs 20 %, what a smooth fleet of a few"
        " replicas sees within a scrape. Only used with knee and load_tests.",
        ge=0,
        le=10,
    )
    throughput: Positive | None = key(
        None,
        "Requests a second one replica sustains. Unset: worked out from concurrency and duration.",
        remedy="set it to the requests a second one replica completes at its knee",
    )
    duration: Annotated[Duration, pydantic.Field(gt=0)] | None = key(
        None,
        "Time a request takes on a replica that is not crowded. Unset: measured.",
        remedy="set it to what an uncrowded replica takes, or leave it out",
    )
    load_tests: tuple[LoadTestSettings, ...] = key(
        (),
        "Load tests at three sizes of requests or more (prompt, output, throughput, concurrency), in place of"
        " concurrency, knee and throughput: what a replica is planned for then follows the sizes that requests have"
        " now. The first test should be the one that is most like your traffic.",
        remedy="or give knee and throughput",
    )
    ttft: Annotated[Duration, pydantic.Field(gt=0)] | None = key(
        None,
        "Your objective: p95 of the time to the first token. Set it, and Floorcast learns from serving at which load it"
        " is met and at which it is not; while it is missed nothing is lowered, and replicas are added one by one.",
        remedy="set it to the time to the first token you promise, as 2s",
    )
    learn: Learn = key(
        Learn.LOWER,
        "What that may do to the figures above: off, warn says it only, lower plans for less (by half at most) where"
        " the objective was missed at what is planned for, both plans for more, too. Only used with ttft.",
    )
    kv_tokens: Positive | None = key(
        None,
        "KV-cache capacity of one replica in tokens, from the engine's start-up log. Unset: not planned for.",
        remedy="set it to the KV-cache size the engine logs at its start, in tokens",
    )
    tokens_in: Positive | None = key(
        None,
        "Prompt tokens a second one replica prefills while it meets the objectives, planned for as given: headroom does"
        " not apply. For prompts whose length changes while arrivals do not. Unset: not planned for.",
        remedy="set it to the prompt tokens a second at the highest load at which a load test met the objectives",
    )
    tokens_out: Positive | None = key(
        None,
        "Tokens a second one replica generates while it meets the objectives, planned for as given: headroom does not"
        " apply. Unset: not planned for.",
        remedy="set it to the generated tokens a second at the highest load at which a load test met the objectives",
    )


class Quantiles(Section):
    """How sure to be."""

    raise_: Probability = key(
        0.975,
        "Probability with which the load over the warm-up stays under what the floor is raised for. 0.975: one warm-up"
        " in forty is left to the autoscaler; higher costs idle replicas.",
        alias="raise",
        remedy="0.9 to 0.99 suits most services",
    )
    lower: Probability = key(
        0.5,
        "The same for the longer horizon that must agree before the floor is lowered. 0.5: a replica stays while it is"
        " more likely than not to be needed again before it could be warmed again.",
        remedy="0.5 to 0.9 suits most services",
    )

    miss_cost: Positive | None = key(
        None,
        "What a replica missing for an hour costs you, in any currency. With idle_cost it takes the place of raise:"
        " miss_cost / (miss_cost + idle_cost).",
        remedy="set it to what an hour of one replica's worth of late answers costs you",
    )
    idle_cost: Positive | None = key(
        None,
        "What a replica idling for an hour costs, in the same currency: its price.",
        remedy="set it to the price of a replica for an hour",
    )

    @property
    def raising(self) -> float:
        """The raising quantile, from money where that is given."""
        if self.miss_cost is None or self.idle_cost is None:
            return self.raise_
        return economics.quantile(miss=self.miss_cost, idle=self.idle_cost)

    @property
    def lowering(self) -> float:
        """The lowering quantile; never surer than the raising one unless somebody says so."""
        return self.lower if "lower" in self.model_fields_set else min(self.lower, self.raising)


class Gpus(Section):
    """How many GPUs a target may take: a limit in addition to the maximum."""

    budget: Count | None = key(
        None,
        "GPUs that all replicas together may use. What more is wanted is reported, not asked for. Unset: no limit.",
        ge=1,
        le=1000000,
    )
    per_replica: Count | None = key(
        None, "GPUs of one replica. Unset: read off its pods.", ge=1, le=10000, remedy="leave it out to have it read"
    )
    pool: str = key("", "Name of an entry of gpu_pools that this target shares with others; empty for none.")


class Floor(Section):
    """How the floor moves."""

    hold: Duration = key(180.0, "The floor must have gone unneeded for this long before it is lowered.", ge=0, le=86400)
    step_down: Count = key(1, "Replicas a step down takes at most; an autoscaler drops them at once.", ge=1, le=1000)
    step_down_percent: Annotated[float, Number] = key(
        20.0, "Share of the floor a step down may take instead, when that is more, for large fleets.", ge=0, le=100
    )
    step_period: Duration = key(60.0, "Time between two steps down, to see what the last one did.", ge=0, le=86400)
    step_up: Count | None = key(
        None,
        "Replicas one write may add at most. Unset: as many as are needed, since a rise cannot wait.",
        ge=1,
        le=1000,
    )
    unknown_ttl: Duration = key(
        3600.0,
        "The floor holds for this long while signals are unknown, then decays towards the minimum by steps.",
        ge=0,
        le=604800,
    )


class Defaults(Section):
    """What every target takes unless it says otherwise."""

    mode: Mode | None = key(
        None,
        "shadow decides and reports but writes nothing, control writes. Unset: the mode at the top. A target cannot"
        " be controlled while the mode at the top is shadow.",
    )
    engine: str = key("vllm", "Inference server, an entry of the signal catalogue.", min_length=1)
    capacity: Capacity = key(Capacity(), "What one replica sustains while it meets your latency objectives.")
    warm_up: Duration = key(
        300.0,
        "Time from creating a pod to Ready, used until three have been measured. Set it longer rather than shorter.",
        gt=0,
        le=14400,
        remedy="set it to what a new replica takes from created to Ready",
    )
    quantiles: Quantiles = key(Quantiles(), "How sure to be.")
    gpus: Gpus = key(Gpus(), "GPUs that may be used.")
    floor: Floor = key(Floor(), "How the floor moves.")
    drain: Duration = key(
        60.0,
        "Time in which a queue should be worked off. Shorter asks for more replicas for the same queue.",
        gt=0,
        le=3600,
    )
    minimum: Count = key(
        1,
        "Smallest replica count where there is no autoscaler to take it from. Nothing is put to sleep.",
        ge=1,
        le=10000,
    )
    maximum: Count = key(10, "Largest replica count where there is no autoscaler to take it from.", ge=1, le=10000)
    from_zero: bool = key(
        False,  # noqa: FBT003  (the default of a key)
        "Whether a workload that has no replicas is started again, with its minimum. Off: somebody may have put it to"
        " sleep. Needs demand that is seen without replicas, as a gateway's.",
    )
    gitops_ignored: bool = key(
        False,  # noqa: FBT003  (the default of a key)
        "Say that Argo CD or Flux leaves the number alone although they set it: switch it on once their ignore rule"
        " (docs/ownership.md) is in place. Off: such a number is advised on and not written.",
    )


class TargetSettings(Defaults):
    """One workload to scale; every key of `defaults` may be set here too."""

    namespace: Name = key(
        ..., "Namespace of the workload.", remedy="name its namespace: lower-case letters, digits and -"
    )
    name: Name = key(
        ...,
        "Name of the workload object.",
        remedy="name the object to scale: lower-case letters, digits, - and .",
    )
    kind: Annotated[str, pydantic.Field(pattern="^[A-Z][A-Za-z0-9]*$")] = key(
        Kind.DEPLOYMENT,
        "Deployment, StatefulSet, LeaderWorkerSet, Rollout (of Argo) or InferenceService (of KServe); any other kind"
        " that has a scale subresource needs resource.",
        remedy="write it as in the object's manifest",
    )
    resource: Annotated[str, pydantic.Field(pattern=r"^([a-z0-9]+\.v[0-9][a-z0-9]*\.[a-z0-9.-]+)?$")] = key(
        "",
        "plural.version.group of a kind that is not one of those, as models.v1.example.com. Needs permissions to list"
        " and watch it, and to get and patch its scale.",
        remedy="write it as plural.version.group, like rollouts.v1alpha1.argoproj.io",
    )
    model: str = key(
        "", "Served model name, as the engine labels its series. Empty where the engine has no such label."
    )
    events: tuple[EventSettings, ...] = key(
        (),
        "Load that is known to come and that no history tells of: name, start, duration, ratio or value, and every if"
        " it comes again. It only ever raises a forecast.",
    )

    @property
    def key(self) -> str:
        """Namespace/name, as the target is called everywhere else."""
        return f"{self.namespace}/{self.name}"


def with_defaults(target: dict[str, object], defaults: dict[str, object]) -> dict[str, object]:
    """The raw target over the raw defaults, section by section."""
    merged = {**defaults, **target}
    for name in ("capacity", "quantiles", "gpus", "floor"):
        own, common = target.get(name), defaults.get(name)
        if isinstance(common, dict) and (own is None or isinstance(own, dict)):
            merged[name] = {**_unrivalled(common, own or {}), **(own or {})}
    return merged


def _unrivalled(common: dict[str, object], own: dict[str, object]) -> dict[str, object]:
    """The common keys, less concurrency, knee or load_tests where the target gives another: one only can hold."""
    given = {name for name in RIVALS if own.get(name)}
    told = {*RIVALS, "throughput", "duration"} if "load_tests" in given else RIVALS if given else frozenset()
    return {name: value for name, value in common.items() if name not in told}
