"""Targets that were found by label, put beside the ones that are named in the file."""

import dataclasses
from collections.abc import Iterable, Mapping

import pydantic

from predictor.settings import checks, engines, workloads
from predictor.settings.root import Settings

PREFIX = "floorcast.dev/"
# annotation -> place of the key that it stands for
ANNOTATIONS: Mapping[str, tuple[str, ...]] = {
    "mode": ("mode",),
    "engine": ("engine",),
    "model": ("model",),
    "concurrency": ("capacity", "concurrency"),
    "knee": ("capacity", "knee"),
    "warm-up": ("warm_up",),
    "minimum": ("minimum",),
    "maximum": ("maximum",),
    "from-zero": ("from_zero",),
    "gitops-ignored": ("gitops_ignored",),
}


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Labelled:
    """A workload that carries the label; `annotations` are those of `ANNOTATIONS`, without their prefix."""

    namespace: str
    name: str
    kind: str
    annotations: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """Namespace/name, as the target will be called."""
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Joined:
    """The settings with the targets that were found.

    Attributes:
        settings: with them.
        refused: why what is found of others cannot be used, by target key.
        used: what was used of each found target, by target key.
    """

    settings: Settings
    refused: Mapping[str, str]
    used: Mapping[str, Labelled]


def join(named: Settings, found: Iterable[Labelled], *, before: Mapping[str, Labelled] | None = None) -> Joined:
    """Puts the found targets after the named ones. One that is named already is left to what the file says of it.

    A found target that cannot be used is named with the reason; it never keeps the others from being scaled. It is
    taken as it was `before`, by target key, else left out: a mistyped annotation must not give up a floor.
    """
    settings, refused, used = named, dict[str, str](), dict[str, Labelled]()
    taken = {target.key for target in named.targets}
    for one in sorted(found):
        if one.key in taken:
            continue
        last_good = (before or {}).get(one.key)
        for usable in (one,) if last_good is None else (one, last_good):
            try:
                settings = _with(settings, _target(usable, named))
            except ValueError as error:  # pydantic's own is one too
                refused.setdefault(one.key, _brief(error))
                continue
            used[one.key] = usable
            taken.add(one.key)
            break
    return Joined(settings, refused, used)


def _target(one: Labelled, named: Settings) -> workloads.TargetSettings:
    """Raises ValueError where an annotation cannot be used."""
    given: dict[str, object] = {"namespace": one.namespace, "name": one.name, "kind": one.kind}
    capacity: dict[str, object] = {}
    for annotation, value in one.annotations:
        *section, name = ANNOTATIONS[annotation]
        (capacity if section else given)[name] = _read(annotation, value)
    if capacity:
        given["capacity"] = capacity
    common = named.defaults.model_dump(by_alias=True, exclude_unset=True)
    return workloads.TargetSettings.model_validate(workloads.with_defaults(given, common))


def _read(annotation: str, value: str) -> object:
    """The value of an annotation, which is always text."""
    if annotation in ("concurrency", "knee", "minimum", "maximum"):
        try:
            return float(value) if annotation in ("concurrency", "knee") else int(value)
        except ValueError:
            raise ValueError(f"annotation {PREFIX}{annotation}: {value!r} is no number") from None
    return value


def _with(settings: Settings, target: workloads.TargetSettings) -> Settings:
    """The settings with one more target; raises ValueError where that contradicts them."""
    number = len(settings.targets)
    trial = settings.model_copy(update={"targets": (*settings.targets, target)})
    found = (*(one for check in checks.CHECKS for one in check(trial)), *engines.problems(trial))
    mine = [one for one in found if one.place[:2] == ("targets", number)]
    if mine:
        raise ValueError("; ".join(f"{'.'.join(map(str, one.place[2:]))}: {one.text}" for one in mine))
    return trial


def _brief(error: ValueError) -> str:
    """One line, without pydantic's."""
    if not isinstance(error, pydantic.ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
