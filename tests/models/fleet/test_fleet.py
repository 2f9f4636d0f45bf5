import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import parser

from models.fleet import engine, fleet

SMALL = dataclasses.replace(engine.QWEN_32B_H100_TP2, max_num_seqs=32)


def steady(rate: float, seconds: float, *, seed: int = 7, prompt: int = 800, output: int = 300) -> fleet.Arrivals:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
    lengths = np.ones(len(times), dtype=np.int64)
    return fleet.Arrivals(times, lengths * prompt, lengths * output)


def served(arrivals: fleet.Arrivals, *, replicas: int, until: float) -> fleet.Fleet:
    simulated = fleet.Fleet(SMALL)
    for number in range(replicas):
        simulated.add(f"r{number}")
    simulated.offer(arrivals)
    simulated.advance(until)
    return simulated


def assert_conserved(simulated: fleet.Fleet) -> None:
    card = simulated.scorecard()
    assert card.requests == card.finished + card.in_flight + card.rejected


@settings(max_examples=30, deadline=None)
@given(
    rate=st.floats(0.5, 20),
    replicas=st.integers(0, 4),
    drained_at=st.floats(1, 119),
    seed=st.integers(0, 2**16),
)
def test_no_request_is_lost_whatever_comes_and_goes(rate: float, replicas: int, drained_at: float, seed: int) -> None:
    simulated = served(steady(rate, 120, seed=seed), replicas=replicas, until=drained_at)
    for name in simulated.ready[1:]:
        simulated.remove(name)
        assert_conserved(simulated)
    simulated.advance(120)
    simulated.add("late")
    assert_conserved(simulated)
    simulated.advance(10_000)
    assert_conserved(simulated)
    assert simulated.scorecard().in_flight == 0


def test_in_steady_state_the_number_in_flight_is_rate_times_duration() -> None:
    rate, simulated = 6.0, fleet.Fleet(SMALL)
    for name in ("a", "b", "c"):
        simulated.add(name)
    simulated.offer(steady(rate, 2000))
    in_flight = []
    for second in range(100, 2000):
        simulated.advance(second)
        in_flight.append(simulated.running + simulated.queued)
    simulated.advance(3000)
    pages = [value_of(simulated.page(name), "vllm:e2e_request_latency_seconds_sum") for name in simulated.ready]
    delay = engine.QWEN_32B_H100_TP2.law.alpha0 * engine.MILLISECOND
    duration = sum(pages) / simulated.scorecard().finished - delay
    assert np.mean(in_flight) == pytest.approx(rate * duration, rel=0.03)


def value_of(text: str, name: str) -> float:
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name:
                return sample.value
    raise AssertionError(f"{name} is not on the page")


def test_the_same_arrivals_in_pieces_give_the_same_result() -> None:
    arrivals = steady(14, 300)
    whole = served(arrivals, replicas=3, until=400)
    pieces = fleet.Fleet(SMALL)
    for number in range(3):
        pieces.add(f"r{number}")
    for second in range(400):
        chosen = (arrivals.times >= second) & (arrivals.times < second + 1)
        pieces.offer(
            fleet.Arrivals(arrivals.times[chosen], arrivals.prompt_tokens[chosen], arrivals.output_tokens[chosen])
        )
        pieces.advance(second + 1)
    assert pieces.scorecard() == whole.scorecard()
    assert [pieces.snapshot(name) for name in pieces.ready] == [whole.snapshot(name) for name in whole.ready]


def test_more_replicas_never_serve_fewer_in_time() -> None:
    missed = [served(steady(16, 300), replicas=n, until=300).scorecard().missed_ttft for n in range(1, 8)]
    assert missed == sorted(missed, reverse=True)
    assert missed[0] > 0
    assert missed[-1] == 0


def at_rate(rate: float) -> tuple[int, int, float]:
    simulated = served(steady(rate, 900), replicas=1, until=900)
    gauges, p99 = simulated.snapshot("r0"), simulated.scorecard().ttft[0.99]
    assert p99 is not None
    return gauges.running, gauges.waiting, p99


def test_the_knee_lies_where_the_batch_is_full() -> None:
    """Below max_num_seqs in flight nobody waits and the first token is quick; just above, the queue has no end."""
    for rate in (1.0, 2.0, 3.0, 4.0):
        running, waiting, ttft = at_rate(rate)
        assert running < 32
        assert waiting == 0
        assert ttft < 1
    for rate in (6.5, 8.0):
        running, waiting, ttft = at_rate(rate)
        assert running == 32
        assert waiting > 100
        assert ttft > 5


def test_a_first_token_on_an_idle_replica_takes_a_prefill_a_step_and_the_http_delay() -> None:
    one = fleet.Arrivals(np.array([1.0]), np.array([1000]), np.array([2]))
    simulated = served(one, replicas=1, until=10)
    # milliseconds: 12 alpha0; prefill (7.71^4 + 47.52^4)^(1/4) - 7.71 + 2.46e-6 * 1e6 / 2 = 41.05;
    # step 6.79 + 7.71 + 0.005 + 0.5 + 4.16e-5 * 1001 = 15.05
    assert value_of(simulated.page("r0"), "vllm:time_to_first_token_seconds_sum") == pytest.approx(0.0681, abs=2e-4)


def test_a_drained_replica_finishes_what_it_runs_and_hands_on_what_waits() -> None:
    simulated = served(steady(12, 60), replicas=2, until=60)
    before = simulated.snapshot("r0")
    assert before.waiting > 0
    other = simulated.snapshot("r1").waiting
    simulated.remove("r0")
    assert simulated.draining == ("r0",)
    assert simulated.snapshot("r0").running == before.running
    assert simulated.snapshot("r1").waiting == other + before.waiting
    simulated.advance(300)
    assert simulated.draining == ()
    assert simulated.scorecard().finished == simulated.scorecard().requests
    with pytest.raises(KeyError, match="r0"):
        simulated.page("r0")


def test_without_a_ready_replica_requests_wait_in_the_router_until_its_time_out() -> None:
    simulated = fleet.Fleet(SMALL, router_timeout=30)
    ones = np.ones(3, dtype=np.int64)
    simulated.offer(fleet.Arrivals(np.array([0.0, 10.0, 25.0]), ones, ones))
    simulated.advance(26)
    assert (simulated.queued, simulated.scorecard().rejected) == (3, 0)
    simulated.advance(35)
    assert (simulated.queued, simulated.scorecard().rejected) == (2, 1)
    simulated.add("late")
    simulated.advance(60)
    card = simulated.scorecard()
    assert (card.finished, card.rejected, card.missed_ttft) == (2, 1, 2)


def test_requests_that_come_back_keep_their_place_by_arrival() -> None:
    simulated = served(steady(12, 60), replicas=1, until=60)
    waiting = simulated.queued
    assert waiting > 0
    simulated.remove("r0")
    assert simulated.queued == waiting
    simulated.advance(61)
    simulated.add("r1")
    assert simulated.queued + simulated.running >= waiting - simulated.scorecard().rejected


def test_a_request_that_fits_no_replica_is_rejected() -> None:
    huge = fleet.Arrivals(np.array([0.0]), np.array([400_000]), np.array([10]))
    assert served(huge, replicas=1, until=1).scorecard().rejected == 1


def test_kv_room_bounds_the_batch_before_the_slots_do() -> None:
    tight = dataclasses.replace(SMALL, kv_tokens=10_000)
    simulated = fleet.Fleet(tight)
    simulated.add("r0")
    simulated.offer(steady(20, 10))
    simulated.advance(10)
    gauges = simulated.snapshot("r0")
    assert gauges.running == 10  # 800 prompt and 150 of output each: the eleventh does not fit
    assert gauges.kv_usage == pytest.approx(0.95)
    assert gauges.waiting > 0


def test_the_page_parses_and_has_the_names_the_product_reads() -> None:
    simulated = served(steady(3, 60), replicas=1, until=60)
    families = {f.name: f for f in parser.text_string_to_metric_families(simulated.page("r0"))}
    assert set(families) == {
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:num_preemptions",
        "vllm:prompt_tokens",
        "vllm:generation_tokens",
        "vllm:request_success",
        "vllm:time_to_first_token_seconds",
        "vllm:inter_token_latency_seconds",
        "vllm:e2e_request_latency_seconds",
        "vllm:cache_config_info",
    }
    samples = [s for f in families.values() for s in f.samples]
    assert all(s.labels["engine"] == "0" for s in samples)
    assert all(s.labels.get("model_name") == SMALL.model for s in samples if s.name != "vllm:cache_config_info")
    assert families["vllm:cache_config_info"].samples[0].labels["kv_cache_size_tokens"] == str(SMALL.kv_tokens)
    reasons = [s.labels["finished_reason"] for s in families["vllm:request_success"].samples]
    assert reasons == ["stop", "length", "abort"]
    ttft = [s for s in families["vllm:time_to_first_token_seconds"].samples if s.name.endswith("_bucket")]
    assert [s.value for s in ttft] == sorted(s.value for s in ttft)
    assert ttft[-1].labels["le"] == "+Inf"


def test_counters_on_the_page_never_fall_and_agree_with_the_requests() -> None:
    simulated = fleet.Fleet(SMALL)
    simulated.add("r0")
    simulated.offer(steady(3, 100))
    generated, prompts = [], []
    for second in range(1, 200):
        simulated.advance(second)
        generated.append(simulated.snapshot("r0").generation_tokens)
        prompts.append(simulated.snapshot("r0").prompt_tokens)
    assert generated == sorted(generated)
    assert prompts == sorted(prompts)
    card = simulated.scorecard()
    assert generated[-1] == card.requests * 300
    assert prompts[-1] == card.requests * 800
    assert value_of(simulated.page("r0"), "vllm:inter_token_latency_seconds_count") == card.requests * 299


def test_bad_calls_are_refused_with_the_numbers() -> None:
    simulated = served(steady(1, 10), replicas=1, until=20)
    ones = np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="exists already"):
        simulated.add("r0")
    with pytest.raises(KeyError, match="r9"):
        simulated.remove("r9")
    with pytest.raises(ValueError, match="cannot go back"):
        simulated.advance(10)
    with pytest.raises(ValueError, match="offer in order"):
        simulated.offer(fleet.Arrivals(np.array([15.0]), ones, ones))
    with pytest.raises(ValueError, match="times fall"):
        fleet.Arrivals(np.array([2.0, 1.0]), np.ones(2, dtype=np.int64), np.ones(2, dtype=np.int64))
    with pytest.raises(ValueError, match="no prompt"):
        fleet.Arrivals(np.array([2.0]), ones * 0, ones)
    with pytest.raises(ValueError, match="differ in length"):
        fleet.Arrivals(np.array([2.0]), np.ones(2, dtype=np.int64), ones)
