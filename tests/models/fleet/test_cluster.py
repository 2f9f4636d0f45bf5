import dataclasses

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from models.fleet import profiles, scorecard
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment, Phase, Start
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.warmup import BackOff, Drawn, FixedWarmUp, WarmUp
from tests.models.fleet import cases

QUIET = PoolSettings(timeout=None, scrape_interval=None)


def deployment(start: Start, *, number: int = 0, gpus: int = 1, grace: float = 300.0) -> Deployment:
    profile = dataclasses.replace(cases.PLAIN, gpus=gpus, weights_bytes=16e9)
    return Deployment(Pool(profile, QUIET), start, seed=(1, number), grace=grace)


def one(start: Start, *, gpus: int | None = None) -> tuple[Cluster, Deployment]:
    target = deployment(start)
    return Cluster({"a": target}, gpus=None if gpus is None else {"H100": gpus}), target


def phases(target: Deployment) -> list[str]:
    return [pod.phase.value for pod in target.pods]


def test_a_replica_is_ready_after_its_warm_up_and_not_before() -> None:
    cluster, target = one(FixedWarmUp(120))
    cluster.scale("a", 2)
    cluster.advance(119.9)
    assert phases(target) == ["starting"] * 2
    cluster.advance(120.0)
    assert phases(target) == ["ready"] * 2


def test_a_pod_is_pending_until_a_gpu_is_free() -> None:
    cluster, target = one(FixedWarmUp(10), gpus=1)
    cluster.scale("a", 2)
    cluster.advance(50.0)
    assert phases(target) == ["ready", "pending"]
    assert cluster.free("H100") == 0
    assert target.costs().pending_seconds == 50.0


def test_asking_for_more_takes_none_away() -> None:
    cluster, target = one(FixedWarmUp(120))
    cluster.scale("a", 8)
    cluster.advance(15.0)
    cluster.scale("a", 9)
    cluster.advance(140.0)
    assert (len(target.pods), target.costs().starts) == (9, 9)


def test_a_gpu_that_one_pool_gives_back_goes_to_the_pod_of_another_that_waits_longest() -> None:
    first, second = deployment(FixedWarmUp(10)), deployment(FixedWarmUp(10), number=1)
    cluster = Cluster({"a": first, "b": second}, gpus={"H100": 1})
    cluster.scale("a", 1)
    cluster.advance(20.0)
    cluster.scale("b", 1)
    cluster.advance(30.4)
    cluster.scale("a", 0)  # idle: gone at once
    cluster.advance(100.0)
    assert (phases(first), phases(second)) == ([], ["ready"])
    assert second.pods[0].bound == 31.0  # the scheduler looks each second
    assert second.pods[0].ready == 41.0


def test_a_replica_of_two_gpus_waits_for_two() -> None:
    target = deployment(FixedWarmUp(10), gpus=2)
    cluster = Cluster({"a": target}, gpus={"H100": 3})
    cluster.scale("a", 2)
    cluster.advance(20.0)
    assert phases(target) == ["ready", "pending"]


def test_pools_of_different_profiles_run_beside_each_other_each_on_its_kind_of_gpu() -> None:
    small = Deployment(Pool(profiles.LLAMA_8B_H100, QUIET), FixedWarmUp(60), seed=(1,))
    large = Deployment(Pool(profiles.LLAMA_70B_H100_TP4, QUIET), FixedWarmUp(300), seed=(2,))
    other = Deployment(Pool(profiles.LLAMA_8B_RTX4090, QUIET), FixedWarmUp(30), seed=(3,))
    cluster = Cluster({"small": small, "large": large, "other": other}, gpus={"H100": 6, "RTX 4090": 1})
    given = cases.drawn(2, 200)
    for name, target in cluster.deployments.items():
        cluster.scale(name, 2)
        target.pool.offer(given.shifted(400.0))
    cluster.advance(800.0)
    assert [phases(target) for target in (small, large, other)] == [
        ["ready"] * 2,
        ["ready", "pending"],
        ["ready", "pending"],
    ]
    alone = Deployment(Pool(profiles.LLAMA_70B_H100_TP4, QUIET), FixedWarmUp(300), seed=(2,))
    single = Cluster({"large": alone})
    single.scale("large", 1)
    alone.pool.offer(given.shifted(400.0))
    single.advance(800.0)
    assert scorecard.of(large).finished == scorecard.of(alone).finished == 200
    assert (large.pool.state["e2e"] == alone.pool.state["e2e"]).all()  # nobody else's load is felt
    assert (small.pool.state["e2e"] != large.pool.state["e2e"]).any()


def test_scaling_down_takes_pending_pods_first_then_starting_then_the_newest_ready() -> None:
    cluster, target = one(FixedWarmUp(10), gpus=3)
    cluster.scale("a", 2)
    cluster.advance(15.0)
    cluster.scale("a", 4)
    assert phases(target) == ["ready", "ready", "starting", "pending"]
    cluster.scale("a", 3)
    assert phases(target) == ["ready", "ready", "starting"]
    cluster.scale("a", 1)
    cluster.advance(16.0)
    assert [pod.number for pod in target.pods] == [0]


def test_warming_and_draining_are_paid_for_and_a_start_that_never_served_is_wasted() -> None:
    cluster, target = one(FixedWarmUp(100))
    cluster.scale("a", 2)
    cluster.advance(40.0)
    cluster.scale("a", 1)
    cluster.advance(200.0)
    costs = target.costs()
    assert costs.replica_seconds == 240.0  # 40 of the one, 200 of the other
    assert costs.warming_seconds == 140.0
    assert (costs.starts, costs.wasted) == (2, 1)
    assert scorecard.of(target).cost(3.5) == pytest.approx(240 / 3600 * 3.5)


def test_draining_ends_at_its_deadline() -> None:
    target = deployment(FixedWarmUp(1), grace=2.0)
    cluster = Cluster({"a": target})
    cluster.scale("a", 1)
    cluster.advance(2.0)
    target.pool.offer(cases.requests((2.0, 10, 900)))
    cluster.advance(3.0)
    cluster.scale("a", 0)
    cluster.advance(10.0)
    assert target.costs().replica_seconds == pytest.approx(5.0)
    assert scorecard.of(target).failed == 1


def test_a_crashed_replica_restarts_and_keeps_its_gpu() -> None:
    cluster, target = one(FixedWarmUp(10, mean_life=50), gpus=1)
    cluster.scale("a", 1)
    cluster.advance(1000.0)
    costs = target.costs()
    assert costs.crashes > 3
    assert costs.starts == costs.crashes + 1
    assert costs.replica_seconds == 1000.0
    assert len(target.pods) == 1


@dataclasses.dataclass
class Crashing:
    """Ready after 10 s, and crashed so long after that, in turn."""

    lives: list[float]

    def draw(self, rng: np.random.Generator, weights_bytes: float) -> Drawn:
        del rng, weights_bytes
        lives = self.lives.pop(0) if self.lives else np.inf
        return Drawn(schedule=0, node=0, image=0, weights=0, engine=10.0, lives=lives, stuck=0)


def readies(lives: list[float], *, until: float) -> list[float]:
    """When a single replica became ready."""
    cluster, target = one(Crashing(lives))
    cluster.scale("a", 1)
    found, was = [], False
    for at in np.arange(5.0, until, 5.0):
        cluster.advance(float(at))
        ready = target.pods[0].phase is Phase.READY
        if ready and not was:
            found.append(float(at))
        was = ready
    return found


def test_the_kubelet_waits_longer_after_each_crash_up_to_five_minutes() -> None:
    back_off = BackOff()
    assert [back_off.after(30.0) for _ in range(9)] == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    for _ in range(2000):  # a day of crashes overflows nothing
        assert back_off.after(30.0) == 300.0


def test_a_container_that_ran_for_ten_minutes_starts_at_once_and_counts_anew() -> None:
    back_off = BackOff()
    assert [back_off.after(ran) for ran in (30.0, 30.0, 599.0, 600.0, 30.0)] == [0, 10, 20, 0, 10]


def test_a_replica_that_crashes_again_and_again_is_back_later_each_time() -> None:
    # 10 s of start and 20 of life each: crashes at 30, 60, 100, 150, 220 and so on.
    assert readies([20.0] * 5, until=400.0) == [10.0, 40.0, 80.0, 130.0, 200.0, 310.0]


def test_a_long_life_is_forgiven_its_start_counted() -> None:
    assert readies([20.0, 590.0, 20.0], until=800.0) == [10.0, 40.0, 640.0, 680.0]


def test_a_replica_restarts_by_its_own_crashes_whatever_crashes_beside_it() -> None:
    """Both what is drawn and how long the kubelet waits: of two fleets, the one has more replicas that crash."""
    alone, beside = (one(FixedWarmUp(20, mean_life=150)) for _ in range(2))
    courses = []
    for (cluster, target), replicas in ((alone, 1), (beside, 4)):
        cluster.scale("a", replicas)
        first, course = target.pods[0], []
        for at in range(1, 3000):
            cluster.advance(float(at))
            course.append((first.phase, first.crashes))
        courses.append(course)
        assert first.crashes > 5
        assert target.costs().crashes == sum(pod.crashes for pod in target.pods)
    assert courses[0] == courses[1]


def test_a_stuck_pod_holds_its_gpu_and_is_late() -> None:
    cluster, target = one(WarmUp(stuck_share=1.0, stuck_for=600))
    cluster.scale("a", 1)
    cluster.advance(500.0)
    assert target.pods[0].phase is Phase.STARTING
    cluster.advance(800.0)
    assert target.pods[0].phase is Phase.READY


def test_the_default_phases_lie_where_published_starts_do() -> None:
    starts = [WarmUp().draw(np.random.default_rng(k), 16e9) for k in range(500)]
    totals = [each.total for each in starts]
    # 8B with caches: 1-5 s + 16 GB / 2 GB/s + 35 s; published: 82 s with the image and the Python start on top
    assert 40 < np.median(totals) < 55
    cold = WarmUp(image=(60, 180), engine=90, node=180)
    assert 250 < np.median([cold.draw(np.random.default_rng(k), 16e9).total for k in range(500)]) < 450


def test_a_slow_tail_makes_some_starts_three_times_as_long_and_leaves_the_others() -> None:
    plain = [WarmUp().draw(np.random.default_rng(k), 16e9).engine for k in range(200)]
    tailed = [WarmUp(slow_share=0.1).draw(np.random.default_rng(k), 16e9).engine for k in range(200)]
    ratios = {round(b / a, 9) for a, b in zip(plain, tailed, strict=True)}
    assert ratios == {1.0, 3.0}


def test_who_asks_earlier_has_a_replica_no_later_whatever_was_started_before() -> None:
    """What two policies are compared on: the same place takes as long in either fleet."""
    calm, busy = (one(WarmUp(image=(60, 180), jitter=0.5)) for _ in range(2))
    for replicas in (3, 1, 4, 1):  # five starts more than the other fleet has behind it
        busy[0].scale("a", replicas)
        busy[0].advance(busy[0].now + 400)
    calm[0].scale("a", 1)
    calm[0].advance(1600.0)
    busy[0].scale("a", 9)
    for cluster in (calm[0], busy[0]):
        cluster.advance(1630.0)
    calm[0].scale("a", 9)
    for cluster in (calm[0], busy[0]):
        cluster.advance(4000.0)
    late, early = ({pod.place: pod for pod in target.pods} for _, target in (calm, busy))
    assert sorted(late) == sorted(early) == list(range(9))
    assert all(late[k].ready - early[k].ready == pytest.approx(30) for k in range(1, 9))
    assert len({round(pod.ready - pod.created, 6) for pod in late.values()}) == 9


def test_another_day_has_other_warm_ups() -> None:
    cluster, target = one(WarmUp(image=(60, 180)))
    for day in range(3):
        cluster.advance(day * 86400.0)
        cluster.scale("a", 1)
        cluster.advance(day * 86400.0 + 1000)
        cluster.scale("a", 0)
    assert len(set(target.warm_ups)) == 3


@pytest.mark.parametrize("bad", [{"engine": -1.0}, {"slow_share": 2.0}, {"stuck_share": -0.1}, {"read": (0.0, 1.0)}])
def test_a_warm_up_refuses_nonsense(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        WarmUp(**bad)


@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(
    wishes=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=8), pieces=st.integers(2, 10)
)
def test_gpus_are_never_given_twice_and_pieces_change_nothing(wishes: list[tuple[int, int]], pieces: int) -> None:
    def run(parts: int) -> tuple[object, ...]:
        each = {
            name: deployment(WarmUp(mean_life=300, slow_share=0.3), number=k, grace=5) for k, name in enumerate("ab")
        }
        cluster = Cluster(each, gpus={"H100": 7})
        for k, wish in enumerate(wishes):
            for name, replicas in zip("ab", wish, strict=True):
                each[name].pool.offer(cases.drawn(3, 60, seed=k).shifted(37.0 * k).between(37.0 * k, 37.0 * (k + 1)))
                cluster.scale(name, replicas)
            for part in range(1, parts + 1):
                cluster.advance(37.0 * k + 37.0 * part / parts if part < parts else 37.0 * (k + 1))
                assert cluster.free("H100") >= 0
        return tuple(
            (target.costs(), target.pool.replicas.tobytes(), cases.fate(target.pool)) for target in each.values()
        )

    assert run(1) == run(pieces)


def test_a_cluster_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Cluster({})
    with pytest.raises(ValueError, match="different times"):
        Cluster(
            {"a": deployment(FixedWarmUp(1)), "b": Deployment(Pool(cases.PLAIN, start=5.0), FixedWarmUp(1), seed=(1,))}
        )
    cluster, _ = one(FixedWarmUp(1))
    cluster.advance(5.0)
    with pytest.raises(ValueError, match="cannot go back"):
        cluster.advance(4.0)
    with pytest.raises(ValueError, match="replicas is -1"):
        cluster.scale("a", -1)


def test_pods_that_stood_before_are_ready_at_once_and_are_no_starts() -> None:
    target = deployment(FixedWarmUp(120))
    cluster = Cluster({"a": target})
    target.stand(2)
    target.advance(0.0)
    assert phases(target) == ["ready"] * 2
    cluster.scale("a", 3)
    cluster.advance(100.0)
    assert (target.wanted, target.costs().starts, target.warm_ups) == (3, 1, [])
    cluster.advance(150.0)
    assert target.warm_ups == [120.0]
    assert target.costs().replica_seconds == 450.0
    cluster.scale("a", 0)
    cluster.advance(160.0)
    assert phases(target) == []
    assert target.costs().wasted == 1  # of the starts, which the two were not


def test_a_starting_pod_says_what_it_waits_for() -> None:
    cluster, target = one(WarmUp(schedule=(5, 5), image=(60, 60), read=(2e9, 2e9), engine=90, jitter=0), gpus=1)
    cluster.scale("a", 2)
    seen = []
    for at in (2.0, 30.0, 70.0, 100.0, 200.0):
        cluster.advance(at)
        seen.append([pod.doing(at) for pod in target.pods])
    assert [first for first, _ in seen] == ["schedule", "image", "weights", "engine", "ready"]
    assert {second for _, second in seen} == {"pending"}
