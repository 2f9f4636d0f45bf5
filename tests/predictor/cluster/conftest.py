from collections.abc import Iterator
from pathlib import Path

import pytest

from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.cluster.workloads import ClusterWorkloads
from tests.fakes.api_server import FakeApiServer


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        yield fake


@pytest.fixture
def access(server: FakeApiServer, tmp_path: Path) -> Access:
    token_file = tmp_path / "token"
    token_file.write_text("first\n")
    return Access(server=server.url, token_file=token_file, timeout=2.0)


@pytest.fixture
def waits() -> list[float]:
    """Seconds the client waited, without having done so."""
    return []


@pytest.fixture
def api(access: Access, waits: list[float]) -> Iterator[Api]:
    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return False

    client = Api(access, wait=wait, monotonic=lambda: 0.0)
    yield client
    client.close()


@pytest.fixture
def workloads(api: Api) -> ClusterWorkloads:
    return ClusterWorkloads(api)
