"""The key pairs of a control plane, made with openssl and good for a month."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_DAYS = "30"
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, PEM files."""

    certificate: Path
    key: Path


def authority(folder: Path, name: str) -> Pair:
    """Make a certificate authority called `name`."""
    pair = _pair(folder, name)
    subject = ["-subj", f"/CN={name}", "-days", _DAYS]
    _openssl("req", "-x509", *_KEY, *subject, "-keyout", str(pair.key), "-out", str(pair.certificate))
    return pair


def issue(issuer: Pair, name: str, *, names: Sequence[str] = ()) -> Pair:
    """Make a certificate for client `name`, or for a server known as `names` such as `DNS:localhost`."""
    pair = _pair(issuer.certificate.parent, name)
    request, extensions = pair.key.with_suffix(".csr"), pair.key.with_suffix(".ext")
    usage = "serverAuth,clientAuth" if names else "clientAuth"  # KEDA's two parts are both to each other
    extensions.write_text(f"extendedKeyUsage={usage}\n" + (f"subjectAltName={','.join(names)}\n" if names else ""))
    _openssl("req", "-new", *_KEY, "-subj", f"/CN={name}", "-keyout", str(pair.key), "-out", str(request))
    signing = ["-CA", str(issuer.certificate), "-CAkey", str(issuer.key), "-CAcreateserial", "-days", _DAYS]
    _openssl("x509", "-req", "-in", str(request), *signing, "-extfile", str(extensions), "-out", str(pair.certificate))
    return pair


def signing_key(folder: Path, name: str) -> Path:
    """Make a private key such as the one that signs service-account tokens; its public half is `name`.pub beside it."""
    key = folder / f"{name}.key"
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", str(key))
    _openssl("pkey", "-in", str(key), "-pubout", "-out", str(key.with_suffix(".pub")))
    return key


def _pair(folder: Path, name: str) -> Pair:
    return Pair(folder / f"{name}.crt", folder / f"{name}.key")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)  # noqa: S603, S607  (our own words)
