"""What all sections of the configuration share."""

from typing import Any

import pydantic

REMEDY = "x-remedy"  # where a key's remedy travels with the field; taken out again before a schema is shown


class Section(pydantic.BaseModel):
    """A mapping of known keys. Unknown keys and infinite numbers are refused; an empty section is the default."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, given: object) -> object:
        """`loops:` with every key commented out reads as null; it means that nothing was changed."""
        return {} if given is None else given


def _no_truth(value: object) -> object:
    """Refuses true and false, which pydantic would read as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("is no number")  # noqa: TRY004  (pydantic collects ValueError)
    return value


Number = pydantic.BeforeValidator(_no_truth)


def key(default: Any, text: str, *, remedy: str = "", **bounds: Any) -> Any:  # noqa: ANN401  (as pydantic.Field)
    """A key of a section.

    Args:
        default: its default; `...` where it must be given.
        text: what it is and why the default is what it is.
        remedy: what to do when the value is refused, as the end of a sentence.
        bounds: pydantic's `gt`, `ge`, `lt`, `le`, `alias`, ...
    """
    return pydantic.Field(default, description=text, json_schema_extra={REMEDY: remedy} if remedy else None, **bounds)
