"""Regenerates the forecast's tables in docs/benchmarks.md and writes every figure as JSON."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from benchmarks.forecast import judge, ours, speed, tables, traces
from models.forecasting.settings import ForecastSettings

ROOT = Path(__file__).parents[2]
WARM_UPS = (120.0, 300.0, 600.0)
QUICK_DAYS = 3.0


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecast", description=__doc__)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces", help="folder of traces")
    parser.add_argument("--json", type=Path, help="file for every figure")
    parser.add_argument("--quick", action="store_true", help="three days of each trace, fast baselines only")
    parser.add_argument("--no-speed", action="store_true", help="leave out time and memory")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "benchmarks.md", help="file with the markers")
    parser.add_argument("--no-docs", action="store_true", help="leave the documentation as it is")
    asked = parser.parse_args()
    found: list[judge.Figures] = []
    if asked.traces.is_dir():
        found = accuracy(asked.traces, quick=asked.quick)
    else:
        tell(f"no folder {asked.traces}: accuracy is left out; name one with --traces")
    timed = [] if asked.no_speed else speed.measured((1, 100) if asked.quick else (1, 100, 1000), tell)
    text = tables.written(found, timed)
    print(text)
    if asked.json:
        asked.json.write_text(json.dumps(document(found, timed), indent=1, allow_nan=True), encoding="utf-8")
    if asked.no_docs or asked.quick:
        return 0
    if found and timed:
        tables.place(asked.docs, text)
    else:
        tell(f"{asked.docs} stays as it is: the tables in it are replaced all together or not at all")
    return 0


def accuracy(folder: Path, *, quick: bool) -> list[judge.Figures]:
    """Figures of every trace in a folder."""
    settings = ForecastSettings()
    loaded = traces.read(folder, tell)
    if quick:
        loaded = [dataclasses.replace(t, counts=t.counts[: int(QUICK_DAYS * 86400 / t.step)]) for t in loaded]
    mine = ours.bounds(loaded, WARM_UPS, settings, tell)
    return judge.figures(loaded, WARM_UPS, mine, settings.quantiles, slow=not quick, tell=tell)


def document(found: list[judge.Figures], timed: list[speed.Timing]) -> dict[str, object]:
    """Everything, as JSON takes it."""
    parts = {
        "all": found,
        "development": [f for f in found if not f.held_out],
        "held_out": [f for f in found if f.held_out],
    }
    summaries = {name: judge.summary(part) for name, part in parts.items()}
    return {
        "figures": [dataclasses.asdict(f) for f in found],
        "summary": {name: dataclasses.asdict(s) for name, s in summaries.items() if s},
        "speed": [dataclasses.asdict(t) for t in timed],
    }


def tell(message: str) -> None:
    """Say how far it is."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
