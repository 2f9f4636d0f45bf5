"""A Prometheus that knows how many requests run, and that none wait: enough to keep as many replicas busy as told."""

import json
import time
from collections.abc import Iterable

from tests.fakes.prometheus_api import Answer, PrometheusApi, Request, refusal, result, row

CONCURRENCY = 6


class Needed:
    """So many requests in flight that each target needs `replicas`, the last of them half full.

    Args:
        models: namespace of a target, and what its engines call the model.

    Attributes:
        api: the server, a context manager.
        replicas: what each needs.
        others: what single models need instead.
        silent: refuses every query.
    """

    def __init__(self, models: Iterable[tuple[str, str]]) -> None:
        self._models = tuple(models)
        self.replicas = 3
        self.others: dict[str, int] = {}
        self.silent = False
        self.api = PrometheusApi(self._answer)

    def _answer(self, request: Request) -> Answer:
        now = time.clock_gettime(time.CLOCK_REALTIME)
        if self.silent:
            return refusal(503, "unavailable", "told to be silent")
        if request.query == "time()":
            scalar = {"resultType": "scalar", "result": [now, str(now)]}
            return Answer(json.dumps({"status": "success", "data": scalar}).encode())
        signal = next((one for one in ("num_requests_running", "num_requests_waiting") if one in request.query), "")
        if not signal or request.path.endswith("query_range"):
            return result([], kind="matrix" if request.path.endswith("query_range") else "vector")
        return result([self._row(*model, signal, sampled="timestamp(" in request.query) for model in self._models])

    def _row(self, namespace: str, model: str, signal: str, *, sampled: bool) -> dict[str, object]:
        """How many there are, or when that was seen."""
        running = CONCURRENCY * (self.others.get(model, self.replicas) - 0.5)
        value = running if signal == "num_requests_running" else 0
        seen = time.clock_gettime(time.CLOCK_REALTIME) - 1
        return row(seen if sampled else value, namespace=namespace, model_name=model)
