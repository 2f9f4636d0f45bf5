"""Workloads that ask by label to be scaled, looked for beside the loops."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from predictor.cluster import client, discovery
from predictor.cluster.errors import ClusterError
from predictor.ports import Refused
from predictor.settings.sections import Discovery
from predictor.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from predictor.settings import discovered

_log = structlog.stdlib.get_logger("floorcast")


ASLEEP = 1.0  # seconds between two looks at whether it has been switched on


class Finding:
    """Looks through the cluster in a thread of its own, which ends when `stop` is set.

    Args:
        api: the API server.
        asked: what is to be looked for, as configured at the moment of the look.
        stop: ends the thread.
        metrics: told of each look.
    """

    def __init__(
        self, api: client.Api, *, asked: Callable[[], Discovery], stop: threading.Event, metrics: Metrics
    ) -> None:
        self._api = api
        self._asked = asked
        self._stop = stop
        self._metrics = metrics
        self._trouble = ""
        self.found: tuple[discovered.Labelled, ...] = ()

    def start(self) -> None:
        """Begins to look."""
        threading.Thread(target=self._run, name="discovery", daemon=True).start()

    def look(self) -> None:
        """Looks once. What cannot be listed leaves what was found before as it is: nobody is given up for that."""
        asked = self._asked()
        if not asked.enabled:
            self.found = ()
            return
        start = time.monotonic()
        refused: list[Refused] = []
        try:
            self.found = discovery.find(self._api, namespaces=asked.namespaces, kinds=asked.kinds)
        except ClusterError as error:
            refused = [Refused(error.reason, str(error))]
        self._metrics.cluster_call("discover", seconds=time.monotonic() - start, refused=refused)
        self._tell(refused[0] if refused else None)

    def _run(self) -> None:
        while True:
            self.look()
            asked = self._asked()
            if self._stop.wait(asked.every if asked.enabled else ASLEEP):
                return

    def _tell(self, refused: Refused | None) -> None:
        before, self._trouble = self._trouble, refused.reason if refused else ""
        if self._trouble == before:
            return
        if refused:
            _log.warning("workloads cannot be looked for", reason=refused.reason, detail=refused.detail)
        else:
            _log.info("workloads can be looked for again")
