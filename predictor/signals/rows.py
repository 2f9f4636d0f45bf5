"""Which series of an answer belongs to which target."""

import dataclasses
import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from models.series import Floats
from predictor.signals import catalog
from predictor.targets import Target

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """The targets of one engine, and why some of them can have no series of their own."""

    engine: catalog.Engine
    targets: tuple[Target, ...]
    indistinct: Mapping[str, str]

    @property
    def keys(self) -> list[str]:
        """Keys of the targets."""
        return [target.key for target in self.targets]

    def without(self, known: Container[str]) -> "Group":
        """The group without the targets whose keys are known already."""
        return dataclasses.replace(self, targets=tuple(target for target in self.targets if target.key not in known))

    def matched(self, answer: Sequence[Row], labels: catalog.Labels) -> dict[str, Row]:
        """Series by target key; a target without one, or with none of its own, is left out."""
        found = {self.engine.key_in(row.get("metric", {}), labels): row for row in answer}
        return {
            target.key: row
            for target in self.targets
            if target.key not in self.indistinct and (row := self._row(target, found)) is not None
        }

    def why_empty(self, target: Target, names: str) -> str:
        """What to tell of a target that has no series."""
        own = f"namespace {target.namespace!r}" + (f", model {target.model!r}" if self.engine.model else "")
        return self.indistinct.get(target.key, f"no series for {own}; asked by: {names}")

    def _row(self, target: Target, found: Mapping[catalog.SeriesKey, Row]) -> Row | None:
        if target.model or not self.engine.model:
            return found.get(self.engine.key_of(target))
        rows = [row for (namespace, _), row in found.items() if namespace == target.namespace]
        return rows[0] if len(rows) == 1 else None  # the only model of the namespace needs no name


def grouped(targets: Sequence[Target], engines: catalog.Catalog) -> list[Group]:
    """Targets by engine; those of an engine that is not in the catalogue are left out."""
    names = sorted({target.engine for target in targets} & set(engines))
    return [_group(engines[name], [target for target in targets if target.engine == name]) for name in names]


def _group(engine: catalog.Engine, targets: Sequence[Target]) -> Group:
    indistinct = {
        target.key: f"{', '.join(other.key for other in same)} share their series: one target a model and namespace"
        for same in catalog.shared(targets, engine).values()
        for target in same
    }
    return Group(engine, tuple(targets), indistinct)


def value(row: Row) -> float:
    """Value of an instant query's series; NaN where it is no number."""
    given = row.get("value")
    return _number(given) if isinstance(given, list) and len(given) > 1 else math.nan


def points(row: Row) -> tuple[Floats, Floats]:
    """Times (Unix seconds) and values of a range query's series, each of shape (n,); NaN where one is no number."""
    given = row.get("values")
    pairs = [point for point in given if _is_point(point)] if isinstance(given, list) else []
    times = np.fromiter((point[0] for point in pairs), np.float64, len(pairs))
    return times, np.fromiter(map(_number, pairs), np.float64, len(pairs))


def _is_point(point: object) -> bool:
    return isinstance(point, list) and len(point) > 1 and isinstance(point[0], int | float)


def _number(point: list[Any]) -> float:
    try:
        return float(point[1])
    except (TypeError, ValueError, OverflowError):
        return math.nan
