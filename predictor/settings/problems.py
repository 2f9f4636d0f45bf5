"""pydantic's findings as lines for a person: where it was said, the key, the value, the bound and the remedy."""

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from predictor.settings import durations, fields
from predictor.settings.checks import ContradictionsError, Place
from predictor.settings.root import PREFIX, Settings
from predictor.settings.section import REMEDY

TYPES = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "string": "a text",
    "path": "a path",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping of keys",
    "model": "a mapping of keys",
}
COMPARISONS = {
    "greater_than": "greater than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}
SENTENCES = {
    "enum": "is not one of {expected}",
    "string_pattern_mismatch": "does not match {pattern}",
    "string_too_short": "is empty",
    "too_short": "is empty",
    "finite_number": "is not a finite number",
    "value_error": "{error}",
}
OWN_WORDS = (
    "duration",
    "url",
    "url_secret",
    "zone",
    "signal",
)  # errors of our own types, which say the remedy themselves


@dataclasses.dataclass(frozen=True, slots=True)
class Origins:
    """Where each key was said: a flag, a variable, or the file."""

    path: str
    environment: Mapping[str, Any]
    flags: Mapping[tuple[str, ...], str]

    def of(self, place: Place) -> str:
        """How a line about this key begins."""
        key = dotted(place)
        for flagged, name in self.flags.items():
            if flagged[: len(place)] == place:
                return name
        if place and _reaches(self.environment, place):
            words = [part.upper() for part in place if isinstance(part, str)]
            listed = "" if len(words) == len(place) else f": {key}"
            return f"{PREFIX}{words[0] if listed else '__'.join(words)}{listed}"
        return f"{self.path}: {key}" if key else self.path


def lines(error: pydantic.ValidationError, origins: Origins) -> Iterator[str]:
    """One line for each problem; what a target took over from faulty defaults is said once."""
    found = error.errors()
    common = {(one["loc"][1:], one["type"], str(one["input"])) for one in found if one["loc"][:1] == ("defaults",)}
    for one in found:
        if one["loc"][:1] == ("targets",) and (one["loc"][2:], one["type"], str(one["input"])) in common:
            continue
        cause = one.get("ctx", {}).get("error")
        if isinstance(cause, ContradictionsError):
            yield from (f"{origins.of(entry.place)}: {entry.text}" for entry in cause.found)
        else:
            yield f"{origins.of(one['loc'])}: {_sentence(one)}"


def dotted(place: Place) -> str:
    """("targets", 0, "name") -> "targets[0].name"."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part != "[key]":
            text += f".{part}" if text else part
    return text


def _sentence(one: ErrorDetails) -> str:
    place, kind = one["loc"], one["type"]
    if kind == "extra_forbidden":
        return _unknown_key(place)
    field = _field(place)
    if kind == "missing":
        return f"is missing; {_remedy(field)}"
    return f"{_shown(one, field)} {_bound(one, field)}"


def _bound(one: ErrorDetails, field: FieldInfo | None) -> str:
    """What is wrong with the value, and the remedy."""
    kind, limits = one["type"], one.get("ctx", {})
    if kind in OWN_WORDS:
        return one["msg"]
    wanted = TYPES.get(kind.split("_")[0])
    if kind in COMPARISONS:
        limit = next(limits[name] for name in ("gt", "ge", "lt", "le") if name in limits)
        wrong = f"is not {COMPARISONS[kind]} {_in_unit(limit, field)}"
    elif kind in SENTENCES:
        wrong = SENTENCES[kind].format(**limits)
    elif wanted and kind.endswith(("_type", "_parsing", "_from_float")):
        wrong = f"is not {wanted}"
    else:
        wrong = f"is refused: {one['msg']}"
    return f"{wrong}; {_remedy(field)}"


def _shown(one: ErrorDetails, field: FieldInfo | None) -> str:
    """The value, shortened; an address that carries a password is not repeated."""
    value = one["input"]
    if one["type"] == "url_secret":
        return "the address"
    if isinstance(value, (dict, list, tuple)):
        return f"this {'mapping' if isinstance(value, dict) else 'list'}"
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, float):
        text = _in_unit(value, field)
    else:
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004  (a line to read)


def _in_unit(limit: object, field: FieldInfo | None) -> str:
    if field is not None and fields.is_duration(field) and isinstance(limit, (int, float)):
        return durations.written(float(limit))
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _remedy(field: FieldInfo | None) -> str:
    """The key's own remedy, else its default."""
    extra = field.json_schema_extra if field is not None else None
    if isinstance(extra, dict) and REMEDY in extra:
        return str(extra[REMEDY])
    if field is None or field.is_required():
        return "see `floorcast config reference`"
    if isinstance(field.default, pydantic.BaseModel):
        return "put its keys under it, indented"
    return f"leave it out for the default, {fields.written(field.default, field)}"


def _unknown_key(place: Place) -> str:
    """The nearest known name; for a target that also means the keys of the defaults."""
    section = _model(place[:-1])
    known = [field.alias or name for name, field in section.model_fields.items()] if section else []
    near = difflib.get_close_matches(str(place[-1]), known, n=1)
    return f"unknown key; did you mean {near[0]}?" if near else f"unknown key; known here: {', '.join(sorted(known))}"


def _field(place: Place) -> FieldInfo | None:
    """The field at a place; a place in a list or mapping is the field that holds it."""
    named = [part for part in place if isinstance(part, str)]
    model: type[pydantic.BaseModel] | None = Settings
    field: FieldInfo | None = None
    for name in named:
        if model is None:
            return field
        field = next((one for key, one in model.model_fields.items() if name in (key, one.alias)), None)
        model = fields.section_of(field) if field is not None else None
    return field


def _model(place: Place) -> type[pydantic.BaseModel] | None:
    field = _field(place)
    return fields.section_of(field) if field is not None else Settings


def _reaches(said: object, place: Place) -> bool:
    """Whether the nested mapping or list says something at the place."""
    for part in place:
        if isinstance(said, Mapping) and part in said:
            said = said[part]
            continue
        if not (isinstance(said, list) and isinstance(part, int) and part < len(said)):
            return False
        said = said[part]
    return True
