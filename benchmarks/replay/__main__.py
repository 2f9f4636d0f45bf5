"""python -m benchmarks.replay PROFILE REQUESTS.csv [--json]: what one replica makes of a list of requests.

PROFILE is a name (see --help) or a JSON file with the fields of models.fleet.profiles.Profile, `law` being an
object with a, w, d, b, c, q, overhead and alpha0. REQUESTS has the columns arrival_s (or queued_s), prompt_tokens and
output_tokens, and may be gzipped.
"""

import argparse
import dataclasses
import gzip
import json
import sys
from pathlib import Path

from models.fleet import profiles, workload
from models.fleet.replay import Figures, replay
from models.fleet.requests import Requests
from predictor.errors import FloorcastError
from predictor.replay import profilefile

COUNTS = ("requests", "finished", "peak_running", "peak_waiting", "preemptions")


def requests_of(path: Path) -> Requests:
    """The requests in a file."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    header, _, body = text.partition("\n")
    return workload.read_requests(header.replace("queued_s", "arrival_s") + "\n" + body)


def table(figures: Figures) -> str:
    """One line a figure, with its unit."""
    lines = []
    for name, value in dataclasses.asdict(figures).items():
        lines.append(f"{name:14s} {value:12d}" if name in COUNTS else f"{name:14s} {value:12.4f} s")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Exit code 0, or 2 when the profile or the file cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replay",
        description="What one replica makes of a list of requests.",
        epilog=f"Profiles: {', '.join(profiles.PROFILES)}; or a JSON file.",
    )
    parser.add_argument("profile")
    parser.add_argument("requests", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        figures = replay(profilefile.read(options.profile), requests_of(options.requests))
    except (FloorcastError, OSError, ValueError) as error:
        print(f"cannot replay: {error}", file=sys.stderr)
        return 2
    print(json.dumps(dataclasses.asdict(figures)) if options.json else table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
