"""The certificate of the external scaler, from files that are read again at every new connection.

A Secret that is renewed changes its files under us; KEDA's next connection sees the new certificate. Files that cannot
be used meanwhile leave the ones before them in place.
"""

import dataclasses
import ssl
import threading
from pathlib import Path

import grpc
import structlog

from predictor.errors import ConfigurationError

_log = structlog.stdlib.get_logger("floorcast")


@dataclasses.dataclass(frozen=True, slots=True)
class Files:
    """Where they are, as PEM.

    Attributes:
        cert: the server's certificate, with those between it and its authority.
        key: its private key, without a password.
        client_ca: authorities of which whoever asks must show a certificate; None: everybody may ask.
    """

    cert: Path
    key: Path
    client_ca: Path | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Read:
    """What stood in the files."""

    cert: bytes
    key: bytes
    client_ca: bytes | None


def credentials(files: Files) -> grpc.ServerCredentials:
    """What a server is made with so that it follows the files.

    Raises:
        ConfigurationError: they cannot be used as they are now.
    """
    keeper = _Keeper(files)
    return grpc.dynamic_ssl_server_credentials(
        _configuration(keeper.read),
        keeper.renewed,
        require_client_authentication=files.client_ca is not None,
    )


class _Keeper:
    """Remembers what was read last. gRPC asks it from threads of its own."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._problem = ""
        self._lock = threading.Lock()
        self.read = _read(files)

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """What the next connection is answered with; None where nothing changed, or nothing usable is there."""
        with self._lock:
            try:
                found = _read(self._files)
            except ConfigurationError as error:
                self._tell(str(error))
                return None
            self._tell("")
            if found == self.read:
                return None
            self.read = found
        _log.info("certificate of the external scaler renewed", file=str(self._files.cert))
        return _configuration(found)

    def _tell(self, problem: str) -> None:
        if problem and problem != self._problem:
            _log.warning("certificate of the external scaler cannot be read, the one before counts", problem=problem)
        self._problem = problem


def _configuration(found: _Read) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(found.key, found.cert)], found.client_ca)


def _read(files: Files) -> _Read:
    """Raises ConfigurationError with the key of the configuration that names the file."""
    found = _Read(
        _content("cert_file", files.cert),
        _content("key_file", files.key),
        _content("client_ca_file", files.client_ca) if files.client_ca else None,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:  # gRPC itself would say no more than that the handshake failed
        context.load_cert_chain(files.cert, files.key, password="")
    except (OSError, ValueError) as error:
        remedy = "give a certificate as PEM, and in key_file its own key, without a password"
        raise _unusable("cert_file", files.cert, f"does not go with {files.key}: {error}; {remedy}") from error
    if files.client_ca:
        try:
            context.load_verify_locations(files.client_ca)
        except (OSError, ValueError) as error:
            raise _unusable("client_ca_file", files.client_ca, f"{error}; give certificates as PEM") from error
    return found


def _content(key: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = f"cannot be read: {error.strerror}; mount the file there, or leave it out to answer without encryption"
        raise _unusable(key, path, why) from error


def _unusable(key: str, path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(f"external_scaler.{key}: {str(path)!r} {why}")
