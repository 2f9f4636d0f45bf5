import time
from pathlib import Path

import pytest

from tests.cluster import history, load
from tests.servers import prometheus


def test_a_past_of_hours_holds_its_season(tmp_path: Path) -> None:
    until_s = time.clock_gettime(time.CLOCK_REALTIME) - 1
    season = load.ramp(period_s=300, base_per_s=2, peak_per_s=10)
    past = history.Past("chat", until_s, span_s=3600)
    server = prometheus.PrometheusServer(tmp_path)
    server.backfill(history.text(past, season))
    peak_s = until_s // 300 * 300 - 300 + 0.85 * 300  # the plateau began 75 s before
    calm_s = peak_s - 0.4 * 300
    with server:

        def finished_per_s(at_s: float) -> float | None:
            return server.value(f'sum(rate(vllm:request_success_total{{namespace="chat"}}[1m] @ {at_s:.0f}))')

        assert finished_per_s(peak_s) == pytest.approx(10, rel=0.25)
        assert finished_per_s(calm_s) == pytest.approx(2, rel=0.5)
        assert server.value(f"count(vllm:num_requests_running @ {peak_s:.0f})") == 4
