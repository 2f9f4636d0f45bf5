import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from models.fleet import profiles
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.profiles import StepLaw
from tests.models.fleet import cases

SMALL = profiles.Profile(
    "small", "small", StepLaw(a=8, w=3, d=0.05, b=0.01, c=1e-4, q=1e-6), 4000, "made up", max_num_seqs=16
)


def eventful(seed: int, pieces: int, *, router: str = "least-in-flight") -> Pool:
    """A minute with too few replicas, crashes, drains, time-outs, retries and lost scrapes."""
    settings = PoolSettings(
        router=router, timeout=3.0, retries=2, backoff=0.5, scrape_interval=1.0, scrape_loss=0.2, seed=seed
    )
    pool = Pool(SMALL, settings)
    rng = np.random.default_rng(seed)
    given = cases.drawn(25, 1500, seed=seed, prompt=300, output=60)
    for k in range(6):
        pool.start(ready_at=float(rng.uniform(0, 30)), crash_at=float(rng.uniform(30, 90)) if k % 2 else np.inf)
    for minute in range(6):
        start, end = 10.0 * minute, 10.0 * (minute + 1)
        for k in range(pieces):
            edges = np.linspace(start, end, pieces + 1)
            pool.offer(given.between(edges[k], edges[k + 1]))
            cases.advance(pool, edges[k + 1] if k + 1 < pieces else end)
        ready = np.flatnonzero(pool.replicas["phase"] == 2)
        if minute in (2, 4) and len(ready):
            pool.drain(int(ready[-1]), until=end + 2)
    return pool


def state(pool: Pool) -> bytes:
    """Everything but the addresses of the arrays and what was only asked for."""
    p = pool.state
    kept = [name for name in p.dtype.names if not name.endswith("_at") and name != "next_arrival"]
    return b"".join(np.asarray(p[name]).tobytes() for name in kept) + pool.replicas.tobytes()


@pytest.mark.parametrize("router", ["least-in-flight", "round-robin", "least-tokens", "prefix-affine"])
@hypothesis.settings(max_examples=12, deadline=None)
@hypothesis.given(seed=st.integers(0, 10_000))
def test_requests_are_conserved(router: str, seed: int) -> None:
    pool = eventful(seed, 1, router=router)
    arrived, ended = cases.fate(pool)
    assert arrived == ended > 0
    p = pool.state
    assert p["met"] + p["late"] <= arrived
    assert p["ttft"].sum() == p["first_tokens"]
    assert p["e2e"].sum() == p["finished"]
    cases.advance(pool, 1000.0)
    assert pool.state["in_system"] == pool.state["router_waiting"] == 0
    assert (pool.replicas["free"] == SMALL.blocks).all()
    assert (pool.replicas["waiting_tokens"] == 0).all()


@hypothesis.settings(max_examples=10, deadline=None)
@hypothesis.given(seed=st.integers(0, 10_000), pieces=st.integers(2, 10))
def test_one_go_and_many_pieces_are_the_same_bytes(seed: int, pieces: int) -> None:
    assert state(eventful(seed, 1)) == state(eventful(seed, pieces))


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not() -> None:
    assert state(eventful(5, 1)) == state(eventful(5, 1))
    assert state(eventful(5, 1)) != state(eventful(6, 1))


def test_littles_law_holds_in_the_steady_state() -> None:
    # 12 runs of 4,000 s: L (integral of the number in the system) against rate x mean time in the system
    ratios = []
    for seed in range(12):
        given = cases.drawn(12, 48_000, seed=seed)
        pool = cases.pool_of(2, profiles.LLAMA_8B_H100)
        pool.offer(given)
        end = float(given.times[-1])
        cases.advance(pool, end)
        p = pool.state
        area = p["area"] + p["in_system"] * (end - p["area_at"])
        # alpha0 is spent before the engine: the client waits it, the engine does not hold the request
        mean = float(pool.latencies()[2].mean or 0) - profiles.LLAMA_8B_H100.law.alpha0 * 1e-3
        ratios.append(area / end / (len(given) / end * mean))
    half = 2.2 * np.std(ratios, ddof=1) / np.sqrt(len(ratios))  # t quantile of 11 degrees, 95 %
    assert abs(np.mean(ratios) - 1) <= max(half, 1e-3), (np.mean(ratios), half)


@pytest.mark.parametrize("rate", [20.0, 60.0, 120.0])
def test_more_replicas_never_serve_fewer_requests_in_time(rate: float) -> None:
    given = cases.drawn(rate, 20_000, seed=3)
    met = []
    for replicas in (1, 2, 3, 4, 6, 8, 12, 16):
        pool = cases.pool_of(replicas, profiles.LLAMA_8B_H100, ttft_objective=0.5, timeout=10.0)
        pool.offer(given)
        cases.advance(pool, float(given.times[-1]) + 200)
        met.append(int(pool.state["met"]))
    assert all(more >= fewer - 0.001 * len(given) for fewer, more in itertools.pairwise(met)), met


def test_memory_grows_with_replicas_and_load_and_not_with_the_requests_served() -> None:
    sizes = []
    for count in (2_000, 40_000):
        pool = cases.pool_of(4, profiles.LLAMA_8B_H100, timeout=60.0)
        given = cases.drawn(40, count, seed=1)
        for k in range(0, count, 1000):  # offered in pieces, as a long run does
            pool.offer(given.select(slice(k, k + 1000)))
            cases.advance(pool, float(given.times[min(k + 999, count - 1)]))
        sizes.append(sum(array.nbytes for array in pool.memory))
    assert sizes[1] <= 1.5 * sizes[0]


@hypothesis.settings(max_examples=10, deadline=None)
@hypothesis.given(seed=st.integers(0, 10_000))
def test_time_never_goes_back(seed: int) -> None:
    given = cases.drawn(30, 600, seed=seed, prompt=300, output=60)
    settings = PoolSettings(timeout=3.0, retries=1, scrape_interval=0.5, seed=seed)
    pool = Pool(SMALL, settings, logged=len(given))
    for k in range(4):
        pool.start(ready_at=2.0 * k, crash_at=5.0 + 3.0 * k)
    pool.offer(given)
    moments = []
    while pool.now < 40.0:
        moments += [event.at for event in pool.advance(min(pool.now + 0.7, 40.0))] + [pool.now]
    assert moments == sorted(moments)
    done = np.isfinite(pool.log["end"])
    assert (pool.log["first"][done] >= given.times[done]).all()
    assert (pool.log["end"][done] >= pool.log["first"][done]).all()
    for rows in pool.memory.scrapes:
        by_pod = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        for column in (5, 6, 7, 8, 9):  # counters of one pod never fall
            same_pod = np.diff(by_pod[:, 1]) == 0
            assert (np.diff(by_pod[:, column])[same_pod] >= 0).all()
