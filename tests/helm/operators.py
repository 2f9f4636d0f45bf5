"""Objects of operators' kinds checked as an API server with their CRDs would, and more strictly.

Kubernetes' own schemas know nothing of them. An API server drops a field that it does not know; here it is an error.
"""

from pathlib import Path
from typing import Any

import jsonschema
import yaml

CRDS = Path(__file__).parent / "crds"
Json = dict[str, Any]


def _schemas() -> dict[tuple[str, str], Json]:
    found: dict[tuple[str, str], Json] = {}
    for path in sorted(CRDS.glob("*.yaml")):
        for crd in yaml.safe_load_all(path.read_text()):
            for version in crd["spec"]["versions"]:
                api = f"{crd['spec']['group']}/{version['name']}"
                found[api, crd["spec"]["names"]["kind"]] = _closed(version["schema"]["openAPIV3Schema"])
    return found


def _closed(schema: Any) -> Any:  # noqa: ANN401  (JSON)
    """With every field that is not named refused; what is a mapping stays one."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **closed} if isinstance(schema.get("properties"), dict) else closed


SCHEMAS = _schemas()
APIS = frozenset(api for api, _ in SCHEMAS)


def validate(thing: Json) -> None:
    """Check one object.

    Raises:
        KeyError: no CRD of its kind is here.
        jsonschema.ValidationError: it does not fit.
    """
    schema = SCHEMAS[thing["apiVersion"], thing["kind"]]
    jsonschema.Draft202012Validator(schema).validate(thing)
