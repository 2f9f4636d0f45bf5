import numpy as np
import pytest

from models.fleet import layout, profiles, seen
from models.fleet.pool import Pool
from models.fleet.seen import Sight
from models.signals import Cause, Known, Signal, Unknown
from tests.models.fleet import cases


def scraped(replicas: int = 3, rate: float = 30.0, until: float = 300.0, **settings: object) -> Pool:
    pool = cases.pool_of(replicas, profiles.LLAMA_8B_H100, **({"scrape_interval": 15.0} | settings))
    pool.offer(cases.drawn(rate, int(rate * until * 1.2)).between(0, until))
    cases.advance(pool, until)
    return pool


def value(pool: Pool, signal: Signal, sight: Sight | None = None) -> float:
    reading = seen.readings(pool, sight or Sight())[signal]
    assert isinstance(reading, Known), reading
    return reading.value


def test_what_is_seen_is_as_old_as_the_scrape_of_each_replica() -> None:
    pool = scraped()
    ages = [pool.now - page.last[layout.AT] for page in seen.pages(pool, window=60)]
    assert all(0 <= age <= 15 for age in ages)
    assert len(set(ages)) == 3  # each replica has its own phase
    reading = seen.readings(pool, Sight())[Signal.IN_FLIGHT]
    assert isinstance(reading, Known)
    assert reading.at == pool.now - max(ages)


def test_rates_and_quantiles_are_near_the_truth() -> None:
    pool = scraped(rate=40.0, until=600.0)
    assert value(pool, Signal.ARRIVALS) == pytest.approx(40, rel=0.1)
    assert value(pool, Signal.ARRIVALS, Sight(router=False)) == pytest.approx(40, rel=0.15)
    ttft, itl, e2e = pool.latencies()
    assert value(pool, Signal.TTFT_P95) == pytest.approx(
        ttft.quantile(0.95), rel=0.5
    )  # as coarse as the page's buckets
    assert value(pool, Signal.ITL_P95) == pytest.approx(itl.quantile(0.95), rel=0.6)
    assert value(pool, Signal.DURATION_MEAN) == pytest.approx(e2e.mean, rel=0.15)
    assert value(pool, Signal.TOKENS_OUT) == pytest.approx(pool.state["tokens"] / 600, rel=0.15)
    assert 0 < value(pool, Signal.KV_USAGE) < 1


def test_a_replica_that_cannot_be_scraped_makes_its_signals_partial_and_never_zero() -> None:
    pool = scraped(until=100.0)
    pool.mute(1, until=1000.0)
    cases.advance(pool, 180.0)
    found = seen.readings(pool, Sight())
    assert found[Signal.IN_FLIGHT] == Unknown(Cause.PARTIAL, "2 of 3 ready replicas were scraped")
    assert isinstance(found[Signal.ARRIVALS], Known)  # the router still knows
    assert isinstance(seen.readings(pool, Sight(router=False))[Signal.ARRIVALS], Unknown)


def test_one_lost_scrape_is_no_gap() -> None:
    pool = scraped(until=100.0)
    pool.mute(1, until=116.0)
    cases.advance(pool, 116.0)
    assert isinstance(seen.readings(pool, Sight())[Signal.IN_FLIGHT], Known)


def test_lost_scrapes_are_lost_at_the_rate_asked_for() -> None:
    pool = scraped(replicas=8, rate=1.0, until=3000.0, scrape_loss=0.25)
    kept, tried = pool.replicas["rows"].sum(), pool.replicas["scrapes"].sum()
    assert tried == pytest.approx(8 * 200, abs=8)
    assert kept / tried == pytest.approx(0.75, abs=0.04)


def test_with_no_ready_replica_the_router_tells_what_waits_and_the_rest_is_unknown() -> None:
    pool = cases.pool_of(0, scrape_interval=15.0)
    pool.offer(cases.drawn(5, 300).between(0, 60))
    cases.advance(pool, 60.0)
    found = seen.readings(pool, Sight())
    assert isinstance(found[Signal.WAITING], Known)
    assert found[Signal.WAITING].value > 200
    assert found[Signal.KV_USAGE] == Unknown(Cause.EMPTY, "no replica is ready")
    assert isinstance(seen.readings(pool, Sight(router=False))[Signal.WAITING], Unknown)


def test_without_scrapes_nothing_is_known() -> None:
    pool = cases.pool_of(1)
    assert all(isinstance(reading, Unknown) for reading in seen.readings(pool, Sight()).values())


def test_a_new_replica_in_an_old_slot_does_not_show_its_predecessors_page() -> None:
    pool = scraped(replicas=1, until=60.0)
    pool.kill(0)
    cases.advance(pool, 61.0)
    assert pool.start(ready_at=62.0) == 0
    cases.advance(pool, 62.5)
    (page,) = seen.pages(pool, window=60)
    assert all(page.rows[:, layout.AT] >= 62.0)
    assert not np.isnan(page.rows).any()
