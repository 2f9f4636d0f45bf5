"""Reading objects that may lack anything.

The API server's JSON is read as it comes, not through the client's models: those refuse what real clusters answer,
such as an HPA whose conditions are null. Here a missing, null or wrongly typed field is the empty value of its type.
"""

import datetime as dt
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


def _at(thing: object, path: tuple[str, ...]) -> object:
    for key in path:
        thing = thing.get(key) if isinstance(thing, dict) else None
    return thing


def mapping(thing: object, *path: str) -> Json:
    """The mapping there; empty where there is none."""
    found = _at(thing, path)
    return found if isinstance(found, dict) else {}


def mappings(thing: object, *path: str) -> tuple[Json, ...]:
    """The mappings of the list there; empty where there is none."""
    found = _at(thing, path)
    return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()


def text(thing: object, *path: str) -> str:
    """The string there; empty where there is none."""
    found = _at(thing, path)
    return found if isinstance(found, str) else ""


def integer(thing: object, *path: str) -> int | None:
    """The whole number there; None where there is none."""
    found = _at(thing, path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def count(thing: object, *path: str) -> int:
    """The count there. The API server leaves out a count of zero, so zero where there is none."""
    return integer(thing, *path) or 0


def truth(thing: object, *path: str) -> bool:
    """Whether there is a true there."""
    return _at(thing, path) is True


def instant(thing: object, *path: str) -> float | None:
    """The RFC 3339 time there as Unix seconds; None where there is none."""
    written = text(thing, *path)
    try:
        return dt.datetime.fromisoformat(written).timestamp() if written else None
    except ValueError:
        return None


def name(thing: object) -> str:
    """metadata.name."""
    return text(thing, "metadata", "name")


def uid(thing: object) -> str:
    """metadata.uid."""
    return text(thing, "metadata", "uid")


def controller(thing: object) -> Json:
    """The owner reference of the controller that makes this object; empty where nobody does."""
    owners = mappings(thing, "metadata", "ownerReferences")
    return next((owner for owner in owners if truth(owner, "controller")), {})


def maker(thing: object) -> str:
    """The controller that makes this object, for a message: "ScaledObject llm"; empty where nobody does."""
    found = controller(thing)
    return f"{text(found, 'kind')} {text(found, 'name')}" if found else ""


def truthful(written: str) -> bool:
    """An annotation that is a truth value, as Go reads it; what is none of its words counts as true."""
    return written not in ("0", "f", "F", "false", "FALSE", "False")


def condition(thing: object, kind: str) -> Json:
    """The status condition of that type; empty where it is not reported."""
    conditions = mappings(thing, "status", "conditions")
    return next((found for found in conditions if text(found, "type") == kind), {})


def manager_of(thing: object, *path: str) -> str:
    """Who wrote the field at `path` last, by `metadata.managedFields`; empty where that is not recorded."""
    return next(iter(managers_of(thing, *path)), "")


def managers_of(thing: object, *path: str) -> tuple[str, ...]:
    """Who claims the field at `path`, the last writer first: those who apply the same value share it."""
    keys = [f"f:{key}" for key in path]
    held = [
        (instant(entry, "time") or 0.0, text(entry, "manager"))
        for entry in mappings(thing, "metadata", "managedFields")
        if keys[-1] in mapping(entry, "fieldsV1", *keys[:-1])
    ]
    return tuple(manager for _, manager in sorted(held, reverse=True))
