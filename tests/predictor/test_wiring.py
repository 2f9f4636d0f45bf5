"""What the composition root makes of the settings."""

from pathlib import Path

from predictor import wiring
from predictor.publishing.certificates import Files
from predictor.settings import sections
from predictor.settings.root import Settings


def test_arrivals_from_prometheus_are_a_scrape_and_half_a_window_old() -> None:
    """At 15 s scrapes the window of rates is 120 s: 15 + 60."""
    assert wiring.pace(Settings()).signal_age == 75
    assert wiring.pace(Settings()).rate_window == 120


def test_pages_are_as_old_as_the_fast_loop_and_half_their_window() -> None:
    settings = Settings(source={"kind": "scrape"}, loops={"fast": 10})
    assert wiring.pace(settings).signal_age == 10 + 30
    assert wiring.pace(settings).rate_window == 60


def test_rates_of_pages_look_back_from_one_look_to_another() -> None:
    settings = Settings(source={"kind": "scrape"}, loops={"fast": 45, "slow": 90})
    assert wiring.pace(settings).rate_window == 90


def test_rates_look_back_further_where_prometheus_scrapes_more_rarely() -> None:
    windows = [
        wiring.pace(Settings(source={"kind": "prometheus", "prometheus": {"scrape_interval": interval}})).rate_window
        for interval in (15, 30, 60)
    ]
    assert windows == [120, 240, 300]


def test_keda_is_answered_with_the_certificate_of_the_configuration_or_without_encryption() -> None:
    given = {"enabled": True, "cert_file": "/tls.crt", "key_file": "/tls.key", "client_ca_file": "/ca.crt"}
    files = wiring.certificate(sections.ExternalScaler.model_validate(given))
    assert files == Files(Path("/tls.crt"), Path("/tls.key"), Path("/ca.crt"))
    assert wiring.certificate(sections.ExternalScaler(enabled=True)) is None
