"""The whole configuration: one YAML file, the environment and a few flags, in that order of growing weight."""

import difflib
from typing import Annotated, Any

import pydantic
import pydantic_settings
from pydantic_core import PydanticCustomError

from models.signals import Signal
from predictor.settings import checks, forecasting, sections, workloads
from predictor.settings.section import Number, key
from predictor.targets import Mode

PREFIX = "FLOORCAST__"


def _empty_is_none(given: object) -> object:
    """`targets:` with nothing under it reads as null."""
    return [] if given is None else given


def _nothing_overridden(given: object) -> object:
    return {} if given is None else given


def _signal(name: str) -> str:
    if name not in tuple(Signal):
        near = difflib.get_close_matches(name, tuple(Signal), n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(Signal)}"
        raise PydanticCustomError("signal", "is no signal; {hint}", {"hint": hint})
    return name


class Settings(pydantic_settings.BaseSettings):
    """Everything `floorcast run` can be told; see config/floorcast.yaml for every key with its default."""

    model_config = pydantic_settings.SettingsConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        validate_default=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
    )

    mode: Mode = key(
        Mode.SHADOW,
        "shadow decides and reports but writes nothing, whatever a target says: the way to try Floorcast out. control"
        " writes, except for targets that say shadow.",
        remedy="start with shadow",
    )
    source: sections.Source = key(sections.Source(), "Where readings and history come from.")
    kubernetes: sections.Kubernetes = key(
        sections.Kubernetes(),
        "How to reach the API server. Nothing set: the pod's own service account when there is one, else the current"
        " context of the kubeconfig.",
    )
    discovery: sections.Discovery = key(
        sections.Discovery(), "Targets found by label, besides those that are named here."
    )
    loops: sections.Loops = key(sections.Loops(), "How often Floorcast looks and decides.")
    history: forecasting.History = key(
        forecasting.History(), "What is kept of the past, in memory; Prometheus is asked for it at the start."
    )
    forecast: forecasting.Forecast = key(
        forecasting.Forecast(), "How the load is forecast: the quantiles of the largest value over the warm-up."
    )
    defaults: workloads.Defaults = key(workloads.Defaults(), "What every target takes unless it says otherwise.")
    targets: Annotated[tuple[workloads.TargetSettings, ...], pydantic.BeforeValidator(_empty_is_none)] = key(
        (), "The workloads to scale; every key of defaults may be set in a target too."
    )
    gpu_pools: Annotated[
        dict[str, Annotated[int, Number, pydantic.Field(ge=1, le=1000000)]],
        pydantic.BeforeValidator(_nothing_overridden),
    ] = key(
        {},
        "GPUs that targets share, name -> number; a target joins with gpus.pool. Who asks first is served first: what"
        " the others hold is not there for it.",
    )
    signals: Annotated[
        dict[str, dict[Annotated[str, pydantic.AfterValidator(_signal)], Annotated[str, pydantic.Field(min_length=1)]]],
        pydantic.BeforeValidator(_nothing_overridden),
    ] = key({}, "Queries of your own, engine -> signal -> query, in place of the catalogue's.")
    leader_election: sections.LeaderElection = key(
        sections.LeaderElection(),
        "Several replicas of Floorcast, of which one writes; the others observe and forecast, ready to take over.",
    )
    external_scaler: sections.ExternalScaler = key(
        sections.ExternalScaler(),
        "The recommended number for KEDA, over gRPC, instead of being written; see docs/publishing.md.",
    )
    server: sections.Server = key(sections.Server(), "Metrics, health and the JSON state.")
    journal: sections.Journal = key(sections.Journal(), "What was seen, decided and learned, on disk.")
    log: sections.Log = key(sections.Log(), "What is logged, to standard error.")
    release_on_exit: bool = key(
        False,  # noqa: FBT003  (the default of a key)
        "Whether every floor is given back when the service stops. Off, so that an update or a crash of Floorcast does"
        " not drop capacity; `floorcast release` does it when asked.",
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _targets_take_the_defaults(cls, given: dict[str, Any]) -> dict[str, Any]:
        defaults, targets = given.get("defaults"), given.get("targets")
        if not isinstance(defaults, dict) or not isinstance(targets, list):
            return given
        taken = [workloads.with_defaults(one, defaults) if isinstance(one, dict) else one for one in targets]
        return {**given, "targets": taken}

    @pydantic.model_validator(mode="after")
    def _keys_agree(self) -> "Settings":
        found = tuple(problem for check in checks.CHECKS for problem in check(self))
        if found:
            raise checks.ContradictionsError(checks.once_each(found))
        return self
