"""What a glance says is what the pages say, to the bit, however many replicas there are and whatever is missing."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from models.fleet import layout, profiles, seen
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment, Phase
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.seen import STALE, Sight
from models.fleet.warmup import FixedWarmUp
from models.fleet.workload import Synthetic
from models.peers.static import Static
from models.policy.protocol import Pod
from models.race import driver
from models.race.driver import Lane
from models.race.glance import SEEN, Watcher
from models.signals import Cause, Known, Signal, Unknown

LOAD = Synthetic(rate=40, day=0, noise=0.3, seed=4)
SIZES = (0, 3, 33, 200, 70, 20, 1, 9)  # replicas, one after the other: some start, some drain, none is there at first


def watched(sight: Sight, **settings: float | None) -> tuple[Cluster, Deployment, Watcher]:
    pool = Pool(profiles.LLAMA_8B_RTX4090, PoolSettings(timeout=30.0, **settings))  # type: ignore[arg-type]
    target = Deployment(pool, FixedWarmUp(40.0), seed=(1,))
    pool.offer(LOAD.between(0, 120.0 * len(SIZES)))
    return Cluster({"a": target}), target, Watcher(target, Lane(Static(1), LOAD, sight=sight))


def moments(cluster: Cluster) -> Iterator[float]:
    """Every 5 seconds, while the number of replicas changes every two minutes."""
    for k, size in enumerate(SIZES):
        cluster.scale("a", size)
        for at in np.arange(120.0 * k, 120.0 * (k + 1), 5.0):
            cluster.advance(float(at) + 5.0)
            yield float(at)


@pytest.mark.parametrize("sight", [Sight(), Sight(router=False), Sight(window=20.0), Sight(window=115.0, router=False)])
@pytest.mark.parametrize("loss", [0.0, 0.03, 0.5])
def test_a_glance_is_what_the_pages_say(sight: Sight, loss: float) -> None:
    cluster, target, watcher = watched(sight, scrape_loss=loss)
    causes: set[Cause | None] = set()
    for at in moments(cluster):
        readings, full = watcher.observe().readings, seen.readings(target.pool, sight)
        assert {signal: readings[signal] for signal in SEEN} == {signal: full[signal] for signal in SEEN}, at
        causes |= {one.cause if isinstance(one, Unknown) else None for one in full.values()}
    assert {None, Cause.EMPTY} <= causes


def test_a_glance_says_the_same_whatever_is_asked_first_and_however_often() -> None:
    cluster, target, watcher = watched(Sight())
    for _ in moments(cluster):
        full = seen.readings(target.pool, Sight())
        for signals in (tuple(SEEN), tuple(SEEN)[::-1]):
            readings = watcher.observe().readings
            assert {signal: readings[signal] for signal in (*signals, *signals)} == {s: full[s] for s in SEEN}


def test_nothing_is_asked_where_nothing_is_scraped_and_what_no_pool_shows_is_not_there() -> None:
    cluster, _, watcher = watched(Sight(), scrape_interval=None)
    cluster.scale("a", 2)
    cluster.advance(100.0)
    seen_now = watcher.observe()
    assert set(seen_now.readings.values()) == {Unknown(Cause.NOT_ASKED, "nothing is scraped")}
    assert seen_now.readings.get(Signal.REPORTING) is None
    assert seen_now.pods is not None
    assert [pod.running for pod in seen_now.pods] == [None, None]


@pytest.mark.parametrize("loss", [0.0, 0.5])
def test_the_pods_are_shown_as_their_newest_pages_say(loss: float) -> None:
    cluster, target, watcher = watched(Sight(), scrape_loss=loss)
    shown = 0
    for _ in moments(cluster):
        assert tuple(watcher.observe().pods or ()) == tuple(one_by_one(target))
        shown += sum(pod.kv_usage is not None for pod in watcher.observe().pods or ())
    assert shown > 1000


def test_a_pod_of_which_nothing_has_changed_is_the_same_object() -> None:
    cluster, _, watcher = watched(Sight())
    cluster.scale("a", 3)
    cluster.advance(100.0)
    before = tuple(watcher.observe().pods or ())
    assert all(one is other for one, other in zip(before, watcher.observe().pods or (), strict=True))
    cluster.advance(130.0)
    assert not any(one is other for one, other in zip(before, watcher.observe().pods or (), strict=True))


def test_the_supply_is_that_of_the_moment_though_it_is_counted_only_when_a_pod_changes() -> None:
    cluster, target, _ = watched(Sight())
    lane = dataclasses.replace(Lane(Static(1), LOAD), warm_up=60.0, stuck_after=30.0)
    watcher = Watcher(target, lane)
    different = set()
    for _ in moments(cluster):
        supply = watcher.observe().supply
        assert supply == driver.supply(target, lane)
        assert target.pending == [pod for pod in target.pods if pod.phase is Phase.PENDING]
        different.add(supply)
    assert len(different) > 20


def one_by_one(target: Deployment) -> list[Pod]:
    """The plain way: each pod, its pages, the newest."""
    pool, found = target.pool, []
    for pod in target.pods:
        shown: dict[str, float] = {}
        rows = pool.memory.scrapes[pod.slot]
        own = rows[rows[:, layout.POD] == pool.replicas[pod.slot]["pod"]]
        if pod.phase is Phase.READY and len(own):
            last = own[own[:, layout.AT].argmax()]
            if pool.now - last[layout.AT] <= STALE * 15.0:
                shown = {
                    "running": float(last[layout.SEEN_RUNNING]),
                    "waiting": float(last[layout.SEEN_WAITING]),
                    "kv_usage": float(last[layout.SEEN_KV]),
                }
        ready, pending = pod.phase is Phase.READY, pod.phase is Phase.PENDING
        deleting = pod.phase is Phase.DRAINING
        found.append(Pod(str(pod.number), ready=ready, pending=pending, deleting=deleting, **shown))
    return found


def test_the_readings_hold_values() -> None:
    """The comparisons above are not of unknowns alone."""
    cluster, _, watcher = watched(Sight())
    known = dict.fromkeys(SEEN, 0)
    for _ in moments(cluster):
        for signal, reading in watcher.observe().readings.items():
            known[signal] += isinstance(reading, Known)
    assert min(known.values()) > 50, known
