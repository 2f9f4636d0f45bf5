"""PromQL of one's own triggers: what is understood, and how the rest is refused."""

import dataclasses

import pytest

from models.policy.context import Supply
from models.policy.protocol import Observation, Pod
from models.signals import Signal
from predictor.replay import simulatemetrics, simulatequeries
from predictor.replay.simulatemetrics import RefusedError
from tests.fakes.observations import observe

PODS = (Pod("a", running=10.0, waiting=2.0, kv_usage=0.5), Pod("b", running=30.0, waiting=4.0, kv_usage=0.9))
RATES = {
    Signal.ARRIVALS: 5.0,
    Signal.COMPLETIONS: 4.0,
    Signal.TOKENS_IN: 400.0,
    Signal.TTFT_P95: 1.5,
    Signal.ITL_P95: 0.04,
}


def seen(pods: tuple[Pod, ...] = PODS) -> Observation:
    return dataclasses.replace(observe(RATES, replicas=2), supply=Supply(len(pods)), pods=pods)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("sum(vllm:num_requests_waiting)", 6.0),
        ("sum(vllm_num_requests_waiting)", 6.0),  # as an adapter writes it
        ('sum(vllm:num_requests_running{namespace="a",model_name=~"x}.*"})', 40.0),
        ("sum by (namespace) (vllm:num_requests_running + vllm:num_requests_waiting)", 46.0),
        ("sum(vllm:num_requests_running) by (model_name) + sum(vllm:num_requests_waiting)", 46.0),
        ("avg(vllm:kv_cache_usage_perc) * 100", 70.0),
        ("100 * max(vllm:gpu_cache_usage_perc)", 90.0),
        ("sum(vllm:num_requests_waiting) / count(vllm:num_requests_waiting)", 3.0),
        ("2 + 3 * sum(vllm:num_requests_waiting) - (4 - 1)", 17.0),
        ('sum(rate(istio_requests_total{destination_service="llama"}[5m]))', 4.0),
        ("sum(rate(vllm:request_success_total[1m]))", 4.0),
        ("sum(increase(envoy_cluster_upstream_rq_total[2m]))", 600.0),
        ("avg(irate(vllm:prompt_tokens_total[1m]))", 200.0),
        ("histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m])))", 1.5),
        ("histogram_quantile(0.95, sum(rate(vllm:inter_token_latency_seconds_bucket[1m])) by (le)) * 1e3", 40.0),
        ("sum(sglang:num_running_reqs + sglang:num_queue_reqs) or vector(0)", 46.0),
        ("sum(\n  tgi_queue_size # what waits\n) or on() vector(0)", 6.0),
    ],
)
def test_a_query_reads_what_prometheus_would_answer(query: str, wanted: float) -> None:
    assert simulatequeries.read(query).query.read(seen()) == pytest.approx(wanted)


def test_without_pods_there_are_no_series_and_a_default_where_one_is_written() -> None:
    found = [
        simulatequeries.read(text).query.read(seen(()))
        for text in ("sum(vllm:num_requests_waiting)", "sum(vllm:num_requests_waiting) or vector(0)")
    ]
    assert found == [None, 0.0]


def test_a_gateway_counts_on_without_pods_arrivals_and_what_ends() -> None:
    asleep = dataclasses.replace(observe({Signal.ARRIVALS: 5.0}, replicas=1), supply=Supply(0, 1), pods=())
    names = ("envoy_cluster_upstream_rq_total", "istio_requests_total", "vllm:request_success_total")
    found = [simulatequeries.read(f"sum(rate({name}[1m]))").query.read(asleep) for name in names]
    assert found == [5.0, 0.0, None]


def test_what_differs_from_a_real_metric_is_said_once() -> None:
    twice = "sum(rate(istio_requests_total[30s])) + sum(rate(istio_requests_total[30s]))"
    assert simulatequeries.read(twice).doubts == (
        f"istio_requests_total {simulatemetrics.AT_END}",
        "rate(istio_requests_total) is looked at over 60 s, not 30 s",
    )
    assert simulatequeries.read("sum(vllm:num_requests_waiting)").doubts == ()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "not understood at its end: understood are sum, avg"),
        (
            "sum(my_queue)",
            "at 'my_queue', after 'sum \\(': the metric 'my_queue' is none that .* write what it ",
        ),
        ("my_queue", "the metric 'my_queue' is none"),
        ("vllm:num_requests_waiting", "one series a pod, and an autoscaler needs one number: write sum"),
        ("rate(istio_requests_total[1m])", "write sum"),
        ("sum by (pod) (vllm:num_requests_waiting)", "leaves one series a pod"),
        ("sum by (tenant) (vllm:num_requests_waiting)", "at 'tenant'.* leave the label out"),
        ("sum without (pod) (vllm:num_requests_waiting)", "'without' keeps unknown labels"),
        ("sum(vllm:num_requests_waiting", "at its end, .*'\\)' was expected there"),
        ("sum(vllm:num_requests_waiting) > 3", "at '>'"),
        ("sum(vllm:num_requests_waiting offset 7d)", "at 'offset'"),
        ("clamp_min(sum(vllm:num_requests_waiting), 1)", "at 'clamp_min'"),
        ("sum(max_over_time(vllm:num_requests_waiting[5m]))", "at 'max_over_time'"),
        ("sum(rate(vllm:num_requests_waiting[1m]))", "is a gauge, which has no rate"),
        ("sum(vllm:prompt_tokens_total)", "only ever grows: write rate"),
        ("sum(rate(vllm:prompt_tokens_total))", "a rate needs a window"),
        ("sum(rate(vllm:prompt_tokens_total[soon]))", "this is no window; write one like"),
        ("max(rate(vllm:prompt_tokens_total[1m]))", "max of a rate is not known pod by pod"),
        ("avg(rate(istio_requests_total[1m]))", "the mean over a gateway's series"),
        ("sum(vllm:num_requests_waiting + rate(vllm:prompt_tokens_total[1m]))", "a gauge and a rate"),
        ('sum(rate(istio_requests_total{response_code="503"}[1m]))', "the label 'response_code' picks some"),
        ("histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m])))", "0.95 alone"),
        ("histogram_quantile(0.95, sum by (le) (rate(vllm:prompt_tokens_total[1m])))", "one known histogram"),
        ("sum(rate(vllm:time_to_first_token_seconds_bucket[1m]))", "inside histogram_quantile"),
        ("sum(vllm:num_requests_waiting) sum(vllm:num_requests_waiting)", "at 'sum', after"),
        ("sum(5)", "at '5'"),
        ("* 5", r"at '\*'"),
    ],
)
def test_what_is_not_understood_is_refused_at_its_place(query: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        simulatequeries.read(query)


def test_a_name_alone_must_be_that_of_a_gauge() -> None:
    assert simulatemetrics.gauge("vllm:kv_cache_usage_perc") is Signal.KV_USAGE
    with pytest.raises(RefusedError, match="is a counter, of which an adapter makes some rate"):
        simulatemetrics.gauge("istio_requests_total")
    with pytest.raises(RefusedError, match="'queue' is none that the simulated fleet has"):
        simulatemetrics.gauge("queue")
