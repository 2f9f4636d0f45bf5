import dataclasses

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from models.fleet import profiles, replay
from tests.models.fleet import cases
from tests.models.fleet.stepwise import Stepwise

LAW = profiles.LLAMA_8B_RTX4090.law


def times(profile: profiles.Profile, *each: tuple[float, int, int]) -> tuple[list[float], list[float]]:
    pool = replay.serve(profile, cases.requests(*each))
    return pool.log["first"].round(9).tolist(), pool.log["end"].round(9).tolist()


def test_one_request_takes_its_prefill_and_one_step_for_each_further_token() -> None:
    # 10 ms + 100 tokens x 0.01 ms, then two steps of 10 ms + 1 token x 0.01 ms
    first, end = times(cases.PLAIN, (0.0, 100, 3))
    assert first == [0.011]
    assert end == [0.03102]


def test_an_arrival_joins_at_the_next_step() -> None:
    first, _ = times(cases.PLAIN, (0.0, 100, 10), (0.015, 100, 1))
    # steps end at .011, .02101; the next one has one decode and 100 tokens of prefill: 10 + 1.01 ms
    assert first[1] == pytest.approx(0.02101 + 0.01101)


def test_planned_ahead_it_joins_one_step_later() -> None:
    ahead = dataclasses.replace(cases.PLAIN, async_scheduling=True)
    first, _ = times(ahead, (0.0, 100, 10), (0.015, 100, 1))
    assert first[1] == pytest.approx(0.02101 + 0.01001 + 0.01101)


def test_a_long_prompt_is_prefilled_in_chunks_of_the_budget_while_others_decode() -> None:
    profile = dataclasses.replace(cases.PLAIN, token_budget=50)
    first, _ = times(profile, (0.0, 10, 10), (0.001, 100, 1))
    # step 1: 10 tokens; then chunks of 49, 49 and 2 beside one decode: 10.5 ms twice, then 10.03
    assert first[1] == pytest.approx(0.0101 + 0.0105 + 0.0105 + 0.01003)


def test_the_batch_holds_max_num_seqs() -> None:
    profile = dataclasses.replace(cases.PLAIN, max_num_seqs=2)
    pool = replay.serve(profile, cases.requests(*[(0.0, 10, 5)] * 6))
    assert pool.state["peak_running"] == 2
    assert pool.state["finished"] == 6


def test_what_can_never_fit_is_rejected_and_the_rest_is_served() -> None:
    pool = replay.serve(cases.PLAIN, cases.requests((0.0, 900, 200), (0.0, 100, 5)))
    assert (pool.state["rejected"], pool.state["finished"]) == (1, 1)
    assert np.isnan(pool.log["end"][0])


def test_the_newest_is_preempted_when_the_next_tokens_do_not_fit_and_is_computed_again() -> None:
    # 999 tokens of room; 450 + 450 and growing: full after 49 further tokens each
    pool = replay.serve(cases.PLAIN, cases.requests((0.0, 450, 100), (0.0, 450, 100)))
    assert pool.state["preempted"] == 1
    assert pool.state["finished"] == 2
    assert pool.log["end"][0] < pool.log["end"][1]


def test_the_closed_form_agrees_with_single_steps_on_the_measured_law() -> None:
    profile = dataclasses.replace(profiles.LLAMA_8B_RTX4090, async_scheduling=False)
    assert_agrees(profile, cases.drawn(4, 200, prompt=900, output=400))


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    seed=st.integers(0, 10_000),
    block=st.sampled_from([1, 4, 16]),
    reserve=st.booleans(),
    ahead=st.booleans(),
    budget=st.sampled_from([40, 300, 2048]),
    rate=st.sampled_from([2.0, 20.0, 200.0]),
    kv=st.sampled_from([600, 2000, 20_000]),
)
def test_every_request_ends_when_single_steps_say(  # noqa: PLR0913  (every option at once)
    *, seed: int, block: int, reserve: bool, ahead: bool, budget: int, rate: float, kv: int
) -> None:
    profile = profiles.Profile(
        "drawn", "drawn", LAW, kv, "made up", max_num_seqs=12, block=block, reserve_prompt=reserve,
        async_scheduling=ahead, token_budget=budget,
    )  # fmt: skip
    given = cases.drawn(rate, 40, seed=seed, prompt=120, output=40)
    assert_agrees(profile, given.select(given.prompts + given.outputs < kv - 2 * block))


def assert_agrees(profile: profiles.Profile, given: object) -> None:
    slow = Stepwise(profile, given)
    slow.serve()
    pool = replay.serve(profile, given)
    np.testing.assert_allclose(pool.log["first"], [each.first for each in slow.sequences], rtol=1e-9)
    np.testing.assert_allclose(pool.log["end"], [each.end for each in slow.sequences], rtol=1e-9)
    assert int(pool.state["preempted"]) == slow.preemptions
    assert int(pool.state["peak_running"]) == slow.peak
