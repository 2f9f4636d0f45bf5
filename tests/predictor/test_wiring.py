"""What the composition root makes of the settings."""

from predictor import wiring
from predictor.settings.root import Settings


def test_arrivals_from_prometheus_are_a_scrape_and_half_a_window_old() -> None:
    """At 15 s scrapes the window of rates is 120 s: 15 + 60."""
    assert wiring.pace(Settings()).signal_age == 75


def test_pages_are_as_old_as_the_fast_loop_and_half_their_window() -> None:
    settings = Settings(source={"kind": "scrape"}, loops={"fast": 10})
    assert wiring.pace(settings).signal_age == 10 + 30
