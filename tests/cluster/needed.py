"""A Prometheus that knows how many requests run and that none wait: as many as a test says each target needs."""

import json
import time
from collections.abc import Collection

from tests.fakes.prometheus_api import Answer, PrometheusApi, Request, refusal, result, row

CONCURRENCY = 6


class Needed:
    """So many requests in flight that each target needs `replicas` of CONCURRENCY each; a context manager.

    Args:
        namespace: of the targets.
        names: what their engines call the model; the targets' own names by convention.

    Attributes:
        replicas: what each needs.
        silent: refuses every query.
    """

    def __init__(self, namespace: str, names: Collection[str]) -> None:
        self._namespace = namespace
        self._names = tuple(names)
        self.replicas = 3
        self.silent = False
        self.api = PrometheusApi(self._answer)

    def _answer(self, request: Request) -> Answer:
        now = time.clock_gettime(time.CLOCK_REALTIME)
        if self.silent:
            return refusal(503, "unavailable", "told to be silent")
        if request.query == "time()":
            scalar = {"resultType": "scalar", "result": [now, str(now)]}
            return Answer(json.dumps({"status": "success", "data": scalar}).encode())
        known = {"num_requests_running": CONCURRENCY * self.replicas, "num_requests_waiting": 0}
        found = [value for name, value in known.items() if name in request.query]
        if not found or request.path.endswith("query_range"):
            return result([], kind="matrix" if request.path.endswith("query_range") else "vector")
        value = now - 1 if "timestamp(" in request.query else found[0]
        return result([row(value, namespace=self._namespace, model_name=name) for name in self._names])
