import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.servers import prometheus, waiting


@pytest.fixture(scope="module")
def scraping_itself(tmp_path_factory: pytest.TempPathFactory) -> Iterator[prometheus.PrometheusServer]:
    with prometheus.PrometheusServer(tmp_path_factory.mktemp("prometheus")) as server:
        own = server.url.removeprefix("http://")
        server.scrape([prometheus.at("itself", own, labels={"pod": "a"}, interval_s=0.5)])
        yield server


def test_scrapes_its_targets_with_their_labels(scraping_itself: prometheus.PrometheusServer) -> None:
    seen = waiting.until(lambda: scraping_itself.query('up{pod="a"}'), within_s=10, what="a first scrape")
    assert seen[0]["metric"]["job"] == "itself"
    assert seen[0]["value"][1] == "1"


def test_refuses_connections_while_stopped_and_keeps_its_data(scraping_itself: prometheus.PrometheusServer) -> None:
    waiting.until(lambda: scraping_itself.value("up"), within_s=10, what="a first scrape")
    address = scraping_itself.url
    scraping_itself.stop()
    with pytest.raises(requests.ConnectionError):
        scraping_itself.query("up")
    scraping_itself.start()
    assert scraping_itself.url == address
    assert scraping_itself.query("count_over_time(up[1h])")


def test_hangs_while_paused(scraping_itself: prometheus.PrometheusServer) -> None:
    scraping_itself.pause()
    try:
        with pytest.raises(requests.ReadTimeout):
            requests.get(f"{scraping_itself.url}/-/ready", timeout=0.5)
    finally:
        scraping_itself.resume()
    assert requests.get(f"{scraping_itself.url}/-/ready", timeout=10).ok


def test_answers_from_a_backfilled_past_of_weeks(tmp_path: Path) -> None:
    now = time.clock_gettime(time.CLOCK_REALTIME)
    weeks_ago = round(now) - 30 * 86400
    samples = [f"demand {minute} {weeks_ago + 60 * minute}" for minute in range(120)]
    server = prometheus.PrometheusServer(tmp_path)
    server.backfill("\n".join(["# TYPE demand gauge", *samples, "# EOF", ""]))
    with server:
        assert server.value(f"max_over_time(demand[2h] @ {weeks_ago + 7200})") == 119


def test_refuses_backfill_while_it_runs(scraping_itself: prometheus.PrometheusServer) -> None:
    with pytest.raises(RuntimeError, match="before the start"):
        scraping_itself.backfill("# EOF\n")


def test_two_servers_do_not_share_a_port(tmp_path: Path) -> None:
    one, other = prometheus.PrometheusServer(tmp_path / "a"), prometheus.PrometheusServer(tmp_path / "b")
    try:
        assert one.url != other.url
    finally:
        one.close()
        other.close()
