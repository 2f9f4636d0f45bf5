"""What one pod of each engine shows, in the shapes of its versions, and the signals two such pods amount to."""

import dataclasses
from collections.abc import Mapping, Sequence

from models.signals import Signal
from tests.fakes.exposition import MODEL, Line, histogram, level, rising

# 90 % below 0.5, all below 1: the 95th percentile lies halfway between.
TAIL = {"0.1": 0.2, "0.5": 0.9, "1.0": 1.0, "+Inf": 1.0}
P95 = 0.75


@dataclasses.dataclass(frozen=True)
class Shape:
    """One pod's lines (labels of the scrape left out), and what two of them give through Prometheus.

    `others` are lines of the gateway, of which there is one pod.
    """

    engine: str
    model: str
    lines: Sequence[Line]
    signals: Mapping[Signal, float]
    others: Sequence[Line] = ()


def vllm(*, renamed: bool) -> list[Line]:
    """vLLM before or after the cache and latency metrics changed their names."""
    own = {"model_name": MODEL, "engine": "0"}
    cache, latency = (
        ("kv_cache_usage_perc", "inter_token_latency_seconds")
        if renamed
        else ("gpu_cache_usage_perc", "time_per_output_token_seconds")
    )
    return [
        level("vllm:num_requests_running", 7, **own),
        rising("vllm:num_requests_waiting", 0.1, start=3, **own),
        level(f"vllm:{cache}", 0.4375, **own),
        rising("vllm:request_success_total", 0.3, **own, finished_reason="stop"),
        rising("vllm:request_success_total", 0.1, **own, finished_reason="length"),
        rising("vllm:request_success_created", 50, **own, finished_reason="stop"),
        rising("vllm:prompt_tokens_total", 800, **own),
        rising("vllm:generation_tokens_total", 150, **own),
        *histogram("vllm:time_to_first_token_seconds", TAIL, **own),
        *histogram(f"vllm:{latency}", TAIL, **own),
        *histogram("vllm:e2e_request_latency_seconds", TAIL, total=4.2, **own),
    ]


def vllm_signals(*, at: float) -> dict[Signal, float]:
    return {
        Signal.ARRIVALS: 2 * (1.0 + 0.1),  # first tokens, and the queue's growth
        Signal.IN_FLIGHT: 14,
        Signal.WAITING: 2 * (3 + 0.1 * at),
        Signal.KV_USAGE: 0.4375,
        Signal.TTFT_P95: P95,
        Signal.ITL_P95: P95,
        Signal.DURATION_MEAN: 4.2,
        Signal.TOKENS_IN: 1600,
        Signal.TOKENS_OUT: 300,
        Signal.COMPLETIONS: 2 * (0.3 + 0.1),
    }


def sglang() -> list[Line]:
    """SGLang with priority scheduling: rows by priority beside the total."""
    own = {"model_name": MODEL, "engine_type": "unified"}
    ranks = {**own, "tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0", "priority": ""}
    return [
        level("sglang:num_running_reqs", 7, **ranks),
        level("sglang:num_running_reqs", 6, **{**ranks, "priority": "5"}),
        level("sglang:num_queue_reqs", 3, **ranks),
        level("sglang:token_usage", 0.4375, **ranks),
        rising("sglang:num_requests_total", 0.8, **own, is_streaming="true"),
        rising("sglang:http_requests_total", 1.0, endpoint="/v1/chat/completions", method="POST"),
        rising("sglang:http_requests_total", 0.5, endpoint="/generate", method="POST"),
        rising("sglang:http_requests_total", 9.0, endpoint="/health", method="GET"),
        rising("sglang:realtime_tokens_total", 700, **ranks, mode="prefill_compute"),
        rising("sglang:realtime_tokens_total", 100, **ranks, mode="prefill_cache"),
        rising("sglang:realtime_tokens_total", 150, **ranks, mode="decode"),
        *histogram("sglang:time_to_first_token_seconds", TAIL, **own, is_streaming="true"),
        *histogram("sglang:inter_token_latency_seconds", TAIL, **own),
        *histogram("sglang:e2e_request_latency_seconds", TAIL, total=4.2, **own, is_streaming="true"),
    ]


SGLANG_SIGNALS = {
    Signal.ARRIVALS: 3.0,
    Signal.IN_FLIGHT: 14,
    Signal.WAITING: 6,
    Signal.KV_USAGE: 0.4375,
    Signal.TTFT_P95: P95,
    Signal.ITL_P95: P95,
    Signal.DURATION_MEAN: 4.2,
    Signal.TOKENS_IN: 1600,
    Signal.TOKENS_OUT: 300,
}


def tgi() -> list[Line]:
    """TGI: no labels of its own, counters without _total, no histogram of the time to the first token."""
    return [
        rising("tgi_request_count", 2.4),
        rising("tgi_request_success", 1.0),
        rising("tgi_request_failure", 0.2, err="overloaded"),
        rising("tgi_request_failure", 5.0, err="validation"),
        level("tgi_queue_size", 3),
        level("tgi_batch_current_size", 7),
        level("tgi_batch_current_max_tokens", 10_000),
        level("tgi_batch_max_total_tokens", 40_000),
        *histogram("tgi_request_queue_duration", TAIL),
        *histogram("tgi_batch_inference_duration", TAIL, method="prefill"),
        *histogram("tgi_batch_inference_duration", {"0.1": 0.0, "+Inf": 30.0}, method="decode"),
        *histogram("tgi_request_mean_time_per_token_duration", TAIL),
        *histogram("tgi_request_duration", TAIL, total=3.2),
        rising("tgi_request_input_length_sum", 800),
        rising("tgi_request_generated_tokens_sum", 150),
    ]


TGI_SIGNALS = {
    Signal.ARRIVALS: 2.4,
    Signal.IN_FLIGHT: 14,
    Signal.WAITING: 6,
    Signal.KV_USAGE: 0.25,
    Signal.TTFT_P95: 2 * P95,
    Signal.ITL_P95: P95,
    Signal.DURATION_MEAN: 3.2,
    Signal.TOKENS_IN: 1600,
    Signal.TOKENS_OUT: 300,
}


def lmdeploy() -> list[Line]:
    own = {"model_name": MODEL, "engine": "0"}
    return [
        level("lmdeploy:num_requests_running", 7, **own),
        level("lmdeploy:num_requests_waiting", 3, **own),
        level("lmdeploy:num_api_requests_waiting", 2, **own),
        level("lmdeploy:gpu_cache_usage_perc", 0.4375, **own),
        rising("lmdeploy:request_success_total", 1.0, **own, finished_reason="stop"),
        rising("lmdeploy:prompt_tokens_total", 800, **own),
        rising("lmdeploy:generation_tokens_total", 150, **own),
        *histogram("lmdeploy:time_to_first_token_seconds", TAIL, **own),
        *histogram("lmdeploy:iter_token_latency", TAIL, **own),
        *histogram("lmdeploy:e2e_request_latency_seconds", TAIL, total=4.2, **own),
    ]


LMDEPLOY_SIGNALS = {**SGLANG_SIGNALS, Signal.ARRIVALS: 2.0, Signal.WAITING: 10}


def trtllm() -> list[Line]:
    own = {"model_name": MODEL, "engine_type": "trtllm"}
    return [
        level("trtllm_num_requests_running", 7, **own),
        level("trtllm_num_requests_waiting", 3, **own),
        level("trtllm_kv_cache_utilization", 0.4375, **own),
        rising("trtllm_request_success_total", 1.0, **own, finished_reason="length"),
        rising("trtllm_prompt_tokens_total", 800, **own),
        rising("trtllm_generation_tokens_total", 150, **own),
        *histogram("trtllm_time_to_first_token_seconds", TAIL, **own),
        *histogram("trtllm_time_per_output_token_seconds", TAIL, **own),
        *histogram("trtllm_e2e_request_latency_seconds", TAIL, total=4.2, **own),
    ]


TRTLLM_SIGNALS = {**SGLANG_SIGNALS, Signal.ARRIVALS: 2.0}


def triton() -> list[Line]:
    """Triton with the TensorRT-LLM backend, whose gauges carry the backend's name instead of the model's."""
    own = {"model": "ensemble", "version": "1"}
    backend = {"model": "tensorrt_llm", "version": "1"}
    return [
        rising("nv_inference_request_success", 1.0, **own),
        rising("nv_inference_request_failure", 0.1, **own, reason="REJECTED"),
        level("nv_inference_pending_request_count", 4, **own),
        rising("nv_inference_request_duration_us", 4.2e6, **own),
        level("nv_trt_llm_request_metrics", 7, **backend, request_type="scheduled"),
        level("nv_trt_llm_request_metrics", 3, **backend, request_type="waiting"),
        level("nv_trt_llm_kv_cache_block_metrics", 25, **backend, kv_cache_block_type="used"),
        level("nv_trt_llm_kv_cache_block_metrics", 100, **backend, kv_cache_block_type="max"),
        *histogram(
            "nv_inference_first_response_histogram_ms",
            {"100": 0.2, "500": 0.9, "1000": 1.0, "+Inf": 1.0},
            model="ensemble",
            version="1",
        ),
    ]


TRITON_SIGNALS = {
    Signal.ARRIVALS: 2.2,
    Signal.IN_FLIGHT: 14,
    Signal.WAITING: 6,
    Signal.KV_USAGE: 0.25,
    Signal.TTFT_P95: P95,
    Signal.DURATION_MEAN: 4.2,
}


def llamacpp() -> list[Line]:
    return [
        level("llamacpp:requests_processing", 7),
        level("llamacpp:requests_deferred", 3),
        rising("llamacpp:prompt_tokens_total", 800),
        rising("llamacpp:tokens_predicted_total", 150),
    ]


LLAMACPP_SIGNALS = {Signal.IN_FLIGHT: 14, Signal.WAITING: 6, Signal.TOKENS_IN: 1600, Signal.TOKENS_OUT: 300}


def dynamo_frontend() -> list[Line]:
    own = {"model": MODEL.lower()}
    kind = {"endpoint": "chat_completions", "request_type": "stream"}
    return [
        rising("dynamo_frontend_requests_started_total", 2.2, **own, **kind),
        rising("dynamo_frontend_requests_total", 2.0, **own, **kind, status="success"),
        level("dynamo_frontend_active_requests", 14, **own),
        level("dynamo_frontend_queued_requests", 6, **own),
        *histogram("dynamo_frontend_time_to_first_token_seconds", TAIL, **own),
        *histogram("dynamo_frontend_inter_token_latency_seconds", TAIL, **own),
        *histogram("dynamo_frontend_request_duration_seconds", TAIL, total=4.2, **own),
        rising("dynamo_frontend_input_sequence_tokens_sum", 1600, **own),
        rising("dynamo_frontend_output_tokens_total", 300, **own),
    ]


DYNAMO_SIGNALS = {**SGLANG_SIGNALS, Signal.ARRIVALS: 2.2}


def llm_d_picker() -> list[Line]:
    names = {"model_name": "asked-for", "target_model_name": MODEL}
    attempts = {"target_model_name": MODEL, "port": "8000", "status": "success"}
    return [
        rising("llm_d_epp_scheduler_attempts_total", 1.5, **attempts, endpoint_name="pod-0"),
        rising("llm_d_epp_scheduler_attempts_total", 1.0, **attempts, endpoint_name="pod-1"),
        rising("llm_d_epp_scheduler_attempts_total", 7.0, **{**attempts, "status": "failure"}, endpoint_name=""),
        level("llm_d_epp_flow_control_queue_size", 12, **names, inference_pool="pool", fairness_id="a", priority="0"),
    ]


def gateway_picker() -> list[Line]:
    attempts = {"target_model_name": MODEL, "port": "8000", "status": "success"}
    queue = {"inference_pool": "pool", "fairness_id": "a", "priority": "0"}
    return [
        rising("inference_extension_scheduler_attempts_total", 2.5, **attempts, pod_name="pod-0"),
        level("inference_extension_flow_control_queue_size", 8, **queue, model_name="x", target_model_name=MODEL),
        level("inference_extension_flow_control_queue_size", 4, **queue, model_name=MODEL, target_model_name=""),
    ]


def router() -> list[Line]:
    """The production-stack router: true arrivals, and the engines' gauges once more under their own names."""
    return [
        rising("vllm:num_incoming_requests_total", 2.5, model=MODEL),
        level("vllm:num_requests_running", 100, server="http://10.0.1.17:8000"),
    ]


def ray() -> list[Line]:
    """vLLM as Ray Serve shows it: two workers on one node's page."""
    return [
        dataclasses.replace(line, name=line.name.replace("vllm:", "ray_vllm_")).labelled(WorkerId=worker)
        for line in vllm(renamed=True)
        for worker in ("w1", "w2")
    ]


def shapes(*, at: float) -> dict[str, Shape]:
    """All of them by namespace, with the signals at the lines' time `at`."""
    of_vllm = vllm_signals(at=at)
    twice = {signal: value * (2 if signal in _ADDED else 1) for signal, value in of_vllm.items()}
    picked = {**of_vllm, Signal.ARRIVALS: 2.5, Signal.WAITING: of_vllm[Signal.WAITING] + 12}
    return {
        "vllm-new": Shape("vllm", MODEL, vllm(renamed=True), of_vllm),
        "vllm-old": Shape("vllm", MODEL, vllm(renamed=False), of_vllm),
        "vllm-routed": Shape("vllm", MODEL, vllm(renamed=True), {**of_vllm, Signal.ARRIVALS: 2.5}, router()),
        "llm-d": Shape("llm_d", MODEL, vllm(renamed=True), picked, llm_d_picker()),
        "gateway": Shape("gateway_api", MODEL, vllm(renamed=True), picked, gateway_picker()),
        "ray": Shape("ray_vllm", MODEL, ray(), twice),
        "sglang": Shape("sglang", MODEL, sglang(), {**SGLANG_SIGNALS, Signal.COMPLETIONS: 1.6}),
        "tgi": Shape("tgi", "", tgi(), TGI_SIGNALS),
        "lmdeploy": Shape("lmdeploy", MODEL, lmdeploy(), LMDEPLOY_SIGNALS),
        "trtllm": Shape("trtllm", MODEL, trtllm(), TRTLLM_SIGNALS),
        "triton": Shape("triton", "ensemble", triton(), TRITON_SIGNALS),
        "llamacpp": Shape("llamacpp", "", llamacpp(), LLAMACPP_SIGNALS),
        "dynamo": Shape("dynamo", MODEL, vllm(renamed=True), DYNAMO_SIGNALS, dynamo_frontend()),
    }


_ADDED = (Signal.ARRIVALS, Signal.IN_FLIGHT, Signal.WAITING, Signal.TOKENS_IN, Signal.TOKENS_OUT, Signal.COMPLETIONS)
