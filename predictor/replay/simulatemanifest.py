"""One manifest that is being read, and how its faults are told: file, field, value, and what to do."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic
from pydantic_core import ErrorDetails

from models.policy.protocol import Autoscaler
from predictor.errors import ConfigurationError
from predictor.replay.recorded import Note
from predictor.settings import problems

SHOWN = 80  # characters of a faulty value
OWN_WORDS = ("quantity", "positive", "target")  # errors of these kinds are written in `simulateobjects`
Place = tuple[str | int, ...]
T = TypeVar("T", bound=pydantic.BaseModel)


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object, its API version, and what its policies' names begin with."""

    name: str
    version: str
    short: str


HPA = Kind("HorizontalPodAutoscaler", "autoscaling/v2", "hpa")
SCALED_OBJECT = Kind("ScaledObject", "keda.sh/v1alpha1", "keda")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Own:
    """A policy from a manifest.

    Attributes:
        name: in tables.
        knob: what it is, for the legend.
        make: a fresh one.
        minimum: replicas at least.
        maximum: replicas at most.
        notes: how the simulation differs from a cluster.
    """

    name: str
    knob: str
    make: Callable[[], Autoscaler]
    minimum: int
    maximum: int
    notes: tuple[Note, ...] = ()


class Manifest:
    """A manifest that is being read, with the way to refuse a part of it."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self.path, self._document = path, document
        metadata = document.get("metadata")
        self._metadata: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
        self.notes: list[Note] = []

    @property
    def kind(self) -> str:
        """Of the object."""
        return str(self._document.get("kind"))

    @property
    def version(self) -> str:
        """ApiVersion."""
        return str(self._document.get("apiVersion"))

    @property
    def name(self) -> str:
        """metadata.name, or that of the file."""
        return str(self._metadata.get("name") or self.path.stem)

    @property
    def annotations(self) -> Mapping[str, Any]:
        """metadata.annotations."""
        found = self._metadata.get("annotations")
        return found if isinstance(found, dict) else {}

    def spec(self, shape: type[T]) -> T:
        """The section `spec`."""
        return self.part(shape, self._document.get("spec"), ("spec",))

    def part(self, shape: type[T], given: object, place: Place) -> T:
        """A section in its shape."""
        try:
            return shape.model_validate(_without_nulls(given))
        except pydantic.ValidationError as error:
            found = error.errors()
            # A list whose only entry is faulty counts as empty too.
            told = [one for one in found if one["type"] != "too_short" or not _inside(one["loc"], found)]
            raise ConfigurationError(f"{self.path}: {_line(one, place, shape)}" for one in told) from None

    def refused(self, place: str, why: str) -> ConfigurationError:
        """The error that says that a part cannot be simulated."""
        return ConfigurationError(f"{self.path}: {place}: {why}")

    def note(self, place: str, what: str, *, doubtful: bool = True) -> None:
        """Notes how the simulation differs; what is not doubtful stands in the report alone."""
        self.notes.append(Note(f"{self.path.name}: {place}", what, doubtful=doubtful))


def _without_nulls(given: object) -> object:
    """The same without fields that are null, which are absent to the API server."""
    if isinstance(given, dict):
        return {name: _without_nulls(value) for name, value in given.items() if value is not None}
    return [_without_nulls(one) for one in given] if isinstance(given, list) else given


def _inside(place: Place, found: Sequence[ErrorDetails]) -> bool:
    return any(one["loc"][: len(place)] == place and one["loc"] != place for one in found)


def _line(one: ErrorDetails, begin: Place, shape: type[pydantic.BaseModel]) -> str:
    place, shown = problems.dotted((*begin, *one["loc"])), repr(one["input"])
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    match one["type"]:
        case "missing":
            return f"{place}: is missing; add it"
        case "too_short":
            return f"{place}: is empty; it needs one entry at least"
        case "extra_forbidden":
            return f"{place}: is no field that can be simulated{_nearest(one, shape)}; correct it, or leave it out"
        case "greater_than_equal" | "less_than_equal":
            limits = one["ctx"]
            bound = f"{limits['ge']} or more" if "ge" in limits else f"{limits['le']} or less"
            return f"{place}: {shown} must be {bound}"
        case "string_type" if "metadata" in one["loc"]:
            return f"{place}: {shown} must be a text, as the API server demands: put it in quotes"
        case _:
            wrong = one["msg"]
            return f"{place}: {shown}: {wrong if one['type'] in OWN_WORDS else wrong[:1].lower() + wrong[1:]}"


def _nearest(one: ErrorDetails, shape: type[pydantic.BaseModel]) -> str:
    near = difflib.get_close_matches(str(one["loc"][-1]), sorted(_fields(shape)), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def _fields(shape: type[pydantic.BaseModel]) -> set[str]:
    """Names of all fields, those of sections too."""
    found = set()
    definitions = shape.model_json_schema()
    for one in (definitions, *definitions.get("$defs", {}).values()):
        found |= set(one.get("properties", {}))
    return found


def ordered(given: Manifest, least: tuple[str, int], most: tuple[str, int]) -> None:
    """Refuses bounds, each a field of the spec and its value, that are the wrong way round."""
    if least[1] > most[1]:
        raise given.refused(f"spec.{least[0]}", f"{least[1]} must not be above {most[0]}, {most[1]}")


def own(given: Manifest, kind: Kind, make: Callable[[], Autoscaler], bounds: tuple[int, int]) -> Own:
    """The policy of a manifest."""
    least, most = bounds
    what = f"{kind.name} in {given.path.name}, {least} to {most} replicas"
    return Own(f"{kind.short}/{given.name}", what, make, least, most, tuple(given.notes))
