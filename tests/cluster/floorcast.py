"""`floorcast run` as a process of its own, with the ServiceAccount and permissions that it needs and no others."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import requests
import yaml

from models.fleet import profiles
from predictor.cluster.permissions import Purpose
from tests.cluster import accounts, serving
from tests.servers import processes, waiting

ACCOUNT = "floorcast"
COMMAND = Path(sys.executable).with_name("floorcast")
OBSERVING = (Purpose.OBSERVE,)
CONTROLLING = (Purpose.OBSERVE, Purpose.EVENTS, Purpose.WRITE_HPA, Purpose.WRITE_KEDA, Purpose.WRITE_SCALE)


@dataclasses.dataclass(frozen=True)
class Tuning:
    """What differs from the defaults: everything is faster, since a rig's pod is ready in 20 s."""

    mode: str = "control"
    season_s: float = 200.0
    slow_s: float = 5.0
    fast_s: float = 2.5
    hold_s: float = 15.0
    step_period_s: float = 5.0
    concurrency: float = 6.0
    warm_up_s: float = 25.0
    raise_quantile: float = 0.95  # a rise every 200 s is within one horizon in six: at .975 the floor would never fall


class Service:
    """`floorcast run` as a process; a context manager.

    Args:
        folder: for its configuration and its log.
        settings: the configuration.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._folder = folder
        self._file = folder / "floorcast.yaml"
        self._file.write_text(yaml.safe_dump(settings))
        command = [str(COMMAND), "run", f"--config={self._file}"]
        self.process = processes.Child("floorcast", command, log=folder / "floorcast.log")

    def __enter__(self) -> Self:
        self.process.start()
        self.await_answer("/healthz")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    @property
    def url(self) -> str:
        """Where metrics and health are; the port is any free one and stands in the log."""
        url: str = self.said("started")["url"]
        return url

    def said(self, event: str) -> dict[str, Any]:
        """The fields of the last such line of the log.

        Raises:
            LookupError: it has not said so yet.
        """
        lines = [json.loads(line) for line in self.log() if line.startswith("{") and f'"{event}"' in line]
        found = [line for line in lines if line["event"] == event]
        if not found:
            raise LookupError(f"{event!r} does not stand in the log yet")
        return found[-1]

    def log(self) -> list[str]:
        """The lines logged so far."""
        path = self._folder / "floorcast.log"
        return path.read_text().splitlines() if path.exists() else []

    def page(self, path: str) -> str:
        """What one of its pages says."""
        return requests.get(f"{self.url}{path}", timeout=10).text

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of one series of /metrics, None where there is none with these labels."""
        from prometheus_client.parser import text_string_to_metric_families as families  # noqa: PLC0415

        for family in families(self.page("/metrics")):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return float(sample.value)
        return None

    def await_answer(self, path: str, *, within_s: float = 120.0) -> None:
        """Waits until a page answers 200."""

        def answers() -> bool:
            self.process.check()
            try:
                return requests.get(f"{self.url}{path}", timeout=5).ok
            except (LookupError, requests.ConnectionError):
                return False

        waiting.until(answers, within_s=within_s, what=f"200 from {path}", every_s=0.25)

    def release(self) -> str:
        """What `floorcast release` prints."""
        command = [str(COMMAND), "release", f"--config={self._file}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603  (our own)
        return done.stdout


class Floorcast(Service):
    """The service beside a `Serving`."""

    def __init__(self, served: serving.Serving, tuning: Tuning | None = None) -> None:
        self.served = served
        self.tuning = tuning or Tuning()
        self._namespace = served.workload.namespace
        super().__init__(served.folder, self._settings())

    @property
    def user(self) -> str:
        """What the API server calls it."""
        return f"system:serviceaccount:{self._namespace}:{ACCOUNT}"

    def _settings(self) -> dict[str, Any]:
        tuning, workload = self.tuning, self.served.workload
        purposes = CONTROLLING if tuning.mode == "control" else OBSERVING
        access = accounts.login(self.served.plane, self._namespace, ACCOUNT, purposes)
        return {
            "mode": tuning.mode,
            "source": {
                "kind": "prometheus",
                "prometheus": {"url": self.served.prometheus.url, "timeout": 2, "scrape_interval": 2},
            },
            "kubernetes": {"kubeconfig": str(access.kubeconfig)},
            "loops": {"slow": tuning.slow_s, "fast": tuning.fast_s},
            "history": {"step": 5, "span": "25h", "carry": 60},
            "forecast": {"seasons": [tuning.season_s], "level_window": 600, "score_window": "24h"},
            "server": {"host": "127.0.0.1", "port": 0},
            "targets": [
                {
                    "namespace": workload.namespace,
                    "name": workload.name,
                    "engine": "vllm",
                    "model": profiles.LLAMA_8B_H100.model,
                    "capacity": {"concurrency": tuning.concurrency},
                    "warm_up": tuning.warm_up_s,
                    "quantiles": {"raise": tuning.raise_quantile},
                    "floor": {"hold": tuning.hold_s, "step_down": 1, "step_period": tuning.step_period_s},
                }
            ],
        }
