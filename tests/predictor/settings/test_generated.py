"""The files in the checkout that are made from the code are what the code makes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pydantic
import pytest
import yaml

from predictor import generate
from predictor.settings import convert, fields, loading, reference
from predictor.settings.root import Settings
from predictor.signals import shelf

CHECKOUT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((CHECKOUT / "config/examples").glob("*.yaml"))


@pytest.mark.parametrize("path", sorted(generate.files()))
def test_is_what_the_code_makes(path: str) -> None:
    made = (CHECKOUT / path).read_text(encoding="utf-8")
    assert made == generate.files()[path], "run python -m predictor.generate"


def test_writing_makes_all_of_them(tmp_path: Path) -> None:
    generate.write(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(generate.files())


def test_the_reference_loads_as_exactly_the_defaults() -> None:
    assert loading.load(CHECKOUT / "config/floorcast.yaml") == Settings()


def test_the_reference_says_every_key() -> None:
    def keys(value: object) -> object:
        return {name: keys(one) for name, one in value.items()} if isinstance(value, dict) else None

    assert keys(yaml.safe_load(reference.yaml_file())) == keys(Settings().model_dump(by_alias=True))


def test_the_example_in_the_reference_loads_when_it_is_uncommented(tmp_path: Path) -> None:
    lines = reference.yaml_file().splitlines()
    start = lines.index("targets: []")
    end = lines.index("", start)
    example = [line.removeprefix("# ") for line in lines[start + 2 : end]]
    path = tmp_path / "config.yaml"
    path.write_text("\n".join(["targets:", *example]))
    assert [target.key for target in convert.targets(loading.load(path))] == ["llm/chat"]


def test_every_key_explains_itself() -> None:
    def keys(section: type[pydantic.BaseModel], place: str = "") -> Iterator[tuple[str, str]]:
        for name, field in section.model_fields.items():
            yield f"{place}{name}", field.description or ""
            if inner := fields.section_of(field):
                yield from keys(inner, f"{place}{name}.")

    explained = dict(keys(Settings))
    assert len(explained) > 80
    assert [place for place, text in explained.items() if not text.endswith(".") or len(text) < 12] == []


def test_the_schema_refuses_unknown_keys_and_keeps_our_notes_to_ourselves() -> None:
    text = reference.json_schema()
    assert json.loads(text)["additionalProperties"] is False
    assert "x-" not in text.replace("max-", "")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_loads(path: Path) -> None:
    settings = loading.load(path)
    assert convert.targets(settings)
    shelf.load(overrides=settings.signals)
