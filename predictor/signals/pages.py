"""Reads the wanted series of a metrics page by their names as written.

prometheus_client's own parser renames counters whose names lack `_total` (`tgi_request_count` comes back with one) and
takes many times as long; its label parser is used, once for each series.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping

from prometheus_client import parser

from predictor.signals import recipes

_TYPE = "# TYPE "
_ODD = re.compile(
    r'([^\s{]+(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?)[ \t]+(\S+)'
)  # with a time or an exemplar after the value


class PageError(ValueError):
    """A text that is no metrics page, or not a whole one."""


class Reader:
    """Finds the series of the wanted families in pages.

    A page is cut at its TYPE lines, so that the many families nobody asked for cost nothing: 0.1 ms for 50 kB.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        bare = (name.removesuffix("_total") for name in self._names)  # OpenMetrics' families
        parts = (name.removesuffix(end) for name in self._names for end in ("_bucket", "_sum", "_count"))
        self._families = self._names.union(bare, parts)

    def read(self, page: str) -> tuple[tuple[str, ...], list[float]]:
        """Series as written, name and labels, and their values, in the order of the page.

        Raises:
            PageError: it is cut off, or a line cannot be read.
        """
        if not page.endswith("\n"):
            raise PageError(f"the page is cut off at {page[-40:]!r}")
        series: list[str] = []
        values: list[str] = []
        for block in self._wanted(page):
            for line in block.split("\n"):
                if line and line[0] != "#":
                    name, _, value = line.rpartition(" ")
                    if " " in name and (name[-1] != "}" or " # " in name):
                        name, value = _odd(line)
                    series.append(name)
                    values.append(value)
        try:
            return tuple(series), list(map(float, values))
        except ValueError as error:
            raise PageError(str(error)) from error

    def _wanted(self, page: str) -> Iterable[str]:
        first, *blocks = page.split("\n" + _TYPE)
        if first.startswith(_TYPE):
            blocks.insert(0, first.removeprefix(_TYPE))
        elif not blocks:
            yield from (line for line in page.split("\n") if _name(line) in self._names)
        for block in blocks:
            head, _, lines = block.partition("\n")
            if head.partition(" ")[0] in self._families:
                yield lines


def _name(line: str) -> str:
    return line.partition("{")[0].partition(" ")[0]


def _odd(line: str) -> tuple[str, str]:
    found = _ODD.match(line)
    if not found:
        raise PageError(f"cannot read {line[:120]!r}")
    return found[1], found[2]


@dataclasses.dataclass(frozen=True, slots=True)
class Labelled:
    """A series taken apart."""

    name: str
    labels: Mapping[str, str]


def taken_apart(series: str) -> Labelled:
    """Name and labels of a series as written.

    Raises:
        PageError: its labels cannot be read.
    """
    name, brace, rest = series.partition("{")
    try:
        return Labelled(name, parser.parse_labels(rest.removesuffix("}")) if brace else {})
    except ValueError as error:
        raise PageError(f"{series!r}: {error}") from error


def names_of(ways: Iterable[recipes.Recipe]) -> set[str]:
    """Names of all series the recipes need."""
    return {
        metric.name + suffix
        for recipe in ways
        for part, suffixes in parts_of(recipe)
        for term in part
        for metric in term
        for suffix in suffixes
    }


def parts_of(recipe: recipes.Recipe) -> list[tuple[tuple[recipes.Term, ...], tuple[str, ...]]]:
    """The recipe's terms, with the suffixes of the series they are made of."""
    suffixes = {recipes.Kind.P95: ("_bucket",), recipes.Kind.MEAN_OF: ("_sum", "_count")}.get(recipe.kind, ("",))
    return [(recipe.terms, suffixes), (recipe.change, ("",)), (recipe.optional, ("",))]
