"""A back-test of eight generated days in a real Prometheus, and how long a day of a hundred targets takes to load.

`python -m benchmarks.warmstart --out DIR` writes the report and prints the time.
"""

import argparse
import dataclasses
import os
import sys
import tempfile
import time
from pathlib import Path

import yaml

from benchmarks.warmstart import generated
from models.signals import Signal
from predictor import wiring
from predictor.replay import asked, command
from predictor.settings import convert, loading
from predictor.settings.root import Settings
from tests.servers import prometheus as servers

TARGETS = 100
DAYS = 8
HOLE = range(5000, 5090)  # minutes in which nothing was scraped


def main() -> int:
    """Load, measure, report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warmstart", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("backtest"), help="folder of the report")
    parser.add_argument("--no-load", action="store_true", help="leave out the hundred targets")
    given = parser.parse_args()
    if not given.no_load:
        found = loaded()
        print(
            f"a day at 1 min for {TARGETS} targets, arrivals, in flight and durations: {found.seconds:.1f} s, with"
            f" {found.own:.1f} s of our own CPU and {found.server:.1f} s of the Prometheus's;"
            f" {found.whole} of {2 * TARGETS} series whole"
        )
    with tempfile.TemporaryDirectory() as folder:
        end = _now()
        with _server(Path(folder), generated.past(1, days=DAYS, end=end, hole=HOLE)) as server:
            settings = _settings(Path(folder), server.url, targets=1)
            arguments = ("--since", f"{DAYS}d", "--config", "floorcast.yaml", "--warm-up", "5m")
            wanted = command.Asked(
                since=f"{DAYS}d", settings=settings, warm_up="5m", out=given.out, arguments=arguments
            )
            return command.run(wanted)


@dataclasses.dataclass(frozen=True)
class Loaded:
    """How a day of a hundred targets came.

    Attributes:
        seconds: it took.
        own: CPU seconds of this process.
        server: CPU seconds of the Prometheus.
        whole: series without a missing point.
    """

    seconds: float
    own: float
    server: float
    whole: int


def loaded() -> Loaded:
    """Loads it."""
    with tempfile.TemporaryDirectory() as folder:
        end = _now()
        with _server(Path(folder), generated.past(TARGETS, days=1, end=end)) as server:
            settings = _settings(Path(folder), server.url, targets=TARGETS)
            source = wiring.prometheus(settings)
            start, own, its = time.monotonic(), time.process_time(), _busy(server.pid)
            span = asked.Span(end - 86400.0 + 3600, float(end), 60.0)
            recorded = asked.read(source, convert.targets(settings), span)
            seconds, own, its = time.monotonic() - start, time.process_time() - own, _busy(server.pid) - its
            source.close()
    known = [one for (_, signal), one in recorded.series.items() if signal is not Signal.DURATION_MEAN]
    return Loaded(seconds, own, its, sum(one.known >= len(one) - 1 and one.end == end for one in known))


def _busy(pid: int) -> float:
    """CPU seconds of a process so far, in and out of the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _server(folder: Path, past: str) -> servers.PrometheusServer:
    server = servers.PrometheusServer(folder / "prometheus")
    server.backfill(past)
    return server


def _settings(folder: Path, url: str, *, targets: int) -> Settings:
    names = [{"namespace": "llm", "name": f"chat-{n}", "model": f"{generated.MODEL}-{n}"} for n in range(targets)]
    document = {
        "source": {"prometheus": {"url": url, "scrape_interval": "1m"}},
        "history": {"step": "1m"},
        "forecast": {"zone": "Europe/Berlin"},
        "defaults": {"capacity": {"concurrency": 12}},
        "targets": names,
    }
    path = folder / "floorcast.yaml"
    path.write_text(yaml.safe_dump(document))
    return loading.load(path)


def _now() -> int:
    return int(time.clock_gettime(time.CLOCK_REALTIME)) // 60 * 60 - 60


if __name__ == "__main__":
    sys.exit(main())
