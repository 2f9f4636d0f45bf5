"""The ways to the API server, each used for a request."""

import json
from pathlib import Path
from typing import Any

import kubernetes.config.incluster_config as incluster
import pytest

from predictor.cluster import access as accesses
from predictor.cluster import errors
from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.cluster.resources import PODS
from predictor.errors import FloorcastError
from tests.fakes.api_server import FakeApiServer

OURS = "ours"


def kubeconfig(path: Path, server: FakeApiServer, *, token: str = OURS, current: str = "here") -> Path:
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": "here", "cluster": {"server": server.url}}],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "here", "user": "me"}},
            {"name": "other", "context": {"cluster": "here", "user": "me"}},
        ],
    }
    path.write_text(json.dumps(content))
    return path


def bearer(server: FakeApiServer, access: Access) -> str:
    api = Api(access)
    api.list_all(PODS, namespace="llm")
    api.close()
    return server.requests[-1].headers["authorization"]


def test_a_kubeconfig_gives_server_and_token(server: FakeApiServer, tmp_path: Path) -> None:
    assert bearer(server, Access(kubeconfig=kubeconfig(tmp_path / "config", server))) == "Bearer ours"


def test_a_context_is_chosen_by_name(server: FakeApiServer, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", server, current="gone")
    assert bearer(server, Access(kubeconfig=path, context="other")) == "Bearer ours"
    with pytest.raises(errors.MisconfiguredError, match="gone"):
        Api(Access(kubeconfig=path))


def test_a_token_replaced_in_the_kubeconfig_is_read_after_a_401(server: FakeApiServer, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", server, token="old")  # noqa: S106  (a fake's)
    server.tokens = {"new"}
    api = Api(Access(kubeconfig=path))
    kubeconfig(path, server, token="new")  # noqa: S106
    assert api.list_all(PODS, namespace="llm") == []
    api.close()


def test_in_a_pod_its_own_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in {"token": "bound", "ca.crt": "certificate"}.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(incluster, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    configuration = accesses.configuration(Access())
    assert configuration.host == "https://10.96.0.1:443"
    assert configuration.ssl_ca_cert == str(tmp_path / "ca.crt")
    assert configuration.auth_settings()["BearerToken"]["value"] == "bearer bound"


def test_nothing_at_all_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(errors.MisconfiguredError, match="cannot set up access to the API server") as raised:
        Api(Access(kubeconfig=tmp_path / "missing"))
    assert isinstance(raised.value, FloorcastError), "at the start it ends the program with its one line"
    assert len(raised.value.lines) == 1


@pytest.mark.parametrize("content", ["", "[", "a: [1", "just text", "apiVersion: v1"])
def test_a_broken_kubeconfig_is_a_clear_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(errors.MisconfiguredError):
        Api(Access(kubeconfig=path))


def test_a_server_needs_a_token_and_existing_files(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    with pytest.raises(errors.MisconfiguredError, match="without token_file"):
        Api(Access(server="https://10.0.0.1"))
    with pytest.raises(errors.MisconfiguredError, match="token"):
        Api(Access(server="https://10.0.0.1", token_file=token_file))
    token_file.write_text("t")
    with pytest.raises(errors.MisconfiguredError, match=r"ca_file .* does not exist"):
        Api(Access(server="https://10.0.0.1", token_file=token_file, ca_file=tmp_path / "ca"))
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(errors.ClusterError):
        Api(Access(server="https://10.0.0.1", token_file=token_file, ca_file=tmp_path / "ca")).get(
            PODS, namespace="llm", name="p"
        )
