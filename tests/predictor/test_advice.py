"""Targets whose number must not be written, and targets whose replicas start one by one."""

import dataclasses

from models.policy.context import Supply
from predictor.ports import Refused, Workload
from predictor.targets import Mode
from tests.fakes.stage import SEASON, TARGET, Stage, demand
from tests.fakes.world import CALM

ADVICE = Refused("Contested", "argocd-controller changed the number back")


def busy(time: float) -> float:
    """70 requests in flight, 310 from a minute after the start on: eight replicas at 40 each."""
    return 310.0 if time >= SEASON * 300 + 60 else 70.0


def test_a_number_that_is_only_advised_on_is_decided_and_never_written() -> None:
    stage = Stage(demand(busy), workload=dataclasses.replace(CALM, advice=ADVICE))
    stage.pass_time(120)
    assert stage.workloads.writes == []
    assert stage.entry.shadow_floor == 8
    assert stage.entry.refused == ADVICE
    assert stage.workloads.announced, "why nothing is written is told"


def test_writing_begins_from_the_live_number_once_the_reason_is_gone() -> None:
    stage = Stage(demand(busy), workload=dataclasses.replace(CALM, advice=ADVICE))
    stage.pass_time(120)
    state = stage.workloads.state[TARGET.key]
    assert isinstance(state, Workload)
    stage.workloads.state[TARGET.key] = dataclasses.replace(state, advice=None)
    stage.pass_time(20)
    assert [replicas for _, _, replicas in stage.workloads.writes] == [8]
    assert (stage.entry.shadow_floor, stage.entry.refused) == (None, None)


def test_in_shadow_mode_a_reason_not_to_write_is_no_refusal() -> None:
    target = dataclasses.replace(TARGET, mode=Mode.SHADOW)
    stage = Stage(demand(busy), target=target, workload=dataclasses.replace(CALM, advice=ADVICE))
    stage.pass_time(60)
    assert stage.entry.refused is None


def test_replicas_that_start_one_by_one_are_asked_for_that_many_warm_ups_ahead() -> None:
    """Eight are wanted and five are ready: three warm-ups of 60 s, a slow interval of 30 s and 15 s of signal age."""
    seen = dataclasses.replace(CALM, supply=Supply(ready=5), replicas=5, standing=5)
    for workload, horizon in ((seen, 105.0), (dataclasses.replace(seen, one_by_one=True), 225.0)):
        stage = Stage(demand(lambda _: 310.0), workload=workload)
        stage.pass_time(90)
        plans = stage.entry.plans
        assert plans.raising.replicas == 8
        assert plans.horizons.raising == horizon
