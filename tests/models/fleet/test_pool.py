import copy
import dataclasses

import numpy as np
import pytest

from models.fleet import layout, memory, prefixes, profiles
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.requests import Requests
from tests.models.fleet import cases

# 8 places and answers of a second: 100 steps of 10 ms
LONG = (10, 100)


def at(*times: float, session: int | None = None) -> Requests:
    given = cases.requests(*[(t, *LONG) for t in times])
    return given if session is None else dataclasses.replace(given, sessions=np.full(len(given), session))


def arrived(pool: Pool) -> list[int]:
    return pool.replicas["arrived"][pool.replicas["phase"] != layout.EMPTY].tolist()


def test_round_robin_takes_the_replicas_in_turn() -> None:
    pool = cases.pool_of(3, router="round-robin")
    pool.offer(at(*[0.01 * k for k in range(9)]))
    cases.advance(pool, 1.0)
    assert arrived(pool) == [3, 3, 3]


def test_least_in_flight_goes_around_a_busy_replica_and_takes_equals_in_turn() -> None:
    pool = cases.pool_of(3)
    pool.offer(at(0.0, 0.1, 0.2, 1.05, 1.06))  # the first is done at 1.0
    cases.advance(pool, 1.07)
    assert arrived(pool) == [2, 2, 1]
    assert pool.replicas["running"][:3].tolist() == [1, 2, 1]


def test_least_tokens_goes_by_the_tokens_and_not_by_the_number() -> None:
    pool = cases.pool_of(2, router="least-tokens")
    pool.offer(cases.requests((0.0, 500, 100), (0.1, 10, 100), (0.2, 10, 100), (0.3, 10, 100)))
    cases.advance(pool, 0.4)
    assert arrived(pool) == [1, 3]


def test_prefix_affine_keeps_a_session_where_it_was_until_that_replica_is_far_busier() -> None:
    pool = cases.pool_of(2, router="prefix-affine", affinity_slack=2)
    pool.offer(at(*[0.01 * k for k in range(4)], session=7))
    cases.advance(pool, 0.5)
    assert sorted(arrived(pool)) == [1, 3]  # 1, 2, 3 on its own; the fourth finds 3 there and 0 on the other


def test_requests_wait_in_the_router_until_a_replica_is_ready() -> None:
    pool = Pool(cases.PLAIN, PoolSettings(timeout=None, scrape_interval=None), logged=2)
    pool.start(ready_at=5.0)
    pool.offer(at(1.0, 2.0))
    cases.advance(pool, 4.0)
    assert pool.state["router_waiting"] == 2
    cases.advance(pool, 10.0)
    assert pool.log["first"].tolist() == pytest.approx([5.0101, 5.02021])  # the second joins a step later


def test_a_full_router_refuses() -> None:
    pool = Pool(cases.PLAIN, PoolSettings(timeout=None, scrape_interval=None, router_room=2))
    pool.offer(at(0.0, 0.1, 0.2))
    cases.advance(pool, 1.0)
    assert (pool.state["rejected"], pool.state["router_waiting"]) == (1, 2)


def test_clients_give_up_in_the_router_and_in_a_replicas_queue() -> None:
    pool = cases.pool_of(1, timeout=0.5)
    pool.offer(at(*[0.0] * 9))  # eight places
    cases.advance(pool, 0.6)
    assert (pool.state["timed_out"], pool.replicas["waiting"][0]) == (1, 0)
    cases.advance(pool, 2.0)
    assert pool.state["finished"] == 8
    empty = Pool(cases.PLAIN, PoolSettings(timeout=0.5, scrape_interval=None))
    empty.offer(at(0.0))
    cases.advance(empty, 1.0)
    assert (empty.state["timed_out"], empty.state["router_waiting"], empty.state["in_system"]) == (1, 0, 0)


def test_clients_come_back_as_load_and_the_request_counts_once() -> None:
    pool = Pool(
        cases.PLAIN, PoolSettings(timeout=1.0, retries=2, backoff=1.0, scrape_interval=None, ttft_objective=2.0)
    )
    pool.offer(at(0.0, 0.1))
    pool.start(ready_at=3.0)
    cases.advance(pool, 10.0)
    p = pool.state
    assert (p["arrived"], p["finished"], p["timed_out"]) == (2, 2, 0)
    assert p["resent"] >= 2
    assert (p["met"], p["late"]) == (0, 2)  # the objective counts from the first try
    assert p["first_tokens"] == 2


def test_a_client_that_has_tried_enough_is_gone() -> None:
    pool = Pool(cases.PLAIN, PoolSettings(timeout=1.0, retries=3, backoff=0.1, scrape_interval=None))
    pool.offer(at(0.0))
    cases.advance(pool, 100.0)
    assert (pool.state["resent"], pool.state["timed_out"], pool.state["in_system"]) == (3, 1, 0)


def test_a_draining_replica_finishes_what_it_has_and_takes_no_more() -> None:
    pool = cases.pool_of(2)
    pool.offer(at(0.0, 0.0, 0.0, 0.0))
    cases.advance(pool, 0.1)
    pool.drain(0)
    pool.offer(at(0.2, 0.3))
    events = cases.advance(pool, 5.0)
    assert [(event.slot, event.kind) for event in events] == [(0, "gone")]
    assert 1.0 < events[0].at < 1.1
    assert (pool.state["finished"], pool.state["failed"]) == (6, 0)
    assert pool.replicas["arrived"][1] == 4


def test_what_is_not_done_at_the_deadline_is_cut_off() -> None:
    pool = cases.pool_of(1)
    pool.offer(at(0.0, 0.0))
    cases.advance(pool, 0.1)
    pool.drain(0, until=0.5)
    (gone,) = cases.advance(pool, 5.0)
    assert gone.at == 0.5
    assert (pool.state["failed"], pool.state["met"], pool.state["in_system"]) == (2, 0, 0)


def test_after_a_crash_clients_try_again_elsewhere() -> None:
    pool = Pool(cases.PLAIN, PoolSettings(timeout=None, scrape_interval=None, retries=1, backoff=0.1))
    pool.start(ready_at=0.0, crash_at=0.5)
    pool.start(ready_at=0.0)
    pool.offer(at(0.0, 0.0))
    events = cases.advance(pool, 5.0)
    assert [(event.kind, event.at, event.served) for event in events if event.kind == "crashed"] == [
        ("crashed", 0.5, True)
    ]
    assert (pool.state["finished"], pool.state["failed"], pool.state["resent"]) == (2, 0, 1)


def test_supply_is_below_demand_while_no_ready_replica_has_room() -> None:
    pool = cases.pool_of(1)
    pool.offer(at(*[0.0] * 9))
    cases.advance(pool, 3.0)
    # the ninth waits from the first step boundary until the eight are done
    assert pool.state["below"] == pytest.approx(1.0, abs=0.05)
    none = Pool(cases.PLAIN, PoolSettings(timeout=None, scrape_interval=None))
    none.offer(at(1.0))
    none.start(ready_at=4.0)
    cases.advance(none, 6.0)
    assert none.state["below"] == pytest.approx(3.0)


def test_a_prefix_that_a_replica_holds_is_not_computed_again() -> None:
    profile = dataclasses.replace(profiles.LLAMA_8B_H100, prefix_caching=True)
    turns = Requests(
        np.array([0.0, 10.0, 20.0]),
        np.array([1000, 1300, 1600]),
        np.array([100] * 3),
        np.array([5] * 3),
        np.array([0, 1100, 1400]),
    )
    pool = cases.pool_of(1, profile, logged=3)
    pool.offer(turns)
    cases.advance(pool, 60.0)
    assert pool.state["hit_tokens"] == 1100 + 1400
    without = cases.pool_of(1, profiles.LLAMA_8B_H100, logged=3)
    without.offer(turns)
    cases.advance(without, 60.0)
    waits = [each.log["first"] - turns.times for each in (pool, without)]
    assert waits[0][0] == waits[1][0]
    assert (waits[0][1:] < waits[1][1:]).all()


def test_the_share_of_hits_grows_with_the_locality_of_sessions() -> None:
    profile = dataclasses.replace(profiles.LLAMA_8B_H100, prefix_caching=True)
    rng = np.random.default_rng(0)
    given = cases.drawn(20, 4000, prompt=1000)
    turns = dataclasses.replace(given, sessions=rng.integers(0, 300, len(given)), shared=given.prompts // 2)
    hits = {}
    for router in ("prefix-affine", "round-robin"):
        pool = cases.pool_of(8, profile, router=router)
        pool.offer(turns)
        cases.advance(pool, 400.0)
        hits[router] = int(pool.state["hit_tokens"])
    assert hits["prefix-affine"] > 1.3 * hits["round-robin"] > 0


def test_prefixes_of_different_sessions_rarely_share_a_place() -> None:
    places = {prefixes.place_of.py_func(session) for session in range(1000)}
    assert len(places) > 850  # 1,000 balls into 4,096 places leave about 115 on a taken one
    assert all(0 <= place < layout.CACHE_PLACES for place in places)


def test_time_never_goes_back() -> None:
    pool = cases.pool_of(1)
    cases.advance(pool, 10.0)
    with pytest.raises(ValueError, match="cannot go back from 10"):
        pool.advance(9.0)
    with pytest.raises(ValueError, match="lies before 10"):
        pool.offer(at(9.0))
    with pytest.raises(ValueError, match="lies before 10"):
        pool.start(ready_at=9.0)


def test_only_a_ready_replica_drains() -> None:
    pool = Pool(cases.PLAIN)
    slot = pool.start(ready_at=5.0)
    with pytest.raises(ValueError, match="not ready"):
        pool.drain(slot)
    pool.kill(slot)
    assert [event.kind for event in cases.advance(pool, 1.0)] == ["gone"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("router", "random"),
        ("timeout", 0.0),
        ("ttft_objective", -1.0),
        ("scrape_loss", 1.5),
        ("retries", 99),
        ("backoff", 0),
    ],
)
def test_settings_refuse_nonsense(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{key} is {value!r}"):
        PoolSettings(**{key: value})


def test_in_flight_requests_are_bounded_with_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ID_BITS", 11)
    m = memory.allocate(cases.PLAIN, PoolSettings(), start=0.0)
    m = memory.with_requests(m)
    with pytest.raises(MemoryError, match="2048 requests in flight: give clients a time-out"):
        memory.with_requests(m)


def test_a_copy_of_a_pool_goes_on_by_itself_and_alike() -> None:
    pool = cases.pool_of(2, profiles.LLAMA_8B_H100)
    pool.offer(cases.drawn(20.0, 2000).between(0, 60.0))
    cases.advance(pool, 20.0)
    copied = copy.deepcopy(pool)
    cases.advance(pool, 60.0)
    assert copied.now == 20.0
    cases.advance(copied, 60.0)
    assert copied.replicas.tobytes() == pool.replicas.tobytes()
    assert copied.state["finished"] == pool.state["finished"] > 0
