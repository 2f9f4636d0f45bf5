"""The metrics page of a replica of the compiled fleet, in the Prometheus text format with the names of vLLM."""

import dataclasses
import math
from typing import Any

from models.fleet import latency, layout
from models.fleet.pool import Pool


@dataclasses.dataclass(frozen=True, slots=True)
class Gauges:
    """What a replica's page shows besides its histograms, at this moment."""

    running: int
    waiting: int
    kv_usage: float
    tokens: int


def gauges(pool: Pool, slot: int) -> Gauges:
    """Those of a replica now, the steps of the stretch under way included."""
    p, rep = pool.state, pool.replicas[slot]
    taken, tokens = int(p["blocks"] - rep["free"]), int(rep["tokens"])
    if rep["mode"] == layout.STRETCH:
        steps = min(int(_steps(p, rep, pool.now)), int(rep["planned"]))
        n, ahead = int(rep["decoding"]), range(steps & int(p["mask"]))
        taken += (steps >> int(p["shift"])) * n
        taken += sum(int(rep["phases"][(int(rep["step"]) + k) & int(p["mask"])]) for k in ahead)
        tokens += steps * n
    return Gauges(int(rep["running"]), int(rep["waiting"]), taken / int(p["blocks"]), tokens)


def _steps(p: Any, rep: Any, now: float) -> float:  # noqa: ANN401  (numpy records)
    half = 0.5 * p["c"] * rep["decoding"]
    linear = p["base"][rep["decoding"]] + p["c"] * rep["context"] - half
    passed = now - rep["began"]
    return float(2 * passed / (linear + math.sqrt(linear * linear + 4 * half * passed)))


def render(pool: Pool, slot: int) -> str:
    """The page of the replica in a slot. Raises KeyError when no engine runs there."""
    rep, profile = pool.replicas[slot], pool.profile
    if rep["phase"] not in (layout.READY, layout.DRAINING):
        raise KeyError(f"no engine runs in slot {slot}")
    seen = gauges(pool, slot)
    labels = f'engine="0",model_name="{profile.model}"'
    lines = []
    for name, kind, value in (
        ("num_requests_running", "gauge", seen.running),
        ("num_requests_waiting", "gauge", seen.waiting),
        ("kv_cache_usage_perc", "gauge", seen.kv_usage),
        ("num_preemptions_total", "counter", int(rep["preempted"])),
        ("prompt_tokens_total", "counter", int(rep["prompt_tokens"])),
        ("generation_tokens_total", "counter", seen.tokens),
    ):
        lines += [f"# TYPE vllm:{name} {kind}", f"vllm:{name}{{{labels}}} {float(value)}"]
    lines.append("# TYPE vllm:request_success_total counter")
    for reason, count in (("stop", int(rep["finished"])), ("length", 0), ("abort", 0)):
        lines.append(f'vllm:request_success_total{{finished_reason="{reason}",{labels}}} {float(count)}')
    for name, field, bounds in (
        ("time_to_first_token_seconds", "ttft", latency.TTFT_BOUNDS),
        ("inter_token_latency_seconds", "itl", latency.ITL_BOUNDS),
        ("e2e_request_latency_seconds", "e2e", latency.E2E_BOUNDS),
    ):
        lines += _histogram(f"vllm:{name}", labels, rep[field], float(rep[f"{field}_sum"]), bounds)
    size = f'kv_cache_size_tokens="{profile.kv_tokens}",num_gpu_blocks="{profile.kv_tokens // profile.block}"'
    lines += [
        "# TYPE vllm:cache_config_info gauge",
        f'vllm:cache_config_info{{block_size="{profile.block}",engine="0",{size}}} 1.0',
        "",
    ]
    return "\n".join(lines)


def _histogram(name: str, labels: str, counts: Any, total: float, bounds: tuple[float, ...]) -> list[str]:  # noqa: ANN401  (a numpy row)
    cumulative = counts[: len(bounds) + 1].cumsum().tolist()
    buckets = [
        f'{name}_bucket{{{labels},le="{bound}"}} {count}.0'
        for bound, count in zip((*bounds, "+Inf"), cumulative, strict=True)
    ]
    tail = [f"{name}_count{{{labels}}} {cumulative[-1]}.0", f"{name}_sum{{{labels}}} {total}"]
    return [f"# TYPE {name} histogram", *buckets, *tail]
