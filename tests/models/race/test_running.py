import dataclasses

import numpy as np
import pytest

from models.capacity import sizes
from models.capacity.profile import Profile as Replica
from models.capacity.sizes import LoadTest, Sizes
from models.fleet import profiles, seen
from models.fleet.requests import Requests
from models.fleet.workload import Surge, Synthetic
from models.peers.hpa import Hpa, HpaSettings
from models.peers.static import Static
from models.policy.context import Supply
from models.policy.decision import Decision, Reason
from models.policy.planning import Objectives
from models.policy.protocol import Observation
from models.race import foresight, glance, loadtest, ours, running
from models.race.foresight import Foresight, Past
from models.race.running import Course, Glimpse
from models.series import Series
from models.signals import Known, Reading, Signal

LOAD = Synthetic(rate=6, day=0, surges=(Surge(7200.0, 2.0, lasts=1200),), seed=3)
COURSE = Course(
    profile=profiles.LLAMA_8B_RTX4090,
    source=LOAD,
    start=5400.0,
    end=10800.0,
    warm_up=120.0,
    objective=2.0,
    initial=3,
    maximum=12,
)
OBJECTIVES = Objectives(profile=Replica(concurrency=12, duration=6.0))


def foreseen(quantile_of: float = 1.0) -> Foresight:
    counts = np.bincount((LOAD.between(0, COURSE.end).times // 60).astype(int), minlength=180) / 60
    series = Series(60.0, 60.0, counts * quantile_of)
    return foresight.foresee({"a": Past(series, COURSE.start, COURSE.end)}, (COURSE.warm_up,))["a", COURSE.warm_up]


def test_a_fixed_number_is_paid_for_from_the_start_to_the_end() -> None:
    outcome = running.run(COURSE, Static(3), interval=15.0)
    assert outcome.replica_hours == pytest.approx(3 * 1.5)
    assert (outcome.starts, outcome.warming_hours) == (3, 0)
    assert outcome.requests == len(LOAD.between(COURSE.start, COURSE.end))


def test_further_replicas_take_their_warm_up() -> None:
    outcome = running.run(COURSE, Static(5), interval=15.0)
    assert outcome.warming_hours == pytest.approx(2 * 120 / 3600)


def test_warm_ups_drawn_between_two_take_as_long_as_their_mean_on_average() -> None:
    outcome = running.run(dataclasses.replace(COURSE, drawn=(100.0, 300.0), initial=1), Static(12), interval=15.0)
    mean = outcome.warming_hours * 3600 / 11
    assert mean == pytest.approx(200, rel=0.25)
    assert mean != pytest.approx(200, rel=1e-3)


def test_clients_that_come_back_are_load_again_and_count_once() -> None:
    overloaded = dataclasses.replace(COURSE, initial=2, timeout=10.0)
    gone, back = (
        running.run(dataclasses.replace(overloaded, retries=retries), Static(2), interval=15.0) for retries in (0, 3)
    )
    assert gone.requests == back.requests == len(LOAD.between(COURSE.start, COURSE.end))
    assert back.missed > gone.missed


def test_the_first_replicas_are_kept_while_a_policy_has_seen_nothing() -> None:
    shown: list[Glimpse] = []
    running.run(COURSE, Static(1), interval=15.0, watch=shown.append)
    assert {one.asked for one in shown if one.now < COURSE.start + 600} == {3}
    assert shown[-1].asked == 1


def test_the_same_run_again_gives_the_same_outcome() -> None:
    first, again = (running.run(COURSE, ours.Floorcast(OBJECTIVES, foreseen()), interval=15.0) for _ in range(2))
    assert first == again


def test_floorcast_serves_a_surge_better_than_what_it_began_with() -> None:
    ready = running.run(COURSE, ours.Floorcast(OBJECTIVES, foreseen()), interval=15.0)
    fixed = running.run(COURSE, Static(3), interval=15.0)
    assert ready.missed < fixed.missed


def test_without_its_forecast_the_reactive_rule_is_left_alone() -> None:
    alone = ours.Floorcast(OBJECTIVES, None)
    reasons = []

    class Noted:
        def decide(self, observation: Observation) -> Decision:
            decision = alone.decide(observation)
            reasons.append(decision.reason)
            return decision

    running.run(COURSE, Noted(), interval=15.0)
    assert Reason.HELD_NO_FORECAST not in reasons[4:]
    assert Reason.RAISED_FOR_FORECAST in reasons or Reason.RAISED_FOR_BACKLOG in reasons


def test_a_forecast_of_more_load_never_asks_for_fewer_replicas() -> None:
    low, high = foreseen(), foreseen(3.0)
    for at in np.arange(COURSE.start, COURSE.end, 600.0):
        seen_now = Observation(float(at), 1, 1, 50, supply=Supply(ready=1), readings=_quiet(float(at)))
        asked = [ours.Floorcast(OBJECTIVES, one).decide(seen_now).replicas for one in (low, high)]
        assert asked[0] <= asked[1]


def test_a_floor_under_an_hpa_only_adds() -> None:
    hpa = HpaSettings(Signal.IN_FLIGHT, 12)
    plain, floored = Hpa(hpa), ours.Floor(ours.Floorcast(OBJECTIVES, foreseen()), Hpa(hpa))
    alone = running.run(COURSE, plain, interval=15.0)
    both = running.run(COURSE, floored, interval=15.0)
    assert both.missed <= alone.missed
    assert both.replica_hours >= alone.replica_hours


def test_a_glance_reads_what_the_pages_say() -> None:
    differing = []

    class Compared:
        def decide(self, observation: Observation) -> Decision:
            readings = observation.readings
            assert isinstance(readings, glance.Glance)
            full = seen.readings(readings.looks.pool, readings.looks.sight)
            differing.extend(signal for signal in readings if readings[signal] != full[signal])
            return Hpa(HpaSettings(Signal.WAITING, 2.0)).decide(observation)

    running.run(COURSE, Compared(), interval=15.0)
    assert differing == []


def test_the_pods_one_by_one_add_up_to_the_readings() -> None:
    sums, shown = [], 0

    class Added:
        def decide(self, observation: Observation) -> Decision:
            nonlocal shown
            pods = observation.pods
            assert pods is not None
            serving = [pod for pod in pods if pod.ready]
            assert len(serving) == observation.supply.ready
            running = observation.readings[Signal.IN_FLIGHT]
            if isinstance(running, Known) and serving:
                shown += len({pod.running for pod in serving}) > 1
                sums.append((sum(pod.running or 0.0 for pod in serving), running.value))
            return Hpa(HpaSettings(Signal.WAITING, 2.0)).decide(observation)

    running.run(dataclasses.replace(COURSE, initial=3, minimum=3), Added(), interval=15.0)
    assert shown > 10
    assert all(mine == pytest.approx(reading) for mine, reading in sums)


def test_a_forecast_knows_only_the_past() -> None:
    counts = np.bincount((LOAD.between(0, COURSE.end).times // 60).astype(int), minlength=180) / 60
    later = counts.copy()
    later[150:] = 1000.0
    both = [
        foresight.foresee({"a": Past(Series(60.0, 60.0, one), 5400.0, 8940.0)}, (120.0,))["a", 120.0]
        for one in (counts, later)
    ]
    assert np.array_equal(both[0].raising, both[1].raising)


def test_a_load_test_finds_what_a_replica_carries() -> None:
    lengths = LOAD.between(0, 1800)
    knee = loadtest.knee(profiles.LLAMA_8B_RTX4090, lengths, objective=2.0)
    assert 1 < knee.rate < 8
    assert knee.concurrency == pytest.approx(knee.rate * 6, rel=0.7)
    assert knee.objective == 2.0
    assert loadtest.knee(profiles.LLAMA_8B_H100, lengths, objective=2.0).rate > 2 * knee.rate


def test_load_tests_at_other_sizes_tell_what_a_replica_carries_of_longer_requests() -> None:
    """The powers measured around one size foretell a load test of requests a third longer in both."""
    lengths, profile = LOAD.between(0, 1800), profiles.LLAMA_8B_RTX4090
    knee = loadtest.knee(profile, lengths, objective=4.0)
    by_size = loadtest.by_size(profile, lengths, knee)
    other = loadtest.longer(lengths, prompts=1.3, outputs=1.3)
    told = knee.rate * by_size.relative(loadtest.mean(other))[0]
    assert loadtest.knee(profile, other, objective=4.0).rate == pytest.approx(told, rel=0.15)
    assert told < 0.8 * knee.rate


def test_a_replica_is_tested_with_longer_answers_even_where_they_are_one_token() -> None:
    lengths = LOAD.between(0, 1800)
    single = dataclasses.replace(lengths, outputs=np.ones(len(lengths), np.int64))
    knee = loadtest.knee(profiles.LLAMA_8B_RTX4090, single, objective=4.0)
    found = loadtest.by_size(profiles.LLAMA_8B_RTX4090, single, knee)
    assert found.most.output >= 1.2
    assert found.throughput[0] < found.throughput[1] <= 0  # prompts are what there is to do


def test_a_minute_weighs_what_a_load_test_of_its_requests_says() -> None:
    tested = [LoadTest(Sizes(p, o), 4000 / p / o, 8) for p, o in ((100, 10), (200, 10), (100, 20))]
    by_size = sizes.fitted(tested)
    times = np.array([10.0, 20.0, 610.0, 1200.0])
    requests = Requests(times, np.array([50, 150, 200, 100]), np.array([10, 10, 20, 10]))
    found = loadtest.weights(requests, by_size, start=0.0, steps=20)
    assert found[0] == pytest.approx(1)  # two prompts, as long as those tested on average
    assert found[10] == pytest.approx(4)
    assert found[5] == 1  # nobody came


class Longer:
    """The same arrivals, whose requests are half as long again from a time on."""

    def between(self, start: float, end: float) -> Requests:
        given = LOAD.between(start, end)
        later = np.where(given.times > COURSE.start + 900, 1.5, 1.0)
        return dataclasses.replace(given, outputs=np.rint(given.outputs * later).astype(np.int64))


def test_requests_that_grow_ask_for_more_replicas_where_load_tests_say_what_they_weigh() -> None:
    tested = [LoadTest(Sizes(p, o), 10 / p / o, 8) for p, o in ((1, 1), (2, 1), (1, 2))]
    sizes_of_load = loadtest.mean(LOAD.between(COURSE.start, COURSE.start + 900))
    by_size = dataclasses.replace(sizes.fitted(tested), tested=sizes_of_load, least=sizes_of_load, most=sizes_of_load)
    knowing = dataclasses.replace(OBJECTIVES, profile=dataclasses.replace(OBJECTIVES.profile, by_size=by_size))
    course = dataclasses.replace(COURSE, source=Longer())
    blind, seeing = (
        running.run(course, ours.Floorcast(each, foreseen()), interval=15.0) for each in (OBJECTIVES, knowing)
    )
    assert seeing.replica_hours > 1.1 * blind.replica_hours
    assert seeing.missed <= blind.missed


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="end is 0"):
        dataclasses.replace(COURSE, end=0.0)
    with pytest.raises(ValueError, match="warm_up is -1"):
        dataclasses.replace(COURSE, warm_up=-1.0)
    with pytest.raises(ValueError, match="drawn is"):
        dataclasses.replace(COURSE, drawn=(9.0, 3.0))
    with pytest.raises(ValueError, match="initial 30"):
        dataclasses.replace(COURSE, initial=30)


def _quiet(at: float) -> dict[Signal, Reading]:
    return {signal: Known(0.0, at) for signal in ours.DEMAND}
