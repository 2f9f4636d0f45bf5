"""History from a source: what is missing is told, and a real Prometheus gives a day of a hundred targets whole."""

import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from models.series import Series
from models.signals import Cause, Signal, Unknown
from predictor.errors import HistoryError
from predictor.ports import Readings
from predictor.replay import asked
from predictor.signals import prometheus, shelf
from predictor.targets import Target
from tests.fakes import cluster_objects, exposition
from tests.servers import prometheus as servers

CHECKOUT = Path(__file__).resolve().parents[3]
MANY = 100
NOW = math.floor(time.clock_gettime(time.CLOCK_REALTIME)) // 60 * 60 - 120
SPAN = asked.Span(since=NOW - 86400.0, until=float(NOW), step=60.0)
TARGET = cluster_objects.target("chat", namespace="llm")


class Keeps:
    """A source that keeps what it is given."""

    def __init__(self, kept: Mapping[Signal, Series | Unknown]) -> None:
        self.kept = kept

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Readings]:
        raise NotImplementedError

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        del since, until, step
        return {target.key: self.kept.get(signal, Unknown(Cause.EMPTY, "no series")) for target in targets}


def of_a_day(*, first: int = 0, last: int = 1440, hole: slice = slice(0, 0)) -> Series:
    values = np.full(1441, np.nan)
    values[first : last + 1] = 5.0
    values[hole] = np.nan
    return Series(SPAN.since, 60.0, values)


def notes(series: Series) -> list[str]:
    recorded = asked.read(Keeps({Signal.IN_FLIGHT: series}), [TARGET], SPAN)
    return [note.what for note in recorded.notes if note.where.endswith("in_flight")]


def test_a_whole_day_needs_no_note() -> None:
    assert notes(of_a_day()) == []


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (of_a_day(first=720), "the first 12.0 h are missing: is the retention shorter?"),
        (of_a_day(last=1380), "the last 60 min are missing"),
        (of_a_day(hole=slice(100, 130)), "30 of 1441 points between the first and the last are unknown"),
    ],
)
def test_what_lacks_of_the_span_is_told(series: Series, words: str) -> None:
    (told,) = notes(series)
    assert words in told


def test_a_target_without_a_history_among_others_is_told_on_the_terminal_too() -> None:
    class OfOne(Keeps):
        def history(
            self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
        ) -> Mapping[str, Series | Unknown]:
            given = super().history(targets, signal, since=since, until=until, step=step)
            return {**given, other.key: Unknown(Cause.EMPTY, "no series")}

    other = cluster_objects.target("misspelt", namespace="llm")
    recorded = asked.read(OfOne({Signal.IN_FLIGHT: of_a_day()}), [TARGET, other], SPAN)
    (told,) = [note for note in recorded.notes if note.doubtful]
    assert (told.where, told.what.split(";")[0]) == (other.key, "left out: no history of arrivals or in_flight")


def test_the_series_begins_with_its_first_known_point() -> None:
    recorded = asked.read(Keeps({Signal.IN_FLIGHT: of_a_day(first=720)}), [TARGET], SPAN)
    assert recorded.series["llm/chat", Signal.IN_FLIGHT].start == SPAN.since + 720 * 60


def test_a_signal_without_history_is_noted_with_its_cause_and_none_at_all_is_an_error() -> None:
    recorded = asked.read(Keeps({Signal.IN_FLIGHT: of_a_day()}), [TARGET], SPAN)
    assert any("llm/chat: arrivals" in note.where and "empty" in note.what for note in recorded.notes)
    with pytest.raises(HistoryError, match="no history of any target"):
        asked.read(Keeps({Signal.DURATION_MEAN: of_a_day()}), [TARGET], SPAN)


def day_of_many() -> str:
    """In flight = number of the target + minute of the day, of a hundred targets."""
    lines = []
    for number in range(MANY):
        labels = f'{{namespace="ns-{number}",pod="pod-0",model_name="{exposition.MODEL}",engine="0"}}'
        lines += [
            f"vllm:num_requests_running{labels} {number + minute} {NOW - 86400 + 60 * minute}" for minute in range(1441)
        ]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.PrometheusServer]:
    try:
        made = servers.PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    except servers.UnavailableError as error:
        pytest.skip(str(error))
    made.backfill(day_of_many())
    with made:
        yield made


def test_a_day_of_a_hundred_targets_comes_whole_from_a_real_prometheus(server: servers.PrometheusServer) -> None:
    settings = prometheus.PrometheusSettings(url=server.url, scrape_interval=60.0, timeout=60.0)
    source = prometheus.PrometheusSource(settings, shelf.load())
    targets = [
        cluster_objects.target("chat", namespace=f"ns-{number}", engine="vllm", model=exposition.MODEL)
        for number in range(MANY)
    ]
    try:
        recorded = asked.read(source, targets, SPAN)
    finally:
        source.close()
    for number, target in enumerate(targets):
        series = recorded.series[target.key, Signal.IN_FLIGHT]
        assert (series.start, series.end, series.step) == (SPAN.since, SPAN.until, 60.0)
        np.testing.assert_array_equal(series.values, number + np.arange(1441.0))
    assert not [note for note in recorded.notes if note.where.endswith(": in_flight")]


CONFIGURATION = """
source:
  prometheus: {{url: "{url}", scrape_interval: 60s}}
targets:
  - {{namespace: ns-3, name: chat, engine: vllm, model: {model}, capacity: {{knee: 40}}}}
"""


def test_a_configuration_is_all_that_a_user_needs(server: servers.PrometheusServer, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(CONFIGURATION.format(url=server.url, model=exposition.MODEL))
    asking = ["--since", "36h", "--config", "own.yaml", "--step", "1m", "--every", "10m", "--no-slow"]
    done = subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, "-m", "predictor.cli", "backtest", *asking],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Time goes on while this runs: what was written as a day ago is a little more by now.
    assert re.search(r"whether a floor pays: only 1[78]\.\d h could be judged", done.stdout)
    page = (tmp_path / "backtest" / "report.html").read_text()
    assert re.search(r"asked for 36\.0 h, the first 1[12]\.\d h are missing: is the retention shorter\?", page)
    assert "ns-3/chat: arrivals" in page
