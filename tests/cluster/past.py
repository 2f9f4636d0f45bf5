"""A past that never was: what Prometheus would hold had the season gone on for hours."""

import dataclasses
import time

import numpy as np

from tests.cluster import load


@dataclasses.dataclass(frozen=True)
class Past:
    """One long-gone pod served the season, alone and without queueing.

    Args:
        season: the load.
        hours: how long.
        duration_s: what a request took.
        step_s: distance between two scrapes.
    """

    season: load.Season
    hours: float = 2.0
    duration_s: float = 2.0
    step_s: float = 5.0

    def openmetrics(self, *, namespace: str, model: str) -> str:
        """The past as text that promtool turns into blocks; ends now."""
        end = np.floor(time.clock_gettime(time.CLOCK_REALTIME))
        times = np.arange(end - self.hours * 3600, end, self.step_s)
        rates = np.array([self.season.rate_per_s(at) for at in times])
        counts = np.cumsum(rates * self.step_s)
        labels = f'namespace="{namespace}",pod="{namespace}-past",engine="0",model_name="{model}"'
        series = {
            "vllm:num_requests_running": rates * self.duration_s,
            "vllm:num_requests_waiting": rates * 0,
            "vllm:time_to_first_token_seconds_count": counts,
            "vllm:e2e_request_latency_seconds_count": counts,
            "vllm:e2e_request_latency_seconds_sum": counts * self.duration_s,
        }
        lines: list[str] = []
        for name, values in series.items():
            lines += [f"# TYPE {name} unknown", *_samples(f"{name}{{{labels}}}", times, values)]
        return "\n".join([*lines, "# EOF", ""])


def _samples(name: str, times: np.ndarray, values: np.ndarray) -> list[str]:
    return [f"{name} {value:g} {at:.3f}" for at, value in zip(times, values, strict=True)]
