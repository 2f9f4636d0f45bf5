"""Which series of a page feed which numbers; worked out once for each set of series a page shows."""

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from models.series import Floats
from predictor.signals import catalog, pages, recipes

KEPT_LAYOUTS = 4096  # pods of one engine seldom show more than a handful

Indices = npt.NDArray[np.intp]
Bound = float  # upper bound of a bucket; NaN-free: a number that is no bucket has none and says so by `NO_BOUND`
NO_BOUND: Bound = -math.inf


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A term and the suffix of the series it is read from; levels are gauges, flows are counters."""

    term: recipes.Term
    suffix: str
    flow: bool


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the numbers stand among a page's values.

    Attributes:
        series: the page's series as written.
        flows: positions of counters.
        slots: for each of them, the place its increase is added to.
        levels: positions of gauges.
        parts: for each of them, the part it belongs to.
        present: parts that have a series on the page.
        others: models on the page that are not the target's.
    """

    series: tuple[str, ...]
    flows: Indices
    slots: Indices
    levels: Indices
    parts: Indices
    present: frozenset[int]
    others: frozenset[str]


class Plan:
    """What is read from the pages of one engine's pods, for one served model.

    Attributes:
        reader: finds the series.
        growing_parts: gauges whose growth counts.
        growth_slots: for each of them, the place it is added to.
    """

    def __init__(self, engine: catalog.Engine, model: str) -> None:
        ways = [recipe for recipes_of in engine.pages.values() for recipe in recipes_of]
        self.reader = pages.Reader(pages.names_of(ways))
        self._engine = engine
        self._model = model
        self._parts: dict[Part, int] = {}
        self._slots: dict[tuple[int, Bound], int] = {}
        self._layouts: dict[tuple[str, ...], Layout] = {}
        for way in ways:
            for part in parts(way):
                self._parts.setdefault(part, len(self._parts))
        grown = dict.fromkeys(Part(term, "", flow=False) for way in ways for term in way.change)
        self.growing_parts = np.array([self._parts[part] for part in grown], dtype=np.intp)
        self.growth_slots = np.array([self._new_slot(part) for part in grown], dtype=np.intp)

    @property
    def size(self) -> int:
        """How many places for increases there are; grows when a new bucket shows up."""
        return len(self._slots)

    @property
    def part_count(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def number(self, part: Part) -> int:
        """Index of a part."""
        return self._parts[part]

    def slot(self, part: Part) -> int | None:
        """Place of a counter's increase or a gauge's growth, None when no page had it yet."""
        return self._slots.get((self._parts[part], NO_BOUND))

    def buckets(self, part: Part) -> tuple[Floats, Indices]:
        """Upper bounds of a histogram's buckets, ascending, and their places."""
        number = self._parts[part]
        bounds = sorted((bound, slot) for (owner, bound), slot in self._slots.items() if owner == number)
        return np.array([bound for bound, _ in bounds]), np.array([slot for _, slot in bounds], dtype=np.intp)

    def layout(self, series: tuple[str, ...]) -> Layout:
        """The layout of a page with these series.

        Raises:
            PageError: labels that cannot be read.
        """
        known = self._layouts.get(series)
        if known is None:
            if len(self._layouts) >= KEPT_LAYOUTS:
                self._layouts.clear()
            known = self._layouts[series] = self._worked_out(series)
        return known

    def _worked_out(self, series: tuple[str, ...]) -> Layout:
        apart = [pages.taken_apart(text) for text in series]
        mine = [position for position, one in enumerate(apart) if self._is_mine(one)]
        found = {number: self._positions(part, apart, mine) for part, number in self._parts.items()}
        flows = [
            (at, self._slot_at(number, apart[at])) for part, number in self._of_kind(flow=True) for at in found[number]
        ]
        levels = [(at, number) for part, number in self._of_kind(flow=False) for at in found[number]]
        names = {one.labels.get(self._engine.model, "") for one in apart}
        return Layout(
            series=series,
            flows=_column(flows, 0),
            slots=_column(flows, 1),
            levels=_column(levels, 0),
            parts=_column(levels, 1),
            present=frozenset(number for number, positions in found.items() if positions),
            others=frozenset(names - {"", self._model}),
        )

    def _new_slot(self, part: Part) -> int:
        return self._slots.setdefault((self._parts[part], NO_BOUND), len(self._slots))

    def _of_kind(self, *, flow: bool) -> Iterable[tuple[Part, int]]:
        return ((part, number) for part, number in self._parts.items() if part.flow is flow)

    def _is_mine(self, one: pages.Labelled) -> bool:
        if not (self._engine.model and self._model):
            return True
        model = one.labels.get(self._engine.model, self._model)  # what has no model belongs to the pod's only one
        return model == self._model or (self._engine.folds_case and model.lower() == self._model.lower())

    def _positions(self, part: Part, apart: Sequence[pages.Labelled], mine: Sequence[int]) -> list[int]:
        """Positions of the first metric of the term that is on the page; of repeating ranks the first."""
        for metric in part.term:
            name = metric.name + part.suffix
            seen: set[tuple[tuple[str, str], ...]] = set()
            positions = []
            for at in mine:
                if apart[at].name == name and metric.takes(apart[at].labels):
                    identity = tuple(item for item in apart[at].labels.items() if item[0] not in self._engine.repeats)
                    if identity not in seen:
                        seen.add(identity)
                        positions.append(at)
            if positions:
                return positions
        return []

    def _slot_at(self, number: int, one: pages.Labelled) -> int:
        bound = float(one.labels["le"]) if "le" in one.labels else NO_BOUND
        return self._slots.setdefault((number, bound), len(self._slots))


def parts(recipe: recipes.Recipe) -> list[Part]:
    """What a recipe reads."""
    rate = recipe.kind is recipes.Kind.RATE
    flows = rate or recipe.kind in (recipes.Kind.P95, recipes.Kind.MEAN_OF)
    (terms, suffixes), (change, _), (optional, _) = pages.parts_of(recipe)
    return [
        *(Part(term, suffix, flow=flows) for term in terms for suffix in suffixes),
        *(Part(term, "", flow=False) for term in change),
        *(Part(term, "", flow=True) for term in optional),
    ]


def _column(pairs: Sequence[tuple[int, int]], which: int) -> Indices:
    return np.array([pair[which] for pair in pairs], dtype=np.intp)
