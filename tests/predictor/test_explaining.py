"""A decision explained by the service: what it is made of, and what would have changed it."""

import dataclasses
import datetime as dt
import io
import json

import pytest
import rich.console

from models.capacity import sizes
from models.capacity.mix import Mix
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes
from models.capacity.trusting import Source
from models.forecasting.forecast import Forecast, Quality
from models.policy import floor, planning
from models.signals import Cause, Signal, Unknown
from predictor import explained, explaining
from predictor.board import Entry
from predictor.targets import GpuLimits
from predictor.telemetry import pages, snapshot
from tests.fakes.world import CALM
from tests.predictor.decided import NOW, decide, row
from tests.predictor.telemetry import examples


def what_if(entry: Entry) -> dict[str, int]:
    told = explaining.explain(entry)
    assert told is not None
    return {one["change"]: one["replicas"] for one in told["what_if"]}


def test_what_would_have_changed_it_is_told_nearest_first() -> None:
    assert list(what_if(row()).items())[:3] == [("at quantile 0.9", 5), ("at quantile 0.5", 4), ("at quantile 0.8", 4)]
    assert what_if(row())["at quantile 0.99"] == 10
    assert what_if(row())["without the forecast"] == 2


def test_a_backlog_that_decided_is_named() -> None:
    entry = row(waiting=240.0)
    assert entry.decision is not None
    assert entry.decision.replicas == 8  # 60 in flight and 240 waiting, 40 each
    assert what_if(entry)["without the backlog"] == 6


def test_limits_that_bound_are_named() -> None:
    small = dataclasses.replace(CALM, maximum=4)
    assert what_if(row(small))["at a maximum of 6"] == 6
    budget = row(dataclasses.replace(CALM, gpus=2), gpus=GpuLimits(budget=8))
    assert what_if(budget)["without GPU budget"] == 6


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rollout": True}, "without the rollout"),
        ({"owner_problem": "broken"}, "with a healthy owner"),
        ({}, "without the hold and the time between steps"),
    ],
)
def test_what_holds_a_number_is_named(change: dict[str, object], told: str) -> None:
    entry = row(dataclasses.replace(CALM, standing=8, **change))  # type: ignore[arg-type]
    if change:
        assert entry.memory is not None
        entry.memory = dataclasses.replace(entry.memory, needed_at=NOW - 9999)
        decide(entry, now=NOW + 10)
    assert entry.decision is not None
    assert entry.decision.replicas == 8
    assert what_if(entry)[told] < 8


def test_an_unknown_signal_that_holds_is_named() -> None:
    entry = row(dataclasses.replace(CALM, standing=8))
    entry.readings = {**entry.readings, Signal.WAITING: Unknown(Cause.STALE)}
    assert entry.memory is not None
    entry.memory = dataclasses.replace(entry.memory, needed_at=NOW - 9999)
    decide(entry, now=NOW + 10)
    assert what_if(entry)["with all signals known"] == 7


def test_the_minimum_may_be_what_decides_and_a_step_what_limits() -> None:
    kept, falling = row(dataclasses.replace(CALM, base=9, standing=9)), row(dataclasses.replace(CALM, standing=9))
    for entry in (kept, falling):
        assert entry.memory is not None
        entry.memory = dataclasses.replace(entry.memory, needed_at=NOW - 9999)
        decide(entry, now=NOW + 10)
    assert what_if(kept)["at a minimum of 1"] == 8
    assert what_if(falling)["without any limit of a step"] == 6


def test_before_the_first_decision_there_is_nothing_to_explain() -> None:
    assert explaining.explain(Entry(examples.target())) is None
    assert explaining.capacity(Entry(examples.target())) is None


def test_what_a_replica_serves_of_requests_as_large_as_now_is_told() -> None:
    tests = [LoadTest(Sizes(p, o), 400_000 / p / o, 40) for p, o in ((1000, 100), (2000, 100), (1000, 200))]
    entry = row()
    profile = Profile(40, throughput=4, source=Source.LOAD_TEST, by_size=sizes.fitted(tests))
    entry.target = dataclasses.replace(
        entry.target, objectives=dataclasses.replace(entry.target.objectives, profile=profile)
    )
    entry.mix = Mix(NOW, 60.0, prompt=1e9, output=2e8, taken=1e6, served=1e6)
    decide(entry, now=NOW)
    told = explaining.capacity(entry)
    assert told is not None
    assert told["throughput"] == 4  # as tested
    figures = {name: one for name, one in told["sizes"].items() if name != "unknown"}
    assert figures == pytest.approx({"prompt": 1000, "output": 200, "concurrency": 40, "throughput": 2}, rel=1e-3)
    assert told["sizes"]["unknown"] == ""
    record = explaining.explain(entry)
    assert record is not None
    out = io.StringIO()
    explained.show(record, rich.console.Console(file=out, width=200, color_system=None), zone=dt.UTC)
    assert "2 requests/s a replica, for prompts of 1000 and outputs of 200 tokens; as of late" in out.getvalue()


def test_sizes_that_are_not_known_yet_are_told_as_such() -> None:
    tests = [LoadTest(Sizes(p, o), 400_000 / p / o, 40) for p, o in ((1000, 100), (2000, 100), (1000, 200))]
    profile = Profile(40, throughput=4, source=Source.LOAD_TEST, by_size=sizes.fitted(tests))
    entry = row(dataclasses.replace(CALM, standing=8))
    objectives = dataclasses.replace(entry.target.objectives, profile=profile)
    entry.target = dataclasses.replace(entry.target, objectives=objectives)
    entry.mix = Mix(NOW, 60.0, prompt=12e3, output=1200, taken=12.0, served=12.0)
    decide(entry, now=NOW)
    told = explaining.capacity(entry)
    assert told is not None
    assert told["sizes"]["unknown"] == "sizes of requests are not known, 12 of 30 seen"
    record = explaining.explain(entry)
    assert record is not None
    assert "with the sizes of requests known" not in what_if(entry)  # the signals are not known either
    out = io.StringIO()
    explained.show(record, rich.console.Console(file=out, width=200, color_system=None), zone=dt.UTC)
    assert "outputs of 100 tokens; sizes of requests are not known, 12 of 30 seen" in out.getvalue()


def test_what_was_written_before_it_was_said_whether_sizes_are_known_can_be_shown() -> None:
    entry = row()
    decide(entry, now=NOW)
    record = explaining.explain(entry)
    assert record is not None
    figures = {"prompt": 1000.0, "output": 200.0, "concurrency": 40.0, "throughput": 2.0}
    old = {**record, "capacity": {**record["capacity"], "sizes": figures}}
    out = io.StringIO()
    explained.show(old, rich.console.Console(file=out, width=200, color_system=None), zone=dt.UTC)
    assert "outputs of 200 tokens; as of late" in out.getvalue()


def roomy() -> Entry:
    """A target for which room is planned for over the warm-up: 300 in flight where the forecast has 230."""
    entry = row()
    assert entry.plans is not None
    raising, lowering = entry.plans.outlooks[Signal.IN_FLIGHT]
    assert isinstance(raising, Forecast)
    steady = dataclasses.replace(raising, steady={0.5: 110.0, 0.95: 300.0})
    planned = planning.plan_for(
        {Signal.IN_FLIGHT: steady}, profile=entry.objectives.profile, probability=0.95, duration=entry.plans.duration
    )
    entry.plans = dataclasses.replace(
        entry.plans, outlooks={Signal.IN_FLIGHT: (steady, lowering)}, raising=planned, lowering=planned
    )
    decide(entry, now=NOW)
    return entry


def test_room_that_is_planned_for_is_told_beside_the_forecast() -> None:
    record = explaining.explain(roomy())
    assert record is not None
    out = io.StringIO()
    explained.show(record, rich.console.Console(file=out, width=200, color_system=None), zone=dt.UTC)
    assert "p95 230" in out.getvalue()
    assert "planned for instead, room kept all the time: p50 110, p95 300" in out.getvalue()
    assert out.getvalue().count("room kept all the time") == 1
    assert "14:30:00 UTC: room for in_flight 300.0 at 40 a replica needs 8" in out.getvalue()
    assert "in_flight 300 at 40 a replica (binding)" in out.getvalue()


def test_what_would_have_changed_it_keeps_room_as_the_plan_does_and_says_what_following_would_have_given() -> None:
    entry = roomy()
    assert entry.decision is not None
    assert entry.decision.replicas == 8  # 300 at 40 a replica
    assert what_if(entry)["at quantile 0.5"] == 3  # 110, not the forecast's 130
    assert what_if(entry)["following the forecast, no room kept"] == 6
    assert "following the forecast, no room kept" not in what_if(row())


def test_a_forecast_too_old_to_be_planned_for_is_not_said_to_have_changed_anything() -> None:
    entry = roomy()
    decide(entry, now=NOW + 3600)
    assert not [change for change in what_if(entry) if "quantile" in change or "following" in change]


def test_what_was_written_down_makes_the_same_plan_and_decision_again() -> None:
    entry = roomy()
    record = json.loads(json.dumps(pages.plain(explaining.explain(entry))))
    told = record["plans"]["forecasts"]["in_flight"]["raising"]
    bounds = {name: {float(q): value for q, value in told[name].items()} for name in ("quantiles", "steady")}
    again = Forecast(told["issued_at"], told["horizon"], told["level"], quality=Quality(told["quality"]), **bounds)
    planned = planning.plan_for(
        {Signal.IN_FLIGHT: again},
        profile=entry.objectives.profile,
        probability=entry.objectives.raise_quantile,
        duration=record["plans"]["duration"],
    )
    assert snapshot.planned(planned) == record["plans"]["raising"]
    assert entry.basis is not None
    context = dataclasses.replace(entry.basis.context, raising=planned)
    made, _ = floor.decide(context, entry.basis.settings, entry.basis.memory)
    assert made == entry.decision


def test_everything_is_plain_data_with_ages() -> None:
    told = json.loads(json.dumps(pages.plain(explaining.explain(row()))))
    assert told["inputs"]["in_flight"] == {"value": 60.0, "at": NOW - 12, "age": 12.0}
    assert told["plans"]["forecasts"]["in_flight"]["raising"]["quality"] == "seasoned"
    assert told["plans"]["raising"]["needs"]["in_flight"]["replicas"] == 6
    assert told["capacity"]["source"] == "configured"
    assert told["limits"] == {"maximum": 10}
    assert told["decision"]["trail"][0]["rule"] == "follow_the_plan"
