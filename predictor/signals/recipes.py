"""What to compute from a pod's metrics page: the direct counterpart of a PromQL query.

A metric is written as in PromQL: `name`, or `name{label="value"}` with `=`, `!=`, `=~` and `!~`. A term is a metric or
several joined by ` or `: the first one present on a page is read, so that renamed metrics of two versions both count.
"""

import dataclasses
import enum
import re
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import parser


class RecipeError(ValueError):
    """A recipe that cannot be used; the text says why."""


class Kind(enum.StrEnum):
    """How terms become a value. The value is also the key in the catalogue."""

    SUM = "sum"  # gauges, added over series and pods
    MEAN = "mean"  # a gauge, mean over series and pods
    SHARE = "share"  # two gauges, the first over the second in each pod, mean over pods
    RATE = "rate"  # counters per second, plus what the gauges of `change` grew by
    P95 = "p95"  # histograms, the 95th percentile of what was observed in the window; several are added
    MEAN_OF = "mean_of"  # histogram (or any pair X_sum, X_count), the mean of what was observed in the window


TERMS_OF_SHARE = 2
_METRIC = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?$")
_MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(?:,|$)')


@dataclasses.dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on one label; a series without the label has it empty."""

    label: str
    pattern: re.Pattern[str]
    wanted: bool

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels is meant."""
        return (self.pattern.fullmatch(labels.get(self.label, "")) is not None) is self.wanted


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """A metric by its exposition name, and conditions on its labels."""

    name: str
    matchers: tuple[Matcher, ...] = ()

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels is meant."""
        return all(matcher.holds(labels) for matcher in self.matchers)

    def called(self, suffix: str) -> "Metric":
        """The metric with a suffix at its name, as histograms have them."""
        return Metric(self.name + suffix, self.matchers)


Term = tuple[Metric, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """One way to compute a signal.

    Attributes:
        name: what reports call it.
        kind: how the terms become a value.
        terms: what must be on the pages.
        change: for rates: gauges whose growth counts too (requests that arrived and are not counted yet).
        optional: for rates: counters that count where they are present (refusals).
        scale: factor that turns the metric's unit into the signal's.
    """

    name: str
    kind: Kind
    terms: tuple[Term, ...]
    change: tuple[Term, ...] = ()
    optional: tuple[Term, ...] = ()
    scale: float = 1.0


def recipe(name: str, spec: Mapping[str, Any]) -> Recipe:
    """Reads one recipe of the catalogue, like `{rate: [a_total], change: [b]}`.

    Raises:
        RecipeError: it is malformed.
    """
    unknown = set(spec) - {*Kind, "change", "optional", "scale"}
    if unknown:
        raise RecipeError(f"has {_listed(unknown)}: known are {_listed({*Kind, 'change', 'optional', 'scale'})}")
    kinds = [Kind(word) for word in spec if word in set(Kind)]
    if len(kinds) != 1:
        raise RecipeError(f"needs exactly one of {_listed(Kind)}")
    scale = spec.get("scale", 1.0)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or scale <= 0:
        raise RecipeError(f"scale is {scale!r}: must be a positive number")
    parts = {part: _terms(part, spec.get(part, ())) for part in (kinds[0], "change", "optional")}
    if kinds[0] is not Kind.RATE and (parts["change"] or parts["optional"]):
        raise RecipeError("change and optional belong to a rate")
    if kinds[0] is Kind.SHARE and len(parts[Kind.SHARE]) != TERMS_OF_SHARE:
        raise RecipeError("share needs two metrics: what is used, and out of how much")
    return Recipe(name, kinds[0], parts[kinds[0]], parts["change"], parts["optional"], float(scale))


def _terms(part: str, written: object) -> tuple[Term, ...]:
    terms = [written] if isinstance(written, str) else written
    if not isinstance(terms, Sequence) or not all(isinstance(term, str) for term in terms):
        raise RecipeError(f"{part} is {written!r}: must be a metric or a list of them")
    return tuple(tuple(_metric(metric.strip()) for metric in term.split(" or ")) for term in terms)


def _metric(written: str) -> Metric:
    found = _METRIC.match(written)
    if not found:
        raise RecipeError(f'{written!r} is no metric: write name or name{{label="value"}}')
    return Metric(found[1], _matchers(found[2] or "", written))


def _matchers(inside: str, written: str) -> tuple[Matcher, ...]:
    matchers: list[Matcher] = []
    at = 0
    while at < len(inside):
        found = _MATCHER.match(inside, at)
        if not found:
            raise RecipeError(f"{written!r}: cannot read the labels from {inside[at:]!r}")
        label, operator, quoted = found.groups()
        value = parser.parse_labels(f"x={quoted}")["x"]  # undoes the escapes
        pattern = re.compile(value if operator.endswith("~") else re.escape(value))
        matchers.append(Matcher(label, pattern, wanted=not operator.startswith("!")))
        at = found.end()
    return tuple(matchers)


def _listed(words: object) -> str:
    return ", ".join(sorted(str(word) for word in words))  # type: ignore[attr-defined]
