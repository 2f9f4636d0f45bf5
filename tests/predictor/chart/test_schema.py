"""The schema of the chart's values: closed, with the configuration's own schema in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from predictor.settings import loading

CHECKOUT = Path(__file__).parents[3]
CHART = CHECKOUT / "helm/floorcast"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
FREE = ("affinity", "resources", "tolerations", "topologySpreadConstraints", "from", "scalerFrom", "egress", "global")


def check(values: dict[str, Any]) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(values)


def test_the_defaults_are_valid() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    check(DEFAULTS)
    check({})


@pytest.mark.parametrize(
    "values",
    [
        {"replica": 2},
        {"image": {"tga": "1"}},
        {"rbac": {"grant": {"hpas": True}}},
        {"secretFiles": [{"name": "a", "mountPath": "/b", "key": "c"}]},
        {"config": {"modus": "control"}},
        {"config": {"defaults": {"capacity": {"concurrent": 4}}}},
        {"config": {"targets": [{"namespace": "llm", "name": "chat", "warmup": "5m"}]}},
    ],
)
def test_a_misspelt_key_is_refused_wherever_it_stands(values: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError, match="Additional properties are not allowed"):
        check(values)


@pytest.mark.parametrize(
    "values",
    [
        {"image": {"pullPolicy": "Sometimes"}},
        {"image": {"digest": "sha256:1"}},
        {"replicas": 0},
        {"serviceMonitor": {"interval": "often"}},
        {"env": [{"name": "TOKEN", "valueFrom": {}}]},
        {"secretFiles": [{"name": "a", "mountPath": "relative"}]},
        {"config": {"mode": "whatever"}},
        {"config": {"loops": {"slow": "soon"}}},
        {"config": {"targets": [{"name": "chat"}]}},
    ],
)
def test_a_value_out_of_bounds_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(values)


def test_a_chart_above_may_switch_it_off_and_set_global_values() -> None:
    check({"enabled": False, "global": {"anything": 1}})


@pytest.mark.parametrize("path", sorted((CHECKOUT / "config/examples").glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_of_a_configuration_is_a_valid_value(path: Path) -> None:
    check({"config": yaml.safe_load(path.read_text())})


def test_the_reference_of_every_key_is_a_valid_value() -> None:
    check({"config": yaml.safe_load((CHECKOUT / "config/floorcast.yaml").read_text())})


def test_the_default_configuration_loads(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(DEFAULTS["config"]))
    assert loading.load(tmp_path / "c.yaml").mode == "shadow"


def test_every_mapping_is_closed_but_those_that_are_kubernetes_own_and_maps_of_one_type() -> None:
    def mappings(schema: object, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield name, schema
            for key, part in schema.items():
                for inner, one in part.items() if key in ("properties", "$defs") else [(key, part)]:
                    yield from mappings(one, name if inner in ("items", "anyOf") else inner)
        for one in schema if isinstance(schema, list) else []:
            yield from mappings(one, name)

    found = list(mappings(SCHEMA))
    assert len(found) > 40
    open_ones = {name for name, one in found if one.get("additionalProperties", True) is True}
    assert open_ones <= set(FREE)
