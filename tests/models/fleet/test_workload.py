import gzip
import hashlib
import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from models.fleet import latency, requests, workload
from models.fleet.latency import Latency
from models.fleet.requests import Requests
from models.fleet.workload import Counts, FromCounts, Surge, Synthetic
from tests.models.fleet import cases

FILE = "arrival_s,prompt_tokens,output_tokens\n0.5,10,2\n0.25,20,0\n3.0,30,4\n"


def same(one: Requests, other: Requests) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.chunk(), other.chunk(), strict=True))


def test_a_request_file_is_read_in_order_of_time_with_at_least_one_token() -> None:
    found = workload.read_requests(FILE)
    assert found.times.tolist() == [0.25, 0.5, 3.0]
    assert found.prompts.tolist() == [20, 10, 30]
    assert found.outputs.tolist() == [1, 2, 4]


def test_a_file_with_other_columns_or_empty_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="prompt_tokens, output_tokens are missing; there are arrival_s, x"):
        workload.read_requests("arrival_s,x\n1,2\n")
    with pytest.raises(ValueError, match="empty cells"):
        workload.read_requests("arrival_s,prompt_tokens,output_tokens\n1,,2\n")


def test_an_empty_cell_of_counts_is_unknown_and_not_zero() -> None:
    counts = workload.read_counts("minute,requests,prompt_tokens,output_tokens\n0,60,600,60\n1,,,\n2,120,2400,120\n")
    assert counts.step == 60
    assert counts.requests.tolist() == [60, 90, 120]
    assert counts.prompt.tolist() == [10, 15, 20]


def test_counts_without_tokens_take_the_usual_lengths() -> None:
    counts = workload.read_counts("minute,requests,prompt_tokens,output_tokens\n0,6,,\n10,5,,\n", prompt=7, output=3)
    assert (counts.step, counts.prompt.tolist(), counts.output.tolist()) == (600, [7, 7], [3, 3])


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(
    cuts=st.lists(st.floats(0, 600), max_size=6), seed=st.integers(0, 99), cv=st.sampled_from([0.5, 1.0, 4.0])
)
def test_pieces_of_a_source_are_the_whole(cuts: list[float], seed: int, cv: float) -> None:
    edges = [0.0, *sorted(cuts), 600.0]
    for source in (
        FromCounts(Counts(60, np.full(10, 50.0), np.full(10, 100.0), np.full(10, 20.0)), seed=seed, cv=cv, scale=1.7),
        Synthetic(rate=2, seed=seed, cv=cv, turns=3),
    ):
        parts = requests.joined(source.between(a, b) for a, b in itertools.pairwise(edges))
        assert same(parts, source.between(0, 600))


def test_counts_come_out_exactly_and_with_their_tokens_on_average() -> None:
    counts = Counts(60, np.array([0.0, 500.0, 100.0]), np.array([50.0, 800.0, 300.0]), np.array([5.0, 90.0, 30.0]))
    found = FromCounts(counts).between(0, 180)
    assert np.histogram(found.times, [0, 60, 120, 180])[0].tolist() == [0, 500, 100]
    middle = found.between(60, 120)
    assert middle.prompts.mean() == pytest.approx(800, rel=0.15)
    assert middle.outputs.mean() == pytest.approx(90, rel=0.15)


@pytest.mark.parametrize("factor", [0.1, 0.5, 1.0, 2.3])
def test_scaling_thins_or_repeats_binomially_and_keeps_tokens_with_their_request(factor: float) -> None:
    given = cases.drawn(50, 20_000)
    found = workload.scaled(given, factor, np.random.default_rng(1))
    assert len(found) == pytest.approx(factor * len(given), rel=0.05)
    pairs = set(zip(given.prompts.tolist(), given.outputs.tolist(), strict=True))
    assert set(zip(found.prompts.tolist(), found.outputs.tolist(), strict=True)) <= pairs
    assert (np.diff(found.times) >= 0).all()
    counts = FromCounts(Counts(60, np.full(200, 100.0), np.full(200, 10.0), np.full(200, 10.0)), scale=factor)
    assert len(counts.between(0, 12_000)) == pytest.approx(factor * 20_000, rel=0.05)


@pytest.mark.parametrize("cv", [0.5, 1.0, 5.0])
def test_bursts_are_as_bursty_as_asked_for(cv: float) -> None:
    counts = Counts(3600, np.array([20_000.0]), np.array([10.0]), np.array([10.0]))
    times = FromCounts(counts, cv=cv).between(0, 3600).times
    assert workload.burstiness(times) == pytest.approx(cv, rel=0.1)


@hypothesis.given(
    counts=st.lists(st.integers(0, 60), min_size=1, max_size=8),
    cv=st.floats(workload.LEAST_CV, workload.MOST_CV),
    seed=st.integers(0, 99),
)
def test_bursts_keep_the_count_of_each_step(counts: list[int], cv: float, seed: int) -> None:
    requests = np.array(counts, dtype=float)
    source = FromCounts(Counts(60, requests, np.full(len(counts), 10.0), np.full(len(counts), 5.0)), seed=seed, cv=cv)
    found = source.between(0, 60 * len(counts))
    assert np.bincount((found.times // 60).astype(int), minlength=len(counts)).tolist() == counts
    assert (np.diff(found.times) >= 0).all()
    again = source.between(0, 60 * len(counts))
    assert found.times.tobytes() == again.times.tobytes()
    assert found.outputs.tobytes() == again.outputs.tobytes()


@pytest.mark.parametrize("cv", [0.3, 2.0, 5.0])
def test_bursts_reach_over_the_ends_of_steps_and_do_not_beat_with_them(cv: float) -> None:
    steps = np.full(2000, 100.0)
    times = FromCounts(Counts(60, steps, np.full(2000, 10.0), np.full(2000, 5.0)), cv=cv).between(0, 120_000).times
    assert workload.burstiness(times) == pytest.approx(cv, rel=0.15)
    near_an_end = np.abs((times + 30) % 60 - 30) < 0.6
    assert near_an_end.mean() == pytest.approx(0.02, abs=0.006)


def test_a_step_of_few_is_no_burstier_than_all_of_them_at_once() -> None:
    steps = np.full(3000, 9.0)
    times = FromCounts(Counts(60, steps, np.full(3000, 10.0), np.full(3000, 5.0)), cv=100.0).between(0, 180_000).times
    assert 2.5 < workload.burstiness(times) < 3.1


def test_poisson_arrivals_are_the_same_bits_as_ever() -> None:
    """The scoreboard and all published results are made of them."""
    counts = Counts(60, np.arange(30.0) * 1.3, np.full(30, 100.0), np.full(30, 20.0))
    found = [FromCounts(counts, seed=3, scale=1.7).between(0, 1800), Synthetic(rate=3, seed=5).between(0, 1800)]
    digests = [
        hashlib.sha256(b"".join(one.tobytes() for one in (given.times, given.prompts, given.outputs))).hexdigest()
        for given in found
    ]
    assert [digest[:16] for digest in digests] == ["f85aa3288c846dc2", "6ef26471153abba3"]


@pytest.mark.parametrize("cv", [0.0, -1.0, 1000.0, float("nan")])
def test_a_burstiness_that_cannot_be_had_is_refused(cv: float) -> None:
    with pytest.raises(ValueError, match=r"cv is .*: must lie in 0.05\.\.100; 1 is Poisson"):
        FromCounts(Counts(60, np.ones(2), np.ones(2), np.ones(2)), cv=cv)


def test_burstiness_of_real_traces_is_what_their_description_says() -> None:
    assert workload.burstiness(cases.trace("azure_2023_conv").times) == pytest.approx(1.05, abs=0.05)
    assert workload.burstiness(cases.trace("azure_2023_code").times) > 10
    with pytest.raises(ValueError, match="2 arrivals"):
        workload.burstiness(np.array([0.0, 1.0]))


def test_every_trace_can_be_read() -> None:
    folder = cases.data("traces", "README.md").parent
    for path in sorted(folder.glob("*.csv.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        if text.startswith("arrival_s"):
            assert len(workload.read_requests(text)) > 1000
        else:
            counts = workload.read_counts(text)
            assert np.isfinite(counts.requests).all()


def test_quantised_stamps_are_spread() -> None:
    given = Requests(np.repeat([0.0, 3.0], 50), np.full(100, 9), np.full(100, 9))
    found = workload.spread(given, 3.0, np.random.default_rng(0))
    assert len(set(found.times)) == 100
    assert found.times.max() < 6


def test_the_generator_has_its_seasons_surges_and_launches() -> None:
    hours = np.arange(0, 24 * 7) * 3600.0
    daily = Synthetic(rate=10, day=0.5, peak=14, weekend=0.5).expected(hours)
    assert hours[daily[:24].argmax()] == 14 * 3600
    assert daily[14] == pytest.approx(15)
    assert daily[5 * 24 + 14] == pytest.approx(7.5)
    surge = Synthetic(rate=10, day=0, surges=(Surge(1000, 3, lasts=600, ramp=60), Surge(5000, 2)))
    assert surge.expected(np.array([999.0, 1030, 1060, 1600, 1700, 5100, 9e5])).tolist() == [10, 20, 30, 30, 10, 20, 20]
    assert len(surge.between(0, 900)) == pytest.approx(9000, rel=0.1)


def test_sessions_share_a_prefix_shorter_than_their_prompt() -> None:
    found = Synthetic(rate=20, turns=5).between(0, 600)
    assert found.sessions is not None
    assert found.shared is not None
    assert len(set(found.sessions)) < len(found)
    assert (found.shared <= found.prompts).all()
    assert 0.6 < (found.shared > 0).mean() < 0.9


@pytest.mark.parametrize(
    ("times", "prompts", "outputs", "message"),
    [
        ([1.0, 0.5], [1, 1], [1, 1], "must not fall"),
        ([0.0], [0], [1], "at least 1 token"),
        ([0.0], [1], [1, 2], "outputs has 2 values for 1 times"),
        ([np.nan], [1], [1], "finite"),
        ([0.0], [1], [1 << 30], "longer than"),
    ],
)
def test_requests_refuse_nonsense(times: list[float], prompts: list[int], outputs: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Requests(np.array(times), np.array(prompts), np.array(outputs))


@hypothesis.given(st.lists(st.floats(2e-4, 5e3), min_size=1, max_size=200), st.floats(0, 1))
def test_a_quantile_of_the_histogram_is_within_one_per_cent(values: list[float], probability: float) -> None:
    bins = np.minimum((np.log(np.array(values) / latency.BIN_FLOOR) * latency.BINS_PER_E).astype(int), latency.BINS - 1)
    found = Latency(np.bincount(bins, minlength=latency.BINS), float(sum(values)))
    exact = np.quantile(values, probability, method="inverted_cdf")
    assert found.quantile(probability) == pytest.approx(exact, rel=0.0101)
    assert found.mean == pytest.approx(np.mean(values))


def test_histograms_add_up_and_know_when_they_are_empty() -> None:
    empty = Latency(np.zeros(latency.BINS, np.int64), 0.0)
    assert (empty.mean, empty.quantile(0.5), empty.share_within(1.0)) == (None, None, None)
    one = Latency(np.eye(1, latency.BINS, 500, dtype=np.int64)[0], 0.0145)
    both = one + one
    assert (both.count, both.share_within(1.0), both.share_within(0.001)) == (2, 1.0, 0.0)
    with pytest.raises(ValueError, match="probability is 2"):
        both.quantile(2)
