"""Reading a YAML file without losing anything: a key given twice is an error, not the last one wins."""

from pathlib import Path
from typing import Any

import yaml

from predictor.errors import ConfigurationError

LONGEST = 40  # characters of a faulty text that are repeated
_TEXTS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")  # the last is a plain "="


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses repeated keys, keys that are no text, and numbers too long to be read."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """The mapping; the signature is PyYAML's."""
        seen: set[Any] = set()
        for name, _ in node.value:
            if name.tag not in _TEXTS:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {_shown(name)} is no text; put a key in quotes", name.start_mark
                )
            if name.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {name.value!r} is given twice; keep one of them", name.start_mark
                )
            seen.add(name.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002
        """The value; what Python cannot make of a number or a date (too many digits, month 13) has its place told."""
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            problem = f"{_shown(node)} cannot be read: {str(error).split(';')[0]}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _shown(node: yaml.Node) -> str:
    text = str(node.value) if isinstance(node, yaml.ScalarNode) else "that is itself a list or a mapping"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def read(path: Path) -> dict[str, Any]:
    """The mapping in the file; an empty file is an empty mapping.

    Raises:
        ConfigurationError: unreadable, no YAML (with line and column), or no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file; name another with --config or FLOORCAST_CONFIG") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        given = yaml.load(text, _Loader)  # noqa: S506  (a subclass of the safe loader)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}{_place(error)}") from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        kind = "a list" if isinstance(given, list) else "a single value"
        raise ConfigurationError(f"{path}: is {kind}, not a mapping; begin with keys like `mode:` and `targets:`")
    return given


def _place(error: yaml.YAMLError) -> str:
    """Line and column, counted from one, and what is wrong there."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        context = f" {error.context}" if error.context else ""
        return f":{mark.line + 1}:{mark.column + 1}: {error.problem}{context}; correct the YAML there"
    return f": {str(error).splitlines()[0]}"


def documents(path: Path) -> list[Any]:
    """Every document of a file that may have several, the empty ones left out.

    Raises:
        ConfigurationError: unreadable, or no YAML (with line and column).
    """
    try:
        with path.open(encoding="utf-8") as text:
            return [one for one in yaml.load_all(text, _Loader) if one is not None]
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}{_place(error)}") from None
