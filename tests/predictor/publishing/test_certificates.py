"""KEDA asks over TLS: who is answered, and what a renewed certificate does to that."""

import dataclasses
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from predictor.board import Board
from predictor.errors import ConfigurationError
from predictor.publishing import certificates
from predictor.publishing.certificates import Files
from predictor.publishing.publisher import Publisher
from tests.cluster import certificates as openssl
from tests.cluster.certificates import Pair
from tests.predictor.publishing.test_scaler import Keda
from tests.predictor.telemetry import examples

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")

TARGET = examples.target()
UNDECIDED = (grpc.StatusCode.UNAVAILABLE, f"{TARGET.key}: nothing has been decided yet")


@dataclasses.dataclass(frozen=True)
class Authority:
    """Signs certificates, and is believed by whoever has its own."""

    pair: Pair

    @classmethod
    def make(cls, folder: Path, name: str) -> "Authority":
        """One with files of its own."""
        (folder / name).mkdir()
        return cls(openssl.authority(folder / name, name))

    def server(self) -> Pair:
        """A certificate of this machine."""
        return openssl.issue(self.pair, "server", names=["IP:127.0.0.1"])

    def client(self) -> Pair:
        """A certificate of KEDA."""
        return openssl.issue(self.pair, "keda")

    def believed(self, own: Pair | None = None) -> grpc.ChannelCredentials:
        """What KEDA has to believe this authority, and to show who it is."""
        roots = self.pair.certificate.read_bytes()
        if own is None:
            return grpc.ssl_channel_credentials(roots)
        return grpc.ssl_channel_credentials(roots, own.key.read_bytes(), own.certificate.read_bytes())


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("certificates"), "ours")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("certificates"), "other")


@dataclasses.dataclass(frozen=True)
class Mounted:
    """The files as a Secret shows them."""

    files: Files

    def put(self, pair: Pair) -> None:
        """Renew what stands there."""
        shutil.copyfile(pair.certificate, self.files.cert)
        shutil.copyfile(pair.key, self.files.key)


@pytest.fixture
def mounted(tmp_path: Path, ours: Authority) -> Mounted:
    made = Mounted(Files(tmp_path / "tls.crt", tmp_path / "tls.key"))
    made.put(ours.server())
    return made


Serve = Callable[[Files], Callable[[grpc.ChannelCredentials | None], Keda]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves with files; what it returns connects to that anew."""
    ends: list[Callable[[], None]] = []

    def start(files: Files) -> Callable[[grpc.ChannelCredentials | None], Keda]:
        board = Board([TARGET])
        publisher = Publisher(lambda: board, slow=lambda: 30.0, told=lambda _, __: None)
        publisher.serve(host="127.0.0.1", port=0, tls=files)
        ends.append(publisher.stop)
        server = publisher._server
        assert server is not None
        port = server.port

        def connect(credentials: grpc.ChannelCredentials | None) -> Keda:
            keda = Keda(port, credentials)
            ends.append(keda.close)
            return keda

        return connect

    yield start
    for end in reversed(ends):
        end()


def answer(keda: Keda) -> tuple[grpc.StatusCode, str]:
    """The scaler's own answer, which is that it has no number; or that there is no connection."""
    with pytest.raises(grpc.RpcError) as error:
        keda.metric()
    return error.value.code(), error.value.details()


def is_turned_away(keda: Keda) -> bool:
    code, text = answer(keda)
    return code is grpc.StatusCode.UNAVAILABLE and (code, text) != UNDECIDED


def test_whoever_believes_the_authority_is_answered_and_nobody_without_encryption(
    serve: Serve, mounted: Mounted, ours: Authority, other: Authority
) -> None:
    connect = serve(mounted.files)
    assert answer(connect(ours.believed())) == UNDECIDED
    assert is_turned_away(connect(None))
    assert is_turned_away(connect(other.believed()))


def test_with_a_client_authority_only_its_own_are_answered(
    serve: Serve, mounted: Mounted, ours: Authority, other: Authority
) -> None:
    files = dataclasses.replace(mounted.files, client_ca=ours.pair.certificate)
    connect = serve(files)
    assert answer(connect(ours.believed(ours.client()))) == UNDECIDED
    assert is_turned_away(connect(ours.believed()))
    assert is_turned_away(connect(ours.believed(other.client())))


def test_a_renewed_certificate_is_shown_to_the_next_connection(
    serve: Serve, mounted: Mounted, ours: Authority, other: Authority
) -> None:
    connect = serve(mounted.files)
    before = connect(ours.believed())
    assert answer(before) == UNDECIDED
    with capture_logs() as said:
        mounted.put(other.server())
        assert answer(connect(other.believed())) == UNDECIDED
        assert answer(connect(other.believed())) == UNDECIDED
        assert is_turned_away(connect(ours.believed()))
        assert answer(before) == UNDECIDED  # it is connected already
    assert [one["event"] for one in said] == ["certificate of the external scaler renewed"]


def test_a_renewed_client_authority_counts_for_the_next_connection(
    serve: Serve, mounted: Mounted, ours: Authority, other: Authority, tmp_path: Path
) -> None:
    believed = tmp_path / "ca.crt"
    shutil.copyfile(ours.pair.certificate, believed)
    connect = serve(dataclasses.replace(mounted.files, client_ca=believed))
    assert is_turned_away(connect(ours.believed(other.client())))
    shutil.copyfile(other.pair.certificate, believed)
    assert answer(connect(ours.believed(other.client()))) == UNDECIDED


def test_files_that_cannot_be_used_leave_the_ones_before_and_are_told_once(
    serve: Serve, mounted: Mounted, ours: Authority, other: Authority
) -> None:
    connect = serve(mounted.files)
    with capture_logs() as said:
        mounted.files.cert.write_bytes(other.server().certificate.read_bytes())  # and the key is still the old one
        for _ in range(3):
            assert answer(connect(ours.believed())) == UNDECIDED
        mounted.files.key.unlink()
        assert answer(connect(ours.believed())) == UNDECIDED
        mounted.put(other.server())
        assert answer(connect(other.believed())) == UNDECIDED
    assert [one["event"] for one in said] == [
        "certificate of the external scaler cannot be read, the one before counts",
        "certificate of the external scaler cannot be read, the one before counts",
        "certificate of the external scaler renewed",
    ]
    assert f"external_scaler.cert_file: '{mounted.files.cert}' does not go with" in said[0]["problem"]
    assert f"external_scaler.key_file: '{mounted.files.key}' cannot be read" in said[1]["problem"]


def test_files_that_cannot_be_used_at_the_start_are_refused_by_key(
    mounted: Mounted, other: Authority, tmp_path: Path
) -> None:
    locked, nonsense, files = tmp_path / "locked.key", tmp_path / "nonsense", mounted.files
    nonsense.write_text("no certificate")
    command = ["openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", str(files.key), "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own words)
    for wrong, problem in (
        ({"cert": tmp_path / "absent"}, r"external_scaler.cert_file: .*absent' cannot be read: No such file"),
        ({"key": other.server().key}, r"external_scaler.cert_file: .*tls.crt' does not go with .*server.key"),
        ({"key": locked}, r"external_scaler.cert_file: .* does not go with .*locked.key.*without a password"),
        ({"client_ca": nonsense}, r"external_scaler.client_ca_file: .*nonsense' .*give certificates as PEM"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            certificates.credentials(dataclasses.replace(files, **wrong))
