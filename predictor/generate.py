"""`python -m predictor.generate`: rewrites the files in the checkout that are made from the code."""

from collections.abc import Mapping
from pathlib import Path

from predictor.settings import reference
from predictor.telemetry import table


def files() -> Mapping[str, str]:
    """Text by path within the checkout; a test says that the files are these."""
    return {
        "config/floorcast.yaml": reference.yaml_file(),
        "config/schema.json": reference.json_schema(),
        "docs/configuration.md": reference.document(),
        "docs/metrics.md": table.document(),
    }


def write(checkout: Path) -> None:
    """Writes them all."""
    for path, text in files().items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[1])
