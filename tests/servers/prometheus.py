"""A real Prometheus on a free port of 127.0.0.1, for tests of everything that reads one; needs no Kubernetes.

The programs come from Debian's package, unpacked into the cache: nothing is installed and no service is started. Its
build lacks `kubernetes_sd_configs`; the cluster rig lists its pods over HTTP instead.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
import yaml

from tests.servers import addresses, cache, processes, waiting

WANTED = "prometheus=2.42*"  # Debian 12's
ANY = "prometheus"  # where another release has another version


class UnavailableError(RuntimeError):
    """Neither the cache nor the package source has Prometheus."""


@dataclass(frozen=True)
class Programs:
    """The server and its tool."""

    prometheus: Path
    promtool: Path


def ensure() -> Programs:
    """Return the programs, downloaded first if the cache lacks them (20 MB, seconds).

    The environment variable FLOORCAST_PROMETHEUS names a folder with other ones.

    Raises:
        UnavailableError: apt cannot download the package.
    """
    own = os.environ.get("FLOORCAST_PROMETHEUS")
    folder = Path(own) if own else cache.entry("prometheus-debian", _download) / "usr" / "bin"
    return Programs(folder / "prometheus", folder / "promtool")


@dataclass(frozen=True)
class Job:
    """One scrape job: where its targets stand (`discovery`, in Prometheus's own words) and how often to ask them."""

    name: str
    discovery: Mapping[str, Any]
    interval_s: float = 2.0

    def config(self) -> dict[str, Any]:
        """Render it for the configuration file."""
        milliseconds = f"{round(self.interval_s * 1000)}ms"
        timing = {"scrape_interval": milliseconds, "scrape_timeout": milliseconds}
        return {"job_name": self.name, **timing, **self.discovery}


def listed_at(name: str, url: str, *, interval_s: float = 2.0) -> Job:
    """Scrape what the HTTP service discovery at `url` lists; asked as often as the targets themselves."""
    refresh = f"{round(interval_s * 1000)}ms"
    return Job(name, {"http_sd_configs": [{"url": url, "refresh_interval": refresh}]}, interval_s)


def at(name: str, *targets: str, labels: Mapping[str, str] | None = None, interval_s: float = 2.0) -> Job:
    """Scrape the fixed `host:port` targets and give their series `labels`."""
    return Job(name, {"static_configs": [{"targets": list(targets), "labels": dict(labels or {})}]}, interval_s)


class PrometheusServer:
    """A server on its own data folder and port; as a context manager it is ready on entry and gone on exit.

    Backfill before the start; `stop`, `start`, `pause` and `resume` take it away in the middle of a test and bring it
    back with its data on the same port. Data and log stay in `folder`, which the caller provides and removes.
    `look_back_s` is how long a series without an end counts as present; 300 is Prometheus's default.
    """

    def __init__(self, folder: Path, jobs: Sequence[Job] = (), *, look_back_s: int = 300) -> None:
        self.folder = folder
        self._look_back_s = look_back_s
        self._programs = ensure()
        self._port = addresses.port()
        self._data = folder / "data"
        self._config = folder / "prometheus.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        self._write(jobs)
        self._child = processes.Child("prometheus", self._command(), log=folder / "prometheus.log")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Base address, without a slash at the end."""
        return f"http://127.0.0.1:{self._port.number}"

    @property
    def running(self) -> bool:
        """Whether its process exists."""
        return self._child.running

    @property
    def pid(self) -> int:
        """Its process id; DiedError if it does not run."""
        return self._child.pid

    def start(self) -> None:
        """Start, or start again, and wait until it answers queries (replaying its log first)."""
        self._child.start()
        waiting.until(self._ready, within_s=60, what="Prometheus ready")

    def stop(self) -> None:
        """End it; connections are refused until `start`."""
        self._child.stop()

    def close(self) -> None:
        """End it for good and give its port back."""
        self._child.stop()
        self._port.close()

    def pause(self) -> None:
        """Freeze it: requests hang instead of being refused."""
        self._child.pause()

    def resume(self) -> None:
        """End a pause."""
        self._child.resume()

    def scrape(self, jobs: Sequence[Job]) -> None:
        """Replace the scrape jobs of a running server."""
        before = self._last_reload()
        self._write(jobs)
        self._child.hang_up()
        waiting.until(lambda: self._last_reload() > before, within_s=30, what="Prometheus reloads its configuration")

    def backfill(self, openmetrics: str) -> None:
        """Write samples of the past as blocks; only before the start.

        Args:
            openmetrics: OpenMetrics text with a timestamp in seconds on each sample, none in the future, `# EOF` last.

        Raises:
            RuntimeError: it runs already.
            subprocess.CalledProcessError: promtool refuses the text.
        """
        if self.running:
            raise RuntimeError("backfill before the start: a running server would not see the blocks at once")
        text = self.folder / "backfill.txt"
        text.write_text(openmetrics)
        command = [str(self._programs.promtool), "tsdb", "create-blocks-from", "openmetrics"]
        subprocess.run([*command, str(text), str(self._data)], check=True, capture_output=True)  # noqa: S603  (our own)

    def query(self, promql: str) -> list[dict[str, Any]]:
        """Return the result of an instant query as Prometheus words it (`metric`, `value`).

        Raises:
            requests.RequestException: it is down or refuses the query.
        """
        answer = requests.get(f"{self.url}/api/v1/query", params={"query": promql}, timeout=10)
        answer.raise_for_status()
        result: list[dict[str, Any]] = answer.json()["data"]["result"]
        return result

    def value(self, promql: str) -> float | None:
        """Return the one number an instant query yields, None if it yields none or several."""
        result = self.query(promql)
        return float(result[0]["value"][1]) if len(result) == 1 else None

    def _write(self, jobs: Sequence[Job]) -> None:
        self._config.write_text(yaml.safe_dump({"scrape_configs": [job.config() for job in jobs]}))

    def _ready(self) -> bool:
        self._child.check()
        try:
            return requests.get(f"{self.url}/-/ready", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    def _last_reload(self) -> float:
        page = requests.get(f"{self.url}/metrics", timeout=10).text
        lines = [line for line in page.splitlines() if line.startswith("prometheus_config_last_reload_success_time")]
        return float(lines[-1].split()[-1])

    def _command(self) -> list[str]:
        return [
            str(self._programs.prometheus),
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self._data}",
            "--storage.tsdb.retention.time=10y",  # the default of 15 days would drop older backfill
            f"--query.lookback-delta={self._look_back_s}s",
            f"--web.listen-address=127.0.0.1:{self._port.number}",
            "--log.level=warn",
        ]


def _download(folder: Path) -> None:
    if not any(_apt("download", wanted, folder) for wanted in (WANTED, ANY)):
        _apt("update", None, folder)
        if not any(_apt("download", wanted, folder) for wanted in (WANTED, ANY)):
            raise UnavailableError("apt-get cannot download prometheus; set FLOORCAST_PROMETHEUS to a folder with it")
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)  # noqa: S603, S607  (our own file)
    package.unlink()


def _apt(action: str, wanted: str | None, folder: Path) -> bool:
    command = ["apt-get", "--quiet=2", action, *([wanted] if wanted else [])]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode == 0  # noqa: S603
