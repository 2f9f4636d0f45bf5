"""What a replica is: a profile by name, or one's own in a JSON file."""

import json
from pathlib import Path
from typing import Any

from models.fleet import profiles
from models.fleet.profiles import Profile, StepLaw
from predictor.errors import ConfigurationError

EXAMPLE = '{"law": {"a": 4.5, "w": 2, "d": 0.017, "b": 0.003, "c": 4e-5, "q": 2e-6}, "kv_tokens": 400000, "gpus": 1}'


def read(given: str) -> Profile:
    """A profile by its name, or from a JSON file with the fields of `Profile`, `law` being an object.

    Raises:
        ConfigurationError: there is none of that name, or the file cannot be used.
    """
    if not given.endswith(".json"):
        if given not in profiles.PROFILES:
            known = ", ".join(profiles.PROFILES)
            raise ConfigurationError(f"--profile: {given!r} is unknown; use one of {known}, or a JSON file: {EXAMPLE}")
        return profiles.named(given)
    try:
        return _made(Path(given), json.loads(Path(given).read_text()))
    except OSError as error:
        raise ConfigurationError(f"--profile: {given}: {error.strerror or error}") from error
    except (ValueError, TypeError, AttributeError) as error:  # JSON that is none, other fields, numbers out of bounds
        raise ConfigurationError(f"--profile: {given}: {error}; write it like {EXAMPLE}") from error


def _made(path: Path, fields: dict[str, Any]) -> Profile:
    law = StepLaw(**fields.pop("law", {}))
    unchecked: dict[str, Any] = {"name": path.stem, "model": "", "source": str(path), "calibrated": False}
    return Profile(**(unchecked | fields), law=law)
