"""A generated past of vLLM replicas, as OpenMetrics text."""

import itertools
from collections.abc import Iterator

import numpy as np

from models.series import Floats

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
DURATION = 10.0  # seconds a request takes
MINUTE = 60


def rates(days: int, *, seed: int) -> Floats:
    """Requests a second, a point a minute: office hours with a steep morning, lunch, and a quiet week-end."""
    rng = np.random.default_rng(seed)
    minutes = np.arange(days * 1440)
    hour, day = minutes % 1440 / 60, minutes // 1440
    rise = 1 / (1 + np.exp(-(hour - 8.9) * 9)) * 1 / (1 + np.exp((hour - 17.6) * 3))
    lunch = 1 - 0.35 * np.exp(-(((hour - 12.5) / 0.6) ** 2))
    weekend = np.where(day % 7 >= 5, 0.25, 1.0)  # noqa: PLR2004  (five working days)
    wander = 1 + 0.1 * np.sin(np.cumsum(rng.standard_normal(len(minutes))) / 25)
    return np.asarray((0.6 + 9 * rise * lunch * weekend) * wander)


def past(targets: int, *, days: int, end: int, hole: range = range(0), seed: int = 1) -> str:
    """Counters and gauges of one pod a target up to the Unix time `end`, without the minutes in `hole`."""
    names = (
        ("vllm:num_requests_running", "gauge"),
        ("vllm:num_requests_waiting", "gauge"),
        ("vllm:time_to_first_token_seconds_count", "unknown"),
        ("vllm:e2e_request_latency_seconds_sum", "unknown"),
        ("vllm:e2e_request_latency_seconds_count", "unknown"),
    )
    values = [_values(rates(days, seed=seed + number), seed=seed + number) for number in range(targets)]
    lines = []
    for place, (name, kind) in enumerate(names):
        lines.append(f"# TYPE {name} {kind}")
        for number in range(targets):
            labels = f'{{namespace="llm",pod="chat-{number}-abc12",model_name="{MODEL}-{number}",engine="0"}}'
            lines += _samples(f"{name}{labels}", values[number][place], end=end, hole=hole)
    return "\n".join([*lines, "# EOF", ""])


def _values(rate: Floats, *, seed: int) -> tuple[Floats, ...]:
    rng = np.random.default_rng(seed + 1000)
    came = rng.poisson(rate * MINUTE)
    running = rng.poisson(rate * DURATION)
    total = np.cumsum(came)
    return running, np.zeros(len(rate)), total, total * DURATION, total


def _samples(series: str, values: Floats, *, end: int, hole: range) -> Iterator[str]:
    start = end - MINUTE * (len(values) - 1)
    for minute, value in zip(itertools.count(), values.tolist()):
        if minute not in hole:
            yield f"{series} {value:g} {start + MINUTE * minute}"
