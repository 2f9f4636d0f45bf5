"""A model server that runs in the rig: Deployment, HPA, simulated engines under load, a Prometheus that scrapes."""

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import requests

from models.fleet import entry
from tests.cluster import fleet, load, manifests, plane
from tests.servers import addresses, processes, prometheus, waiting

# Backfilled series have no end: for the usual five minutes the last load of the past's pods would count as present,
# beside that of the pods that run.
PAST_SEEN_S = 20


class Serving:
    """One workload with everything around it; a context manager, from the main thread.

    On entry the Deployment and the HPA are applied (pods become Ready after their warm-up; see `await_ready`), the
    engines run under `season` and Prometheus scrapes them. On exit all of it goes, the namespace included.

    Args:
        control_plane: where it runs.
        season: the load; `load` changes it later.
        history: OpenMetrics text of the past, given to Prometheus before it starts.
        sizes: what one replica can do.

    Attributes:
        prometheus: stop, start, pause or resume it.
        engines: the process behind the pods; killing it is a fleet whose pages all refuse connections.
    """

    def __init__(
        self,
        control_plane: plane.ControlPlane,
        workload: manifests.Workload,
        season: load.Season,
        *,
        history: str | None = None,
        sizes: fleet.Sizes | None = None,
    ) -> None:
        self.plane = control_plane
        self.workload = workload
        self.folder = control_plane.state / "serving" / workload.namespace
        self.folder.mkdir(parents=True)
        self._season = season.write(self.folder / "load.yaml")
        self._exits = ExitStack()
        self._listing = self._exits.enter_context(addresses.port()).number
        self.engines = self._engines(sizes or fleet.Sizes())
        self.prometheus = prometheus.PrometheusServer(
            self.folder / "prometheus",
            [prometheus.listed_at("engines", f"{self._listing_url}/targets")],
            look_back_s=PAST_SEEN_S if history else 300,
        )
        self._exits.callback(self.prometheus.close)
        if history is not None:
            self.prometheus.backfill(history)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def load(self, season: load.Season) -> None:
        """Change the load from now on."""
        season.write(self._season)

    def replicas(self) -> int:
        """Return what the Deployment asks for."""
        return int(self._get("deployment")["spec"]["replicas"])

    def ready(self) -> int:
        """Return how many pods are Ready."""
        return int(self._get("deployment")["status"].get("readyReplicas", 0))

    def hpa(self) -> dict[str, Any]:
        """Return the HPA object."""
        return self._get("hpa")

    def await_ready(self, count: int, *, within_s: float = 60.0) -> None:
        """Wait until at least `count` pods are Ready."""

        def enough() -> bool:
            self.check()
            return self.ready() >= count

        waiting.until(enough, within_s=within_s, what=f"{count} pods Ready", every_s=0.5)

    def await_scrape(self, count: int, *, within_s: float = 60.0) -> None:
        """Wait until Prometheus has scraped `count` pods; it takes up a new list of targets every 5 s."""
        query = f'count(up{{job="engines",namespace="{self.workload.namespace}"}} == 1) == {count}'

        def scraped() -> bool:
            self.check()
            return bool(self.prometheus.query(query))

        waiting.until(scraped, within_s=within_s, what=f"{count} pods scraped")

    def scorecard(self) -> dict[str, Any]:
        """Return how the load was served so far: requests, missed_ttft, attainment and so on."""
        card: dict[str, Any] = requests.get(f"{self._listing_url}/scorecard", timeout=5).json()
        return card

    def check(self) -> None:
        """Raise DiedError if the engines ended by themselves."""
        self.engines.check()

    def _start(self) -> None:
        call, workload = self.plane.kubectl, self.workload
        call.apply([manifests.namespace(workload), manifests.deployment(workload)])
        self._exits.callback(self._delete)
        entry.run()  # compiled here, once, so that the engines find it and answer at once
        self._exits.enter_context(self.engines)
        waiting.until(self._listed, within_s=180, what="the engines answer", every_s=0.5)
        self.prometheus.start()
        where = {"prometheus": self.prometheus.url, "query": manifests.query(workload)}
        self.plane.metrics.set(workload.namespace, manifests.METRIC, **where)
        call.apply([manifests.autoscaler(workload, prometheus=self.prometheus.url)])

    def _listed(self) -> bool:
        self.check()
        try:
            return requests.get(f"{self._listing_url}/targets", timeout=5).ok
        except requests.ConnectionError:
            return False

    def _delete(self) -> None:
        self.plane.kubectl("delete", "namespace", self.workload.namespace, "--wait=false")

    def _engines(self, sizes: fleet.Sizes) -> processes.Child:
        where = {"deployment": self.workload.deployment, "listing_port": self._listing}
        command = fleet.command(self.plane.kubeconfig, self._season, **where, sizes=sizes)
        return processes.Child("engines", command, log=self.folder / "engines.log")

    @property
    def _listing_url(self) -> str:
        return f"http://127.0.0.1:{self._listing}"

    def _get(self, kind: str) -> dict[str, Any]:
        return self.plane.kubectl.json("get", kind, self.workload.name, f"--namespace={self.workload.namespace}")
