"""From a file, the environment and flags to `Settings`, or to one clear line for each problem."""

import dataclasses
import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pydantic_settings

from predictor.errors import ConfigurationError
from predictor.settings import engines, problems, yamlfile
from predictor.settings.root import PREFIX, Settings

PATH_VARIABLE = "FLOORCAST_CONFIG"
USUAL_PATHS = (Path("config/floorcast.yaml"), Path("/etc/floorcast/floorcast.yaml"))


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """A flag of the command line and the key it sets."""

    name: str
    place: tuple[str, ...]
    value: object


def find() -> Path:
    """The file to read when none is named: $FLOORCAST_CONFIG, else the first usual path that exists."""
    named = os.environ.get(PATH_VARIABLE)
    if named:
        return Path(named)
    for path in USUAL_PATHS:
        if path.exists():
            return path
    places = " nor ".join(str(path) for path in USUAL_PATHS)
    raise ConfigurationError(f"no configuration: neither {places} exists; name one with --config or {PATH_VARIABLE}")


def load(path: Path | None = None, flags: tuple[Flag, ...] = ()) -> Settings:
    """The settings from all sources; flags outweigh the environment, which outweighs the file.

    Raises:
        ConfigurationError: one line for each problem.
    """
    path = path or find()
    given = yamlfile.read(path)
    lines = list(_unknown_variables())
    environment = _from_environment()
    origins = problems.Origins(str(path), environment, {flag.place: flag.name for flag in flags})
    try:
        settings = Settings(**_over(_over(given, environment), _nested(flags)))
    except pydantic.ValidationError as error:
        raise ConfigurationError([*lines, *problems.lines(error, origins)]) from None
    lines += [f"{origins.of(one.place)}: {one.text}" for one in engines.problems(settings)]
    if lines:
        raise ConfigurationError(lines)
    return settings


class Watch:
    """A configuration that may change while the service runs.

    A file is taken for changed once it has been found another one twice in a row: an editor may still be writing it.
    A ConfigMap in a pod changes as a whole, by the exchange of a link.
    """

    def __init__(self, path: Path | None = None, flags: tuple[Flag, ...] = ()) -> None:
        self.path = path or find()
        self._flags = flags
        self._taken: bytes | None = None
        self._found: bytes | None = None

    def first(self) -> Settings:
        """The settings now; raises as `load` does."""
        self._taken = self._found = self._read()
        return load(self.path, self._flags)

    def look(self) -> Settings | None:
        """The settings of a changed file, None while it is the one that was read last.

        Raises:
            ConfigurationError: the changed file cannot be used; said once for each change.
        """
        found, self._found = self._found, self._read()
        if self._found != found or self._found == self._taken:
            return None
        self._taken = self._found
        return load(self.path, self._flags)

    def _read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            return None  # `load` says why


def _over(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Both mappings, section by section; `upper` wins."""
    merged = {**lower, **upper}
    for name, value in upper.items():
        below = lower.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[name] = _over(below, value)
    return merged


def _from_environment() -> dict[str, Any]:
    """What the environment says, nested like the settings."""
    try:
        return pydantic_settings.EnvSettingsSource(Settings)()
    except pydantic_settings.SettingsError as error:
        field = str(error).split('"')[1] if '"' in str(error) else "?"
        variable = f"{PREFIX}{field.upper()}"
        raise ConfigurationError(f"{variable}: {os.environ.get(variable)!r} is no JSON; write JSON here") from None


def _unknown_variables() -> Iterator[str]:
    """Variables with our prefix that name no section, or with half of it: the settings would pass over them in silence.

    Kubernetes itself sets FLOORCAST_PORT and the like for a Service of that name, but never a section's own name.
    """
    known = {name.upper() for name in Settings.model_fields}
    for variable in sorted(os.environ):
        half, _, rest = variable.upper().partition("_")
        if f"{half}__" == PREFIX and rest.split("__")[0] in known:
            yield f"{variable}: sets nothing; did you mean {PREFIX}{rest}?"
        section = variable.upper().removeprefix(PREFIX).split("__")[0]
        if variable.upper().startswith(PREFIX) and section not in known:
            near = difflib.get_close_matches(section, known, n=1)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            yield f"{variable}: sets nothing; {hint}"


def _nested(flags: tuple[Flag, ...]) -> dict[str, Any]:
    """Flags as the nested mapping of the keys they set."""
    nested: dict[str, Any] = {}
    for flag in flags:
        inner = nested
        for name in flag.place[:-1]:
            inner = inner.setdefault(name, {})
        inner[flag.place[-1]] = flag.value
    return nested
