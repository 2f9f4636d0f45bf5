import dataclasses

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from models.fleet import layout, page, profiles
from tests.models.fleet import cases


def values(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "le" not in sample.labels:
                found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


@pytest.mark.parametrize("block", [1, 16])
def test_the_page_says_what_a_scrape_at_the_same_moment_saw(block: int) -> None:
    profile = dataclasses.replace(profiles.LLAMA_8B_H100, block=block)
    pool = cases.pool_of(1, profile, scrape_interval=5.0)
    pool.offer(cases.drawn(15, 2000))
    for _ in range(12):
        cases.advance(pool, float(pool.replicas["scrape_at"][0]))
        rows = pool.memory.scrapes[0]
        row = rows[np.nanargmax(rows[:, layout.AT])]
        seen = values(page.render(pool, 0))
        assert row[layout.AT] == pool.now
        for name, column in (
            ("vllm:num_requests_running", layout.SEEN_RUNNING),
            ("vllm:num_requests_waiting", layout.SEEN_WAITING),
            ("vllm:kv_cache_usage_perc", layout.SEEN_KV),
            ("vllm:prompt_tokens_total", layout.SEEN_PROMPT),
            ("vllm:generation_tokens_total", layout.SEEN_TOKENS),
            ("vllm:request_success_total", layout.SEEN_FINISHED),
            ("vllm:time_to_first_token_seconds_sum", layout.SEEN_TTFT_SUM),
        ):
            assert seen[name] == pytest.approx(row[column]), name


def test_its_histograms_count_every_token_and_request() -> None:
    pool = cases.pool_of(1, profiles.LLAMA_8B_H100)
    given = cases.drawn(10, 500)
    pool.offer(given)
    cases.advance(pool, 1000.0)
    seen = values(page.render(pool, 0))
    assert seen["vllm:e2e_request_latency_seconds_count"] == 500
    assert seen["vllm:inter_token_latency_seconds_count"] == (given.outputs - 1).sum()
    assert seen["vllm:generation_tokens_total"] == given.outputs.sum()


def test_an_empty_slot_has_no_page() -> None:
    with pytest.raises(KeyError, match="no engine runs in slot 0"):
        page.render(cases.pool_of(0), 0)
