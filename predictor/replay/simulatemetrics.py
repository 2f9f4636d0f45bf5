"""A user's own metrics that the simulated fleet has, by their names in engines and gateways."""

import dataclasses
import enum
from collections.abc import Mapping

from models.signals import Signal


class RefusedError(ValueError):
    """A metric or a query that cannot be simulated: what of it, and the remedy."""


class Kind(enum.Enum):
    """What a metric is, which says how a query must read it."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """What a metric measures.

    Attributes:
        signal: of the fleet.
        kind: gauge, counter or buckets of a histogram.
        of_pods: whether the engine has it, so that there is none without a ready pod.
        doubt: how the fleet's value differs; empty where it does not.
    """

    signal: Signal
    kind: Kind = Kind.GAUGE
    of_pods: bool = True
    doubt: str = ""


AT_END = "counts a request when it ends, also where the client gave up: those are left out here"
_GATEWAY_END = Metric(Signal.COMPLETIONS, Kind.COUNTER, of_pods=False, doubt=AT_END)
# By name with _ for :, as adapters write them.
KNOWN: Mapping[str, Metric] = {
    "vllm_num_requests_running": Metric(Signal.IN_FLIGHT),
    "vllm_num_requests_waiting": Metric(Signal.WAITING),
    "vllm_kv_cache_usage_perc": Metric(Signal.KV_USAGE),
    "vllm_gpu_cache_usage_perc": Metric(Signal.KV_USAGE),
    "vllm_prompt_tokens_total": Metric(Signal.TOKENS_IN, Kind.COUNTER),
    "vllm_generation_tokens_total": Metric(Signal.TOKENS_OUT, Kind.COUNTER),
    "vllm_request_success_total": Metric(Signal.COMPLETIONS, Kind.COUNTER),
    "vllm_time_to_first_token_seconds_bucket": Metric(Signal.TTFT_P95, Kind.HISTOGRAM),
    "vllm_inter_token_latency_seconds_bucket": Metric(Signal.ITL_P95, Kind.HISTOGRAM),
    "vllm_time_per_output_token_seconds_bucket": Metric(Signal.ITL_P95, Kind.HISTOGRAM),
    "sglang_num_running_reqs": Metric(Signal.IN_FLIGHT),
    "sglang_num_queue_reqs": Metric(Signal.WAITING),
    "sglang_token_usage": Metric(Signal.KV_USAGE),
    "sglang_time_to_first_token_seconds_bucket": Metric(Signal.TTFT_P95, Kind.HISTOGRAM),
    "trtllm_num_requests_running": Metric(Signal.IN_FLIGHT),
    "trtllm_num_requests_waiting": Metric(Signal.WAITING),
    "tgi_batch_current_size": Metric(Signal.IN_FLIGHT),
    "tgi_queue_size": Metric(Signal.WAITING),
    "envoy_cluster_upstream_rq_total": Metric(Signal.ARRIVALS, Kind.COUNTER, of_pods=False),
    "istio_requests_total": _GATEWAY_END,
    "nginx_ingress_controller_requests": _GATEWAY_END,
    "traefik_service_requests_total": _GATEWAY_END,
}


def metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        RefusedError: the fleet has none like it.
    """
    found = KNOWN.get(name.replace(":", "_"))
    if found is None:
        ours = ", ".join(known for known in KNOWN if known.startswith(("vllm", "istio")))
        raise RefusedError(
            f"the metric {name!r} is none that the simulated fleet has; in a copy of the file, write what it measures "
            f"as one of {ours}; docs/simulate.md lists them all"
        )
    return found


def gauge(name: str) -> Signal:
    """The signal of a gauge, for a metric that is given by its name alone.

    Raises:
        RefusedError: the fleet has none like it, or it is no gauge.
    """
    found = metric(name)
    if found.kind is not Kind.GAUGE:
        raise RefusedError(
            f"the metric {name!r} is a {found.kind.value}, of which an adapter makes some rate that the name alone "
            "does not tell; write it as a query in a ScaledObject's prometheus trigger"
        )
    return found.signal
