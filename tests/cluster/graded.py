"""What the running service says of its own forecasts, beside what `floorcast backtest` says of the same span.

The back-test reads the Prometheus that the service read, after the fact. It is given the service's configuration, the
distance between two scored forecasts, and the warm-ups that the service went by; of each origin those rows count that
have the horizon the service had at that moment.
"""

import dataclasses
import subprocess
import threading
from types import TracebackType
from typing import Any, Self

import pandas as pd
import requests

from predictor import grading, wiring
from predictor.settings import loading
from tests.cluster.floorcast import COMMAND, Floorcast

SIGNALS = ("arrivals", "in_flight")
ALIKE = 1.3  # times by which two readings of the same Poisson load half a step apart differ at times: of 8 in flight, 2


@dataclasses.dataclass(frozen=True)
class Grades:
    """Of one signal.

    Attributes:
        scored: forecasts scored.
        missed: probability, as metrics write it -> forecasts that the load exceeded.
    """

    scored: int
    missed: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Found:
    """The same by the back-test.

    Attributes:
        scored: forecasts scored.
        least: probability, as metrics write it -> forecasts that the load exceeded whichever reading of it one takes.
        most: likewise, forecasts that it exceeded or nearly reached.
    """

    scored: int
    least: dict[str, int]
    most: dict[str, int]

    def apart(self, ours: Grades) -> int:
        """By how many forecasts the service's misses lie outside these, where they do most."""
        return max(max(self.least[q] - missed, missed - self.most[q]) for q, missed in ours.missed.items())


class Listener:
    """Writes down over which horizon the service forecasts, from its page once a second; a context manager."""

    def __init__(self, floorcast: Floorcast) -> None:
        self._floorcast = floorcast
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self.horizons: dict[str, dict[float, float]] = {signal: {} for signal in SIGNALS}  # by time of issue, Unix s

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(10)

    def _listen(self) -> None:
        url = self._floorcast.url
        while not self._stop.wait(1):
            try:
                state = requests.get(f"{url}/api/state", timeout=5).json()
            except requests.RequestException:
                continue
            for target in state["targets"].values():
                self._note(target)

    def _note(self, target: dict[str, Any]) -> None:
        for signal, outlooks in ((target["plans"] or {}).get("forecasts") or {}).items():
            raising = outlooks["raising"]
            if "issued_at" in raising:
                self.horizons[signal][raising["issued_at"]] = raising["horizon"]

    def graded(self, signal: str, *, every: float) -> dict[float, float]:
        """Time of issue -> horizon of those that the service scores: the first of each stretch of `every` seconds.

        A slow tick that is late leaves out a point of the history, and the next one is scored. Of the stretch in which
        the service starts none is, unless it stands at its beginning.
        """
        firsts: dict[float, float] = {}
        known = dict(self.horizons[signal])
        for at in sorted(known):
            firsts.setdefault(at // every, at)
        begin = min(firsts)
        return {at: known[at] for number, at in firsts.items() if number > begin or at == number * every}

    def due(self, signal: str, *, every: float, step: float) -> int:
        """How many of those can be scored by now.

        The newest point of the history still gathers readings: the horizon has to end before it.
        """
        whole = max(dict(self.horizons[signal])) - step
        return sum(at + horizon <= whole for at, horizon in self.graded(signal, every=every).items())


def every(floorcast: Floorcast) -> float:
    """Seconds between two forecasts that are scored."""
    return min(grading.APART, grading.INTERVALS * floorcast.tuning.slow_s)


def told(floorcast: Floorcast, signal: str) -> Grades:
    """What the service's metrics say."""
    from prometheus_client.parser import text_string_to_metric_families as families  # noqa: PLC0415

    scored, coverage = 0, {}
    for family in families(floorcast.page("/metrics")):
        for sample in family.samples:
            if sample.labels.get("signal") == signal and sample.name == "floorcast_forecast_scored_total":
                scored = int(sample.value)
            if sample.labels.get("signal") == signal and sample.name == "floorcast_forecast_coverage_ratio":
                coverage[sample.labels["quantile"]] = sample.value
    return Grades(scored, {q: round(scored * (1 - share)) for q, share in coverage.items()})


def replayed(floorcast: Floorcast, heard: Listener, *, step: float) -> pd.DataFrame:
    """The rows of the back-test: an origin where the service scores one, each with the horizon it had there.

    Args:
        floorcast: the service.
        heard: from its start on.
        step: of its history, seconds.
    """
    folder = floorcast.served.folder
    pace = wiring.pace(loading.load(folder / "floorcast.yaml"))
    scored = {signal: heard.graded(signal, every=every(floorcast)) for signal in SIGNALS}
    ahead = {horizon for by_time in scored.values() for horizon in by_time.values()}
    warm_ups = ",".join(f"{horizon - pace.slow - pace.signal_age:.3f}s" for horizon in sorted(ahead))
    asked = [f"--config={folder / 'floorcast.yaml'}", "--since=2h", f"--every={step:g}s", f"--warm-up={warm_ups}"]
    command = [str(COMMAND), "backtest", *asked, "--no-slow", f"--out={folder / 'backtest'}"]
    subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)  # noqa: S603  (our own)
    rows = pd.read_csv(folder / "backtest" / "backtest.csv")
    rows["at"] = pd.to_datetime(rows["issued_at"]).map(pd.Timestamp.timestamp)
    had = [scored[signal].get(at) for signal, at in zip(rows["signal"], rows["at"], strict=True)]
    return rows[(rows["horizon_s"] - pd.Series(had, index=rows.index, dtype=float)).abs() < 1e-2]


def found(rows: pd.DataFrame, signal: str, *, scored: int) -> Found:
    """What the back-test says of the first `scored` of these origins."""
    mine = rows[(rows["signal"] == signal) & rows["came"].notna()].sort_values("at").head(scored)
    bounds = {f"{float(name[1:]) / 100:g}": mine[name] for name in mine.columns if name.startswith("p")}
    return Found(
        len(mine),
        least={q: int((mine["came"] > bound * ALIKE).sum()) for q, bound in bounds.items()},
        most={q: int((mine["came"] > bound / ALIKE).sum()) for q, bound in bounds.items()},
    )
