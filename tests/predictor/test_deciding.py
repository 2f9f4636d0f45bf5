"""What a decision is made from: limits, stalled engines, what was learned of capacity."""

import dataclasses

import pytest

from models.capacity.profile import Profile
from models.capacity.sizing import NeedKind
from models.capacity.trusting import Learn, Source
from models.policy.context import Supply
from models.policy.decision import Reason
from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor import deciding, limiting
from predictor.board import Entry
from predictor.ports import MIXED_GPUS, Readings, Refused, Stuck, Workload
from predictor.targets import GpuLimits, Learning
from tests.fakes.world import CALM
from tests.predictor.rows import Row
from tests.predictor.telemetry import examples


def gpus(**changes: object) -> Workload:
    return dataclasses.replace(CALM, **{"gpus": 2, **changes})  # type: ignore[arg-type]


def test_the_owner_s_maximum_is_named_as_ever() -> None:
    made = Row(wanted=14).decide()
    assert (made.replicas, made.reason) == (10, Reason.CAPPED_AT_MAXIMUM)
    assert made.note.endswith("wanted 14, max 10")


def test_a_gpu_budget_binds_below_the_maximum_and_is_named() -> None:
    row = Row(wanted=14, gpus=GpuLimits(budget=13))
    row.workload = gpus()
    made = row.decide()
    assert (made.replicas, made.reason, made.wanted) == (6, Reason.CAPPED_AT_MAXIMUM, 14)
    assert made.note.endswith("wanted 14, max 6 (GPU budget)")


def test_the_gpus_of_a_replica_may_be_said_and_without_them_no_budget_can_be_told() -> None:
    row = Row(wanted=14, gpus=GpuLimits(budget=13, per_replica=4))
    assert row.decide().replicas == 3
    assert Row(wanted=14, gpus=GpuLimits(budget=13)).decide().replicas == 10


def test_a_pool_leaves_what_the_others_do_not_hold() -> None:
    shared = GpuLimits(per_replica=2, pool="h100", pooled=16)
    other, stranger = Row(gpus=shared), Row(gpus=GpuLimits(per_replica=2, pool="a100", pooled=16))
    other.workload = stranger.workload = gpus(replicas=5, standing=3)
    other.decide()
    stranger.decide()
    unseen = Entry(dataclasses.replace(examples.target("unseen"), gpus=shared))
    made = Row(wanted=14, gpus=shared).decide(other.entry, stranger.entry, unseen)
    assert made.replicas == 3  # 16 less 10 are 6, two each
    assert made.note.endswith("(GPU pool h100)")


def test_a_pool_is_not_free_because_who_holds_it_cannot_be_seen() -> None:
    shared = GpuLimits(per_replica=2, pool="h100", pooled=16)
    other = Row(wanted=5, gpus=shared)
    other.workload = gpus(replicas=5, standing=5)
    other.decide()
    other.entry.workload = Refused("Unreachable", "the API server does not answer")
    assert Row(wanted=14, gpus=shared).decide(other.entry).replicas == 3  # 16 less 10 are 6, two each


def test_the_user_s_own_minimum_stands_above_a_budget() -> None:
    row = Row(wanted=14, gpus=GpuLimits(budget=1))
    row.workload = gpus(base=2)
    assert row.decide().replicas == 2


def test_no_more_is_asked_for_while_pods_find_no_node_and_nothing_falls_for_it() -> None:
    row = Row(wanted=14)
    lost = Stuck("chat-x", 900.0, limiting.UNSCHEDULABLE, "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.")
    row.workload = dataclasses.replace(CALM, standing=3, supply=Supply(ready=3, warming=1, stuck=1), stuck=(lost,))
    made = row.decide()
    assert made.replicas == 5
    assert made.note.endswith("wanted 14, max 5 (schedulable GPUs)")
    row.workload = dataclasses.replace(row.workload, standing=7)
    assert row.decide().replicas == 7
    slow = dataclasses.replace(lost, reason="ImagePullBackOff")
    row.workload = dataclasses.replace(row.workload, stuck=(slow,))
    assert row.decide().replicas == 10  # there are GPUs: the image is what is missing


def test_stalled_engines_are_reported_and_not_fed_with_replicas() -> None:
    row = Row(wanted=9)
    for _ in range(18):
        row.decide(in_flight=400.0, waiting=300.0, tokens_out=0.0)
    row.workload = dataclasses.replace(row.workload, standing=4)
    made = row.decide(in_flight=400.0, waiting=900.0, tokens_out=0.0)
    assert (made.replicas, made.reason) == (4, Reason.HELD_UNKNOWN)
    assert made.note == "in_flight stalled"
    assert row.entry.stalled == 180
    row.decide(in_flight=400.0)
    assert row.entry.stalled == 0


def test_arrivals_still_count_while_engines_are_stalled() -> None:
    row = Row(wanted=6, kind=NeedKind.ARRIVALS)
    for _ in range(20):
        made = row.decide(in_flight=400.0, waiting=300.0, tokens_out=0.0)
    assert row.entry.stalled
    assert made.replicas == 6


def learned(learn: Learn = Learn.LOWER, *, load: float = 35.0, ttft: float = 9.0, gpu: str = "H100") -> Row:
    """An hour at so many requests in flight a replica, with that time to the first token; the objective is 2 s."""
    row = Row(learning=Learning(ttft=2.0, learn=learn))
    row.workload = dataclasses.replace(CALM, gpu=gpu)
    for _ in range(360):
        row.decide(in_flight=2 * load - 10, waiting=10.0, ttft_p95=ttft)
    return row


def test_capacity_is_lowered_by_what_was_missed_while_serving() -> None:
    row = learned()
    assert row.entry.capacity is not None
    assert row.entry.capacity.source is Source.OBSERVED
    assert row.entry.objectives.profile.concurrency == 20  # half of 40: nothing was ever met
    assert "the objective was missed at 3" in row.entry.capacity.note


def test_what_was_met_only_warns() -> None:
    row = learned(load=60.0, ttft=1.0)
    assert row.entry.objectives.profile == Profile(concurrency=40)
    assert row.entry.capacity is not None
    assert "could be" in row.entry.capacity.note
    assert learned(Learn.BOTH, load=60.0, ttft=1.0).entry.objectives.profile.concurrency == pytest.approx(50, rel=0.06)


def test_replicas_of_several_gpus_are_learned_of_apart_from_those_of_one() -> None:
    row = learned()
    row.workload = dataclasses.replace(CALM, gpu="H100", gpus=8)
    row.decide(in_flight=60.0, waiting=10.0, ttft_p95=9.0)
    assert set(row.entry.observers) == {"H100", "8 x H100"}
    assert row.entry.capacity is not None
    assert row.entry.capacity.source is Source.CONFIGURED


def test_nothing_is_learned_unasked() -> None:
    assert learned(Learn.OFF).entry.observers == {}
    assert Row().decide().replicas == 2


def test_nothing_is_learned_of_a_fleet_of_several_types_that_warms_or_is_half_seen() -> None:
    assert learned(gpu=MIXED_GPUS).entry.observers[MIXED_GPUS].observed().windows == 0
    for warming, ttft in ((1, 9.0), (0, None)):
        row = Row(learning=Learning(ttft=2.0))
        row.workload = dataclasses.replace(CALM, supply=Supply(ready=2, warming=warming), gpu="H100")
        for _ in range(360):
            row.decide(in_flight=60.0, ttft_p95=ttft)
        assert row.entry.observers["H100"].observed().windows == 0


def test_a_missed_objective_adds_a_replica_and_says_with_which_figures() -> None:
    row = Row(learning=Learning(ttft=2.0, learn=Learn.OFF))
    row.workload = dataclasses.replace(CALM, standing=2, supply=Supply(ready=2))
    made = [row.decide(ttft_p95=3.14) for _ in range(19)][-1]  # one each 10 s
    assert (made.replicas, made.reason) == (3, Reason.RAISED_FOR_OBJECTIVE)
    assert made.note == "TTFT p95 3.14 s over 2 s for 180 s with 2 replicas"


@pytest.mark.parametrize("ttft", [1.9, None])
def test_an_objective_that_is_met_or_not_known_adds_nothing(ttft: float | None) -> None:
    row = Row(learning=Learning(ttft=2.0, learn=Learn.OFF))
    row.workload = dataclasses.replace(CALM, standing=2, supply=Supply(ready=2))
    assert row.decide(ttft_p95=ttft).replicas == 2


def inside(row: Row, *running: float, waiting: float | None = 0.0) -> float | None:
    """What the history is to remember of the last of these looks, 10 s apart."""
    kept: Readings = {}
    for count in running:
        row.decide(in_flight=count, waiting=waiting, arrivals=3.0)
        kept = deciding.demanded(row.entry)
        assert kept.keys() == row.entry.readings.keys()
    reading = kept[Signal.IN_FLIGHT]
    return reading.value if isinstance(reading, Known) else None


def test_the_history_is_told_what_is_demand_while_a_backlog_is_worked_off() -> None:
    # 3/s arrive and 6/s end: half of the 120 that are left of it count, where two replicas are planned for 80
    assert inside(Row(), 180, 150, 120) == pytest.approx(60)
    assert inside(Row(), 120, 150, 180) == 180


def test_the_history_is_told_all_there_is_where_nothing_more_is_known() -> None:
    assert inside(Row(), 180, 150, 120, waiting=None) == 120
    row = Row()
    row.decide(in_flight=120.0)
    row.entry.workload = Refused("NotFound", "gone")
    assert deciding.demanded(row.entry) == row.entry.readings


def seen(row: Row, running: float, *, at: float, reporting: Reading | float = 2) -> float:
    """What the history is to remember of a sample that was taken at a time, looked at now; two replicas are Ready."""
    pods = Known(reporting, at) if isinstance(reporting, int | float) else reporting
    row.entry.readings = {
        **row.entry.readings,
        Signal.IN_FLIGHT: Known(running, at),
        Signal.WAITING: Known(1.0, at),
        Signal.REPORTING: pods,
    }
    reading = deciding.demanded(row.entry)[Signal.IN_FLIGHT]
    assert isinstance(reading, Known)
    return reading.value


def test_growth_is_that_between_samples_however_often_they_are_looked_at() -> None:
    row = Row()
    row.decide(in_flight=300.0, waiting=1.0, arrivals=3.0)
    start = row.now
    for k in range(12):  # every 10 s at what is scraped every 60 s; 3/s fewer each second, 6/s end
        running, at = 300.0 - 3 * 60 * (k // 6), start + 1000 + 60 * (k // 6)
        value = seen(row, running, at=at)
        assert value == (300.0 if k < 6 else pytest.approx(60))


@pytest.mark.parametrize("reporting", [1, Unknown(Cause.SOURCE_DOWN), Unknown(Cause.STALE), Unknown(Cause.NOT_ASKED)])
def test_sums_that_are_not_known_to_be_over_all_pods_are_no_backlog_worked_off(reporting: Reading | float) -> None:
    row = Row()
    row.decide(in_flight=300.0, waiting=1.0, arrivals=3.0)
    assert seen(row, 300.0, at=row.now + 1000) == 300
    assert seen(row, 240.0, at=row.now + 1010, reporting=reporting) == 240
    assert row.entry.growth == 0
    # 3/s arrive and 6/s end, since the last sums over all pods
    assert seen(row, 240.0, at=row.now + 1020) == pytest.approx(120)


def test_what_was_seen_before_sums_that_are_not_says_nothing_once_fewer_are_ready_or_long_after() -> None:
    for ready, gap in ((1, 10.0), (2, 400.0)):
        row = Row()
        row.decide(in_flight=300.0, waiting=1.0, arrivals=3.0)
        assert isinstance(row.entry.workload, Workload)
        seen(row, 300.0, at=row.now + 1000)
        row.entry.workload = dataclasses.replace(row.entry.workload, supply=Supply(ready=ready))
        seen(row, 240.0, at=row.now + 1000 + gap, reporting=0)
        row.entry.workload = dataclasses.replace(row.entry.workload, supply=Supply(ready=2))
        assert seen(row, 240.0, at=row.now + 1010 + gap) == 240
