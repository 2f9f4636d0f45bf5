"""What is remembered from one decision to the next.

Written against mutants that the other tests let live (docs/decisions/0005-mutants.md).
"""

import dataclasses

import pytest

from models.policy import floor
from models.policy.context import Context, Memory
from models.signals import Cause, Signal
from tests.models.policy.cases import LONG_AGO, NO_PLAN, NOW, SETTINGS, context, plan

UNKNOWN = ((Signal.ARRIVALS, Cause.STALE),)
EARLIER = NOW - 40.0


def remembered(seen: Context, memory: Memory = LONG_AGO) -> Memory:
    return floor.decide(seen, SETTINGS, memory)[1]


@pytest.mark.parametrize(
    ("raising", "lowering", "reacting"),
    [(5, 1, 1), (1, 5, 1), (1, 1, 5), (6, 1, 1)],
    ids=["the warm-up asks for it", "the longer horizon does", "the load of now does", "more is asked for"],
)
def test_what_stands_is_needed_while_any_plan_asks_for_it(raising: int, lowering: int, reacting: int) -> None:
    seen = context(raising=plan(raising), lowering=plan(lowering), reacting=plan(reacting))
    assert remembered(seen).needed_at == NOW


@pytest.mark.parametrize(
    "seen",
    [
        context(raising=plan(4), lowering=plan(4), reacting=plan(4)),
        context(standing=1, base=1, raising=NO_PLAN, lowering=NO_PLAN, reacting=NO_PLAN),
        context(maximum=4, raising=plan(9)),
    ],
    ids=["all ask for less", "nothing is planned", "the maximum allows less"],
)
def test_what_no_plan_asks_for_was_needed_when_one_last_did(seen: Context) -> None:
    assert remembered(seen).needed_at == LONG_AGO.needed_at


def test_a_number_that_was_needed_once_more_is_held_anew() -> None:
    lower = context(now=NOW + SETTINGS.hold - 1, raising=plan(2), lowering=plan(2))
    assert floor.decide(lower, SETTINGS, remembered(context()))[0].replicas == 5
    assert floor.decide(dataclasses.replace(lower, now=lower.now + 1), SETTINGS, remembered(context()))[0].replicas == 4


@pytest.mark.parametrize(
    ("changes", "since"),
    [
        ({"unknown": UNKNOWN}, NOW),
        ({"raising": NO_PLAN}, NOW),
        ({"lowering": NO_PLAN}, NOW),
        ({"unsized": "few were seen"}, None),
        ({}, None),
    ],
    ids=["a signal", "the forecast", "the longer forecast", "not the size of requests", "nothing"],
)
def test_it_is_remembered_since_when_something_is_unknown(changes: dict[str, object], since: float | None) -> None:
    assert remembered(context(**changes)).unknown_since == since
    before = dataclasses.replace(LONG_AGO, unknown_since=EARLIER)
    assert remembered(context(**changes), before).unknown_since == (since and EARLIER)


def test_it_is_remembered_apart_since_when_the_size_of_requests_is_unknown() -> None:
    before = dataclasses.replace(LONG_AGO, unknown_since=EARLIER, unsized_since=EARLIER)
    assert remembered(context(unsized="few were seen")).unsized_since == NOW
    assert remembered(context(unsized="few were seen"), before).unsized_since == EARLIER
    assert remembered(context(unknown=UNKNOWN), before).unsized_since is None


def test_it_is_remembered_since_when_an_objective_is_missed() -> None:
    before = dataclasses.replace(LONG_AGO, missed_since=EARLIER)
    assert remembered(context(breach="ttft 9 s")).missed_since == NOW
    assert remembered(context(breach="ttft 9 s"), before).missed_since == EARLIER
    assert remembered(context(), before).missed_since is None


def test_only_a_step_down_is_remembered_as_one() -> None:
    lower = {"raising": plan(2), "lowering": plan(2)}
    before = dataclasses.replace(LONG_AGO, lowered_at=NOW - 100)
    assert remembered(context(**lower), before).lowered_at == NOW
    for seen in (context(), context(raising=plan(9)), context(**lower, rollout=True)):
        assert remembered(seen, before).lowered_at == NOW - 100
