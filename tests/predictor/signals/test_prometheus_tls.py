import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.signals import prometheus, shelf
from tests.cluster import certificates
from tests.fakes import cluster_objects
from tests.fakes.prometheus_api import Answer, PrometheusApi, Request, result, row

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")

CATALOG = shelf.load()
NOW = 1_800_000_000.0
TARGET = cluster_objects.target()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> certificates.Pair:
    return certificates.authority(tmp_path_factory.mktemp("authority"), "ca")


@pytest.fixture(scope="module")
def server(authority: certificates.Pair) -> certificates.Pair:
    return certificates.issue(authority, "server", names=["IP:127.0.0.1"])


@pytest.fixture
def api(server: certificates.Pair) -> Iterator[PrometheusApi]:
    with PrometheusApi(seven, tls=serving(server)) as served:
        yield served


def serving(pair: certificates.Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def seven(request: Request) -> Answer:
    value = NOW - 15 if "timestamp(" in request.query else 7
    return result([row(value, namespace="llm", model_name="llama")])


def read(api: PrometheusApi, **files: object) -> Reading:
    settings = prometheus.PrometheusSettings(api.url, budget=20.0, clock_tolerance=1e12, **files)  # type: ignore[arg-type]
    source = prometheus.PrometheusSource(settings, CATALOG)
    try:
        return source.read([TARGET], now=NOW)[TARGET.key][Signal.IN_FLIGHT]
    finally:
        source.close()


def test_a_certificate_of_nobody_known_is_refused_unless_told_otherwise(api: PrometheusApi) -> None:
    reading = read(api)
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.SOURCE_DOWN
    assert "CERTIFICATE_VERIFY_FAILED" in reading.detail
    assert not api.requests


def test_a_certificate_of_our_own_authority_is_accepted(api: PrometheusApi, authority: certificates.Pair) -> None:
    assert isinstance(read(api, ca_file=authority.certificate), Known)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_checking_can_be_turned_off_to_find_a_fault(api: PrometheusApi, authority: certificates.Pair) -> None:
    assert isinstance(read(api, verify=False), Known)
    assert isinstance(read(api, verify=False, ca_file=authority.certificate), Known)


def test_a_client_certificate_is_shown_where_it_is_asked_for(
    authority: certificates.Pair, server: certificates.Pair
) -> None:
    client = certificates.issue(authority, "client")
    asking = serving(server)
    asking.load_verify_locations(authority.certificate)
    asking.verify_mode = ssl.CERT_REQUIRED
    with PrometheusApi(seven, tls=asking) as api:
        assert isinstance(read(api, ca_file=authority.certificate), Unknown)
        shown = read(api, ca_file=authority.certificate, cert_file=client.certificate, key_file=client.key)
        assert isinstance(shown, Known)


def test_an_authority_whose_file_is_missing_is_told_by_name(api: PrometheusApi, tmp_path: Path) -> None:
    reading = read(api, ca_file=tmp_path / "none.crt")
    assert isinstance(reading, Unknown)
    assert "none.crt" in reading.detail
