"""The metrics page of one replica in the Prometheus text format, with the names of vLLM 0.33."""

import dataclasses

from models.fleet.engine import Engine
from models.fleet.histogram import E2E_BOUNDS, ITL_BOUNDS, TTFT_BOUNDS, BucketHistogram


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """Gauges and counters of one replica at one moment."""

    running: int
    waiting: int
    kv_usage: float
    finished: int
    aborted: int
    prompt_tokens: int
    generation_tokens: int
    preemptions: int = 0


class Latencies:
    """The three latency histograms of a replica."""

    def __init__(self) -> None:
        self.ttft = BucketHistogram(TTFT_BOUNDS)
        self.itl = BucketHistogram(ITL_BOUNDS)
        self.e2e = BucketHistogram(E2E_BOUNDS)


class Template:
    """Renders pages; what does not change from page to page is written once."""

    BLOCK = 16  # KV tokens a block holds, vLLM's default

    def __init__(self, engine: Engine) -> None:
        self._labels = f'engine="0",model_name="{engine.model}"'
        self._info = (
            f'vllm:cache_config_info{{block_size="{self.BLOCK}",engine="0",kv_cache_size_tokens="{engine.kv_tokens}",'
            f'num_gpu_blocks="{engine.kv_tokens // self.BLOCK}"}} 1.0'
        )
        self._heads = {
            name: [f'vllm:{name}_bucket{{engine="0",le="{bound}",model_name="{engine.model}"}} ' for bound in bounds]
            for name, bounds in (
                ("time_to_first_token_seconds", (*TTFT_BOUNDS, "+Inf")),
                ("inter_token_latency_seconds", (*ITL_BOUNDS, "+Inf")),
                ("e2e_request_latency_seconds", (*E2E_BOUNDS, "+Inf")),
            )
        }

    def render(self, seen: Snapshot, latencies: Latencies) -> str:
        """The page as text."""
        lines = [
            *self._single("num_requests_running", "gauge", seen.running),
            *self._single("num_requests_waiting", "gauge", seen.waiting),
            *self._single("kv_cache_usage_perc", "gauge", seen.kv_usage),
            *self._single("num_preemptions_total", "counter", seen.preemptions),
            *self._single("prompt_tokens_total", "counter", seen.prompt_tokens),
            *self._single("generation_tokens_total", "counter", seen.generation_tokens),
            "# TYPE vllm:request_success_total counter",
            self._success("stop", seen.finished),
            self._success("length", 0),
            self._success("abort", seen.aborted),
            *self._histogram("time_to_first_token_seconds", latencies.ttft),
            *self._histogram("inter_token_latency_seconds", latencies.itl),
            *self._histogram("e2e_request_latency_seconds", latencies.e2e),
            "# TYPE vllm:cache_config_info gauge",
            self._info,
            "",
        ]
        return "\n".join(lines)

    def _single(self, name: str, kind: str, value: float) -> tuple[str, str]:
        return f"# TYPE vllm:{name} {kind}", f"vllm:{name}{{{self._labels}}} {float(value)}"

    def _success(self, why: str, count: int) -> str:
        return f'vllm:request_success_total{{finished_reason="{why}",{self._labels}}} {float(count)}'

    def _histogram(self, name: str, histogram: BucketHistogram) -> list[str]:
        counts = histogram.cumulative()
        return [
            f"# TYPE vllm:{name} histogram",
            *[f"{head}{count}.0" for head, count in zip(self._heads[name], counts, strict=True)],
            f"vllm:{name}_count{{{self._labels}}} {counts[-1]}.0",
            f"vllm:{name}_sum{{{self._labels}}} {histogram.sum}",
        ]
