"""`python -m predictor.generate`: rewrites the files in the checkout that are made from the code."""

import json
from collections.abc import Mapping
from pathlib import Path

from predictor.chart import dashboard, readme, rules, schema, values
from predictor.settings import reference
from predictor.telemetry import table

CHECKOUT = Path(__file__).resolve().parents[1]
CHART = "helm/floorcast"


def files() -> Mapping[str, str]:
    """Text by path within the checkout; a test says that the files are these."""
    chart = values.read((CHECKOUT / CHART / "values.yaml").read_text(encoding="utf-8"))
    return {
        "config/floorcast.yaml": reference.yaml_file(),
        "config/schema.json": reference.json_schema(),
        "docs/configuration.md": reference.document(),
        "docs/metrics.md": table.document(),
        "docs/permissions.md": rules.page(),
        f"{CHART}/README.md": readme.text(chart),
        f"{CHART}/values.schema.json": schema.text(chart, json.loads(reference.json_schema())),
        f"{CHART}/templates/_rules.tpl": rules.templates(),
        f"{CHART}/files/dashboard.json": dashboard.text(),
    }


def write(checkout: Path) -> None:
    """Writes them all."""
    for path, text in files().items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(CHECKOUT)
