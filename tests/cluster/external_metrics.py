"""The external metrics API of the rig: each metric is a PromQL query, asked when the HPA controller asks.

Run as a process of its own, `python -m tests.cluster.external_metrics`. The queries stand in a JSON file,
`{"NAMESPACE/METRIC": {"prometheus": URL, "query": PROMQL}}`, which is read again for each request. A query that fails,
or yields no sample or several, answers an error: the HPA then holds instead of believing in 0.
"""

import argparse
import base64
import json
import math
import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests

from tests.cluster import kubectl
from tests.servers import http

GROUP_VERSION = "external.metrics.k8s.io/v1beta1"
NAMES = ("DNS:rig-external-metrics.kube-system.svc", "DNS:localhost")  # in the server's certificate
_BASE = f"/apis/{GROUP_VERSION}"


class NoValueError(RuntimeError):
    """The metric is unknown or Prometheus has no single number for it."""


class Queries:
    """The file behind the API, from the side of those who fill it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("{}")

    def set(self, namespace: str, metric: str, *, prometheus: str, query: str) -> None:
        """Answer `metric` of `namespace` with a PromQL query to the server at that address."""
        known = json.loads(self.path.read_text())
        known[f"{namespace}/{metric}"] = {"prometheus": prometheus, "query": query}
        unfinished = self.path.with_suffix(".new")
        unfinished.write_text(json.dumps(known, indent=1))
        unfinished.replace(self.path)


class Metrics:
    """The metrics of the file `queries`."""

    def __init__(self, queries: Path) -> None:
        self._queries = queries

    def answer(self, path: str) -> http.Answer:
        """Answer one request of the aggregation layer."""
        parts = path.split("?", maxsplit=1)[0].rstrip("/").removeprefix(_BASE).split("/")
        match parts:
            case [""]:
                return http.Answer(json.dumps(_resources()))
            case ["", "namespaces", namespace, metric]:
                return self._value(namespace, metric)
            case _:
                return _failure(404, f"nothing at {path}")

    def _value(self, namespace: str, metric: str) -> http.Answer:
        try:
            value, at = self._ask(f"{namespace}/{metric}")
        except NoValueError as error:
            return _failure(503, str(error))
        item = {
            "metricName": metric,
            "metricLabels": {},
            "timestamp": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": f"{math.ceil(value * 1000)}m",
        }
        return http.Answer(json.dumps(_object("ExternalMetricValueList", metadata={}, items=[item])))

    def _ask(self, name: str) -> tuple[float, float]:
        """Return value and Unix time."""
        try:
            wanted = json.loads(self._queries.read_text())[name]
            address, query = f"{wanted['prometheus']}/api/v1/query", {"query": wanted["query"]}
            answer = requests.get(address, params=query, timeout=2)
            answer.raise_for_status()
        except KeyError as error:
            raise NoValueError(f"no metric {name}") from error
        except requests.RequestException as error:
            raise NoValueError(f"{name}: {error}") from error
        result = answer.json()["data"]["result"]
        if len(result) != 1 or not math.isfinite(float(result[0]["value"][1])):
            raise NoValueError(f"{name}: not one finite sample but {result}")
        return float(result[0]["value"][1]), float(result[0]["value"][0])


def objects(
    *, port: int, authority: Path, namespace: str = "kube-system", name: str = "rig-external-metrics"
) -> list[dict[str, Any]]:
    """Return what registers a server at localhost:`port`, whose certificate `authority` signed, with the API server.

    The certificate has to name `name`.`namespace`.svc. A cluster has one such server: the last registered counts.
    """
    group, version = GROUP_VERSION.split("/")
    place = {"namespace": namespace, "name": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": place,
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{group}"},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {**place, "port": port},
                "caBundle": base64.b64encode(authority.read_bytes()).decode(),
            },
        },
    ]


def available(call: kubectl.Kubectl) -> bool:
    """Whether the API server reaches the registered server."""
    group, version = GROUP_VERSION.split("/")
    status = call.json("get", "apiservice", f"{version}.{group}").get("status", {})
    return any(one["type"] == "Available" and one["status"] == "True" for one in status.get("conditions", []))


def _resources() -> dict[str, Any]:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": []}


def _object(kind: str, **content: object) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": GROUP_VERSION, **content}


def _failure(code: int, message: str) -> http.Answer:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    return http.Answer(json.dumps(status), code)


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    asked = parser.parse_args()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(asked.certificate, asked.key)
    with http.Server("127.0.0.1", asked.port, Metrics(asked.queries).answer, tls=tls):
        threading.Event().wait()


if __name__ == "__main__":
    main()
