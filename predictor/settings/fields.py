"""Looking at the keys themselves: which section a key holds, its bounds, how its value is written."""

import typing
from collections.abc import Iterator, Mapping

import annotated_types
import pydantic
from pydantic.fields import FieldInfo

from predictor.settings import durations


def section_of(field: FieldInfo) -> type[pydantic.BaseModel] | None:
    """The section that a key holds, itself or in a list; None for a plain value."""
    return _section_in(field.annotation)


def metadata(field: FieldInfo) -> Iterator[object]:
    """Bounds and markers of a key, those inside `X | None` and lists included."""
    yield from field.metadata
    yield from _metadata_in(field.annotation)


def limits(field: FieldInfo) -> Mapping[str, float]:
    """The numeric bounds of a key by pydantic's names: gt, ge, lt, le."""
    kinds = {"gt": annotated_types.Gt, "ge": annotated_types.Ge, "lt": annotated_types.Lt, "le": annotated_types.Le}
    return {name: getattr(one, name) for one in metadata(field) for name, kind in kinds.items() if type(one) is kind}


def is_duration(field: FieldInfo) -> bool:
    """Whether the key, or what is in its list, is a duration."""
    return any(isinstance(one, durations.Marker) for one in metadata(field))


def written(value: object, field: FieldInfo) -> str:
    """A value of the key as it is written in the file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(written(each, field) for each in value)}]"
    if isinstance(value, (int, float)):
        return durations.written(value) if is_duration(field) else f"{value:g}"
    return str(value) or '""'


def _section_in(annotation: object) -> type[pydantic.BaseModel] | None:
    origin = typing.get_origin(annotation)
    if origin is None:
        return annotation if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel) else None
    found = (_section_in(part) for part in typing.get_args(annotation))
    return next((model for model in found if model is not None), None)


def _metadata_in(annotation: object) -> Iterator[object]:
    if typing.get_origin(annotation) is typing.Annotated:
        for one in typing.get_args(annotation)[1:]:
            yield from one.metadata if isinstance(one, FieldInfo) else (one,)
    for part in typing.get_args(annotation):
        if typing.get_origin(part) is not None:
            yield from _metadata_in(part)
