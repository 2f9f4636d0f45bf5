"""Reads the catalogue's files, one an engine, and says where one is wrong.

CatalogError      a file or an override that cannot be used: names it, the key and the remedy
"""

import dataclasses
import difflib
import string
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from models.signals import Signal
from predictor import errors
from predictor.signals import catalog, recipes

SHIPPED = Path(__file__).resolve().parent.parent / "config" / "signals"
OVERRIDE = "override"  # what reports call a query that the configuration put in place of the catalogue's

_TEXTS = ("model", "select", "fresh", "duplicates")
_LISTS = ("ranks", "repeats")
_KEYS = {*_TEXTS, *_LISTS, "folds_case", "extends", "rename", "queries", "pages"}

Overrides = Mapping[str, Mapping[str, str]]
Way = TypeVar("Way", catalog.Alternative, recipes.Recipe)


class CatalogError(errors.ConfigurationError):
    """A file of the catalogue, or a query of the configuration, cannot be used."""


def load(*, overrides: Overrides | None = None, folders: Iterable[Path] = (SHIPPED,)) -> catalog.Catalog:
    """The catalogue, by engine.

    Args:
        overrides: engine -> signal -> query that replaces every way of the catalogue to ask for that signal.
        folders: where the files lie; a file of a later folder replaces one of the same name.

    Raises:
        CatalogError: a file or an override cannot be used.
    """
    files = {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
    if not files:
        raise CatalogError(f"no *.yaml in {', '.join(map(str, folders))}: the signal catalogue is missing")
    return _overridden({name: _engine(name, files) for name in files}, overrides or {})


def _overridden(engines: dict[str, catalog.Engine], overrides: Overrides) -> catalog.Catalog:
    for name, queries in overrides.items():
        where = f"signals.{name}"
        if name not in engines:
            raise CatalogError(f"{where}: no such engine; {_meant(name, engines)}")
        own = {
            _signal(word, where): (_alternative(OVERRIDE, query, f"{where}.{word}", engines[name].model),)
            for word, query in queries.items()
        }
        engines[name] = dataclasses.replace(engines[name], queries={**engines[name].queries, **own})
    return engines


def _engine(name: str, files: Mapping[str, Path], extending: tuple[str, ...] = ()) -> catalog.Engine:
    path = files[name]
    data = _mapping(_parsed(path), str(path))
    if unknown := sorted(set(data) - _KEYS):
        raise CatalogError(f"{path}: {unknown[0]}: no such key; {_meant(unknown[0], _KEYS)}")
    base = _base(data, files, (*extending, name))
    model = _text(data, "model", path) or base.model
    return catalog.Engine(
        name=name,
        model=model,
        folds_case=_flag(data, "folds_case", path) or base.folds_case,
        ranks=_list(data, "ranks", path) or base.ranks,
        repeats=_list(data, "repeats", path) or base.repeats,
        select=_text(data, "select", path) or base.select,
        fresh=_query(data, "fresh", path, model) or base.fresh,
        duplicates=_query(data, "duplicates", path, model) or base.duplicates,
        queries=_before(_queries(data, path, model), base.queries),
        pages=_before(_pages(data, path), base.pages),
    )


def _base(data: Mapping[str, Any], files: Mapping[str, Path], extending: tuple[str, ...]) -> catalog.Engine:
    path, name = files[extending[-1]], data.get("extends")
    if name is None:
        return catalog.Engine("")
    if name not in files:
        raise CatalogError(f"{path}: extends: {name!r} is no file of the catalogue; {_meant(str(name), files)}")
    if name in extending:
        raise CatalogError(f"{path}: extends: {' -> '.join((*extending, name))} goes round in a circle")
    return _renamed(_engine(name, files, extending), _mapping(data.get("rename", {}), f"{path}: rename"))


def _renamed(engine: catalog.Engine, names: Mapping[str, Any]) -> catalog.Engine:
    def new(text: str) -> str:
        for old, name in names.items():
            text = text.replace(old, str(name))
        return text

    def metrics(term: recipes.Term) -> recipes.Term:
        return tuple(dataclasses.replace(metric, name=new(metric.name)) for metric in term)

    def renamed(recipe: recipes.Recipe) -> recipes.Recipe:
        terms, change, optional = (tuple(map(metrics, part)) for part in (recipe.terms, recipe.change, recipe.optional))
        return dataclasses.replace(recipe, terms=terms, change=change, optional=optional)

    return dataclasses.replace(
        engine,
        fresh=new(engine.fresh),
        duplicates=new(engine.duplicates),
        queries={
            signal: tuple(dataclasses.replace(way, query=new(way.query)) for way in ways)
            for signal, ways in engine.queries.items()
        },
        pages={signal: tuple(map(renamed, ways)) for signal, ways in engine.pages.items()},
    )


def _before(
    first: Mapping[Signal, tuple[Way, ...]], then: Mapping[Signal, tuple[Way, ...]]
) -> Mapping[Signal, tuple[Way, ...]]:
    return {signal: first.get(signal, ()) + then.get(signal, ()) for signal in Signal if signal in {*first, *then}}


def _queries(data: Mapping[str, Any], path: Path, model: str) -> dict[Signal, tuple[catalog.Alternative, ...]]:
    return {
        _signal(word, f"{path}: queries"): tuple(
            _alternative(name, query, f"{path}: queries.{word}.{name}", model)
            for name, query in _mapping(ways, f"{path}: queries.{word}").items()
        )
        for word, ways in _mapping(data.get("queries", {}), f"{path}: queries").items()
    }


def _pages(data: Mapping[str, Any], path: Path) -> dict[Signal, tuple[recipes.Recipe, ...]]:
    return {
        _signal(word, f"{path}: pages"): tuple(
            _recipe(name, spec, f"{path}: pages.{word}.{name}")
            for name, spec in _mapping(ways, f"{path}: pages.{word}").items()
        )
        for word, ways in _mapping(data.get("pages", {}), f"{path}: pages").items()
    }


def _recipe(name: str, spec: object, where: str) -> recipes.Recipe:
    try:
        return recipes.recipe(name, _mapping(spec, where))
    except recipes.RecipeError as error:
        raise CatalogError(f"{where}: {error}") from error


def _alternative(name: str, query: object, where: str, model: str) -> catalog.Alternative:
    if not isinstance(query, str) or not query.strip():
        raise CatalogError(f"{where}: is {query!r}: must be a query")
    _check_placeholders(query, where, model)
    return catalog.Alternative(name, query)


def _check_placeholders(query: str, where: str, model: str) -> None:
    template = string.Template(query)
    if not template.is_valid():
        raise CatalogError(f"{where}: has a $ that starts no placeholder; write $$ for a dollar, as in $$1")
    names = template.get_identifiers()
    if unknown := sorted(set(names) - set(catalog.PLACEHOLDERS)):
        raise CatalogError(f"{where}: ${unknown[0]} is no placeholder; {_meant(unknown[0], catalog.PLACEHOLDERS)}")
    carries = "by" in names or ("namespace" in names and ("model" in names or not model))
    if not carries:
        raise CatalogError(
            f"{where}: lacks $by; one query answers for all targets, so its result must keep their labels, "
            "as in sum by ($by) (...)"
        )


def _parsed(path: Path) -> object:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CatalogError(f"{path}: is no YAML: {' '.join(str(error).split())}") from error


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise CatalogError(f"{where}: is {value!r}: must be a mapping with names as keys")
    return value


def _signal(word: str, where: str) -> Signal:
    try:
        return Signal(word)
    except ValueError:
        raise CatalogError(f"{where}.{word}: no such signal; {_meant(word, Signal)}") from None


def _query(data: Mapping[str, Any], key: str, path: Path, model: str) -> str:
    query = _text(data, key, path)
    if query:
        _check_placeholders(query, f"{path}: {key}", model)
    return query


def _text(data: Mapping[str, Any], key: str, path: Path) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise CatalogError(f"{path}: {key}: is {value!r}: must be text")
    return value


def _list(data: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...]:
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CatalogError(f"{path}: {key}: is {value!r}: must be a list of labels")
    return tuple(value)


def _flag(data: Mapping[str, Any], key: str, path: Path) -> bool:
    value = data.get(key, False)
    if not isinstance(value, bool):
        raise CatalogError(f"{path}: {key}: is {value!r}: must be true or false")
    return value


def _meant(word: str, known: Iterable[str]) -> str:
    names = [str(name) for name in known]
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(names))}"
