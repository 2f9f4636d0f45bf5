"""From gauges and increases to readings, by the recipes of the catalogue."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from models.series import Floats
from models.signals import Cause, Reading, Signal, Unknown
from predictor.signals import checked, layout, recipes, tally

TAIL = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What one look at a target's pods gave.

    Attributes:
        plan: what was read.
        sheets: pages, one a pod.
        levels: their gauges, in the same order.
        recent: increases over the window of rates; None after a first look.
        longer: the same over the window of quantiles and means.
        at: Unix time of the look, seconds.
    """

    plan: layout.Plan
    sheets: Sequence[tally.Sheet]
    levels: Sequence[tally.Levels]
    recent: tally.Increase | None
    longer: tally.Increase | None
    at: float


def reading(signal: Signal, ways: Sequence[recipes.Recipe], look: Look) -> tuple[str, Reading]:
    """Name of the first recipe whose metrics are on the pages, and what it gives."""
    for recipe in ways:
        if all(_pages_with(part, look) for part in _needed(recipe)):
            return recipe.name, _given(signal, recipe, look)
    if others := sorted(set[str]().union(*(sheet.layout.others for sheet in look.sheets))):
        return "", Unknown(Cause.EMPTY, f"the pages are those of model {', '.join(others)}")
    names = " or ".join(way.terms[0][0].name for way in ways)
    return "", Unknown(Cause.EMPTY, f"no {names} on {len(look.sheets)} pages")


def _given(signal: Signal, recipe: recipes.Recipe, look: Look) -> Reading:
    if recipe.kind in _LEVELS:
        lacking = [part for part in _needed(recipe) if _pages_with(part, look) < len(look.sheets)]
        if lacking:
            some = f"{_pages_with(lacking[0], look)} of {len(look.sheets)} pages"
            return Unknown(Cause.PARTIAL, f"{lacking[0].term[0].name} only on {some}")
        value = _LEVELS[recipe.kind](recipe, look)
    else:
        increase = look.recent if recipe.kind is recipes.Kind.RATE else look.longer
        if increase is None:
            return Unknown(Cause.EMPTY, "a first look: a rate lies between two")
        value = _FLOWS[recipe.kind](recipe, look.plan, increase)
    return checked.reading(signal, value * recipe.scale, at=look.at)


def _needed(recipe: recipes.Recipe) -> list[layout.Part]:
    return [part for part in layout.parts(recipe) if part.term not in recipe.optional]


def _pages_with(part: layout.Part, look: Look) -> int:
    number = look.plan.number(part)
    return sum(number in sheet.layout.present for sheet in look.sheets)


def _levels(part: layout.Part, look: Look) -> tuple[Floats, Floats]:
    number = look.plan.number(part)
    return (
        np.array([level.sums[number] for level in look.levels]),
        np.array([level.counts[number] for level in look.levels]),
    )


def _sum(recipe: recipes.Recipe, look: Look) -> float:
    return float(sum(_levels(part, look)[0].sum() for part in layout.parts(recipe)))


def _mean(recipe: recipes.Recipe, look: Look) -> float:
    sums, counts = _levels(layout.parts(recipe)[0], look)
    return float(sums.sum() / counts.sum())


def _share(recipe: recipes.Recipe, look: Look) -> float:
    (used, _), (total, _) = (_levels(part, look) for part in layout.parts(recipe))
    return float((used / total).mean()) if (total > 0).all() else math.nan


def _rate(recipe: recipes.Recipe, plan: layout.Plan, increase: tally.Increase) -> float:
    slots = [plan.slot(part) for part in layout.parts(recipe)]
    return float(sum(increase.amounts[slot] for slot in slots if slot is not None) / increase.seconds)


def _p95(recipe: recipes.Recipe, plan: layout.Plan, increase: tally.Increase) -> float:
    total = 0.0
    for part in layout.parts(recipe):
        bounds, slots = plan.buckets(part)
        total += tally.quantile(TAIL, bounds, increase.amounts[slots])
    return total


def _mean_of(recipe: recipes.Recipe, plan: layout.Plan, increase: tally.Increase) -> float:
    amounts, observations = (
        0.0 if slot is None else float(increase.amounts[slot]) for slot in map(plan.slot, layout.parts(recipe))
    )
    return amounts / observations if observations > 0 else math.nan


_LEVELS = {recipes.Kind.SUM: _sum, recipes.Kind.MEAN: _mean, recipes.Kind.SHARE: _share}
_FLOWS = {recipes.Kind.RATE: _rate, recipes.Kind.P95: _p95, recipes.Kind.MEAN_OF: _mean_of}
