"""Fixtures of the rig. Every test of this folder carries the marker `cluster`.

`cluster`  one control plane for the whole session (10 s; builds first what the cache lacks)
`programs` its programs are built, for tests that start a control plane of their own
`kubectl`  kubectl as its administrator
`api`      the Python client as its administrator
`audit`    what was asked of the API server, by whom
`namespace`  an empty namespace for this test
`deploy`   puts a Deployment there, without engines or HPA
`keda`     KEDA's operator and adapter, from here to the end of the session (a first build takes ten minutes)
`serve`    starts a model server under load in a namespace of its own, with its own Prometheus

A test that writes through a program under test gives it `cluster.kubeconfig_for(cluster.service_account_token(...))`.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
from kubernetes import client

from tests.cluster import audit as audit_log
from tests.cluster import binaries, fleet, load, manifests, plane, serving
from tests.cluster import keda as keda_rig
from tests.cluster import kubectl as kubectl_tool

HERE = Path(__file__).parent
_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            # Without the fixtures' time: a first build takes ten minutes, and each wait of theirs has its own limit.
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300, func_only=True))
    # KEDA takes the external metrics API and is built last.
    items.sort(key=lambda item: "keda" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def programs() -> None:
    """Those of the control plane are built, in nobody's time limit."""
    for program in binaries.CONTROL_PLANE:
        binaries.ensure(program)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[plane.ControlPlane]:
    """One control plane with four nodes of eight GPUs (and see nodes.USUAL), HPA sync 2 s, downscale after 10 s."""
    with plane.ControlPlane(tmp_path_factory.mktemp("cluster")) as control_plane:
        yield control_plane


@pytest.fixture
def kubectl(cluster: plane.ControlPlane) -> kubectl_tool.Kubectl:
    """Call it like the command; `.json(...)` parses, `.apply([...])` applies objects."""
    return cluster.kubectl


@pytest.fixture
def api(cluster: plane.ControlPlane) -> Iterator[client.ApiClient]:
    """Pass it to `client.CoreV1Api` and the like; `cluster.api(token)` is the same for somebody else."""
    with cluster.api() as administrator:
        yield administrator


@pytest.fixture
def audit(cluster: plane.ControlPlane) -> audit_log.AuditLog:
    """Take `since = audit.mark()` before the act, then ask for `audit.writes(since=since, ...)`."""
    return cluster.audit


@pytest.fixture(scope="session")
def keda(cluster: plane.ControlPlane) -> Iterator[keda_rig.Keda]:
    """The real KEDA, which takes the external metrics API from `serve`'s HPAs: tests that ask for it run last."""
    with keda_rig.Keda(cluster) as running:
        yield running


@pytest.fixture
def namespace(cluster: plane.ControlPlane) -> Iterator[str]:
    """Name of an empty namespace whose default service account exists; deleted afterwards."""
    name = f"test-{next(_numbers)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=60s")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


class Serve(Protocol):
    """What `serve` gives: starts a model server, stopped at the end of the test."""

    def __call__(
        self,
        season: load.Season,
        workload: manifests.Workload | None = None,
        *,
        history: str | None = None,
        sizes: fleet.Sizes | None = None,
    ) -> serving.Serving:
        """Deploy `workload` under the load `season`.

        `history` is OpenMetrics text for its Prometheus before it starts; series carry `namespace`, so name one.
        """


@pytest.fixture
def serve(cluster: plane.ControlPlane) -> Iterator[Serve]:
    """See `Serve`; several may run in one test."""
    with ExitStack() as running:

        def start(
            season: load.Season,
            workload: manifests.Workload | None = None,
            *,
            history: str | None = None,
            sizes: fleet.Sizes | None = None,
        ) -> serving.Serving:
            wanted = workload or manifests.Workload()
            placed = dataclasses.replace(wanted, namespace=wanted.namespace or f"serving-{next(_numbers)}")
            return running.enter_context(serving.Serving(cluster, placed, season, history=history, sizes=sizes))

        yield start


@pytest.fixture
def deploy(cluster: plane.ControlPlane, namespace: str) -> Callable[[manifests.Workload], manifests.Workload]:
    """Apply a Deployment without engines or HPA in `namespace`."""

    def apply(workload: manifests.Workload) -> manifests.Workload:
        placed = dataclasses.replace(workload, namespace=namespace)
        cluster.kubectl.apply([manifests.deployment(placed)])
        return placed

    return apply
