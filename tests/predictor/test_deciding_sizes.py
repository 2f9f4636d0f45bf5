"""What a decision is made from where replicas are planned for by the sizes of requests."""

import dataclasses
import math

import pytest

from models.capacity import sizes
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes
from models.capacity.sizing import NeedKind, Plan
from models.capacity.trusting import Learn, Source
from models.policy.decision import Reason
from models.signals import Cause, Signal, Unknown
from predictor import deciding, kept
from predictor.board import Entry
from predictor.outlooks import Pace
from predictor.signals import scrape
from predictor.targets import Learning
from tests.fakes.world import CALM
from tests.predictor.rows import Row


def by_size() -> Profile:
    """A replica that serves half as many requests a second where outputs are twice as long, and holds as many."""
    tests = [LoadTest(Sizes(1000, output), 4 * 100 / output, 40) for output in (100, 200)]
    tests.append(LoadTest(Sizes(2000, 100), 4, 40))
    return Profile(40, throughput=4, source=Source.LOAD_TEST, by_size=sizes.fitted(tests))


class Sized(Row):
    """A target whose requests are known by their sizes: ten arrive a second, and end."""

    def __init__(self) -> None:
        super().__init__(wanted=1)
        objectives = dataclasses.replace(self.entry.target.objectives, profile=by_size())
        self.entry = Entry(dataclasses.replace(self.entry.target, objectives=objectives))

    def serve(self, *, output: float, minutes: float, **values: float | None) -> None:
        for _ in range(round(minutes * 6)):
            flow = {"arrivals": 10, "completions": 10, "tokens_in": 10_000, "tokens_out": 10 * output, "in_flight": 80}
            self.decide(**{**flow, **values})


def test_requests_that_grow_are_planned_for_with_what_a_replica_serves_of_such() -> None:
    row = Sized()
    row.serve(output=100, minutes=5)
    assert row.entry.objectives.profile.throughput == pytest.approx(4)
    assert row.entry.basis is not None
    reacting = row.entry.basis.context.reacting
    assert isinstance(reacting, Plan)
    assert (reacting.binding.kind, reacting.replicas) == (NeedKind.ARRIVALS, 3)
    row.serve(output=200, minutes=60)
    assert row.entry.objectives.profile.throughput == pytest.approx(2, rel=0.02)
    reacting = row.entry.basis.context.reacting
    assert isinstance(reacting, Plan)
    assert reacting.replicas == 5
    assert row.entry.sizes is not None
    assert row.entry.sizes.output == pytest.approx(200, rel=0.02)


@pytest.mark.parametrize("missing", ["tokens_in", "tokens_out", "completions", "in_flight"])
def test_sizes_that_are_not_known_stay_what_they_were(missing: str) -> None:
    row = Sized()
    row.serve(output=200, minutes=60)
    before = row.entry.sizes
    row.serve(output=100, minutes=10, **{missing: None})
    assert row.entry.sizes == before


def test_sizes_that_were_known_and_are_no_more_hold_the_number() -> None:
    """They may have grown since."""
    row = Sized()
    row.serve(output=100, minutes=5)
    row.workload = dataclasses.replace(CALM, standing=8, replicas=8)
    row.serve(output=100, minutes=20, completions=None)
    assert row.entry.decision is not None
    assert (row.entry.decision.replicas, row.entry.decision.reason) == (8, Reason.HELD_UNKNOWN)


def stands(row: Sized, replicas: int) -> None:
    row.workload = dataclasses.replace(CALM, standing=replicas, replicas=replicas)


def lowered(row: Sized) -> bool:
    return Reason.LOWERED_ONE_STEP in {one.reason for one in row.entry.history}


def test_nothing_is_lowered_before_as_many_requests_were_seen_as_it_takes_to_know_their_sizes() -> None:
    """They may be larger than those tested, by which fewer replicas seem enough."""
    row = Sized()
    stands(row, 8)
    row.serve(output=100, minutes=9, arrivals=0.05, completions=0.05, tokens_in=50, tokens_out=5)
    made = row.entry.decision
    assert made is not None
    assert (made.replicas, made.reason) == (8, Reason.HELD_UNKNOWN)
    assert made.note == "sizes of requests are not known, 26 of 30 seen"
    assert not lowered(row)
    row.serve(output=100, minutes=5, arrivals=0.05, completions=0.05, tokens_in=50, tokens_out=5)
    assert lowered(row)


def test_before_sizes_are_known_the_number_still_rises() -> None:
    row = Sized()
    stands(row, 2)
    row.serve(output=100, minutes=0.2, completions=0.05)  # ten a second arrive
    assert row.entry.decision is not None
    assert (row.entry.decision.replicas, row.entry.decision.reason) == (3, Reason.RAISED_FOR_BACKLOG)


def test_sizes_that_could_not_be_asked_for_since_the_start_hold_the_number() -> None:
    row = Sized()
    stands(row, 8)
    row.serve(output=100, minutes=9)
    entry = Entry(row.entry.target, readings={**row.entry.readings, Signal.COMPLETIONS: Unknown(Cause.STALE)})
    assert deciding.unsized(entry) == "sizes of requests are not known, 0 of 30 seen"
    assert deciding.unsized(Entry(row.entry.target)) == ""


def test_where_sizes_do_not_matter_any_more_what_was_seen_of_them_holds_nothing() -> None:
    row = Sized()
    row.serve(output=100, minutes=5)
    row.entry.target = Row(wanted=1).entry.target
    assert deciding.unsized(row.entry) == ""
    row.decide(completions=None, tokens_in=None, tokens_out=None)
    assert row.entry.basis is not None
    assert row.entry.basis.context.unknown == ()


def test_a_quiet_night_leaves_the_sizes_as_they_were_and_the_number_free_to_fall() -> None:
    row = Sized()
    row.serve(output=200, minutes=60)
    stands(row, 8)
    row.serve(output=200, minutes=8 * 60, arrivals=0.0, completions=0, tokens_in=0, tokens_out=0, in_flight=0)
    assert row.entry.sizes is not None
    assert row.entry.sizes.output == pytest.approx(185, rel=0.02)  # the tested 100 weigh a sixth
    assert lowered(row)


def test_what_runs_is_set_against_rates_of_the_window_that_the_source_has() -> None:
    mixes = []
    for window in (60.0, 240.0):
        row = Sized()
        row.pace = Pace(rate_window=window)
        row.serve(output=100, minutes=5)
        row.decide(completions=10, tokens_in=10_000, tokens_out=1000, in_flight=800)
        mixes.append(row.entry.mix)
    soon, late = mixes
    assert soon is not None
    assert soon.running is not None
    assert late is not None
    assert late.running is not None
    assert soon.running - 80 == pytest.approx(720 * (1 - math.exp(-10 / 30)))
    assert late.running - 80 == pytest.approx(720 * (1 - math.exp(-10 / 120)))


def test_an_engine_that_never_tells_sizes_is_planned_for_as_tested() -> None:
    row = Sized()
    row.workload = dataclasses.replace(CALM, standing=8, replicas=8)
    row.serve(output=400, minutes=20, completions=None)
    assert row.entry.decision is not None
    assert Reason.LOWERED_ONE_STEP in {one.reason for one in row.entry.history}
    assert row.entry.objectives.profile.throughput == 4


def test_pages_read_one_by_one_tell_sizes_too() -> None:
    """Such a source has no count of pods that report: a page that is missing makes it know nothing at all."""
    assert Signal.REPORTING not in scrape.SIGNALS
    row = Sized()
    row.serve(output=200, minutes=60)
    assert Signal.REPORTING not in row.entry.readings
    assert row.entry.mix is not None


def test_sums_over_some_of_the_pods_tell_nothing_of_sizes() -> None:
    row = Sized()
    row.serve(output=100, minutes=5, reporting=CALM.supply.ready - 1)
    assert row.entry.mix is None


def test_votes_are_counted_in_requests_of_the_load_test() -> None:
    """A replica that holds half as many long requests is as full with these as with twice as many short ones."""
    long = Sized()
    tests = [LoadTest(Sizes(1000, output), 4, 40 * 100 / output) for output in (100, 200)]
    tests.append(LoadTest(Sizes(2000, 100), 4, 40))
    profile = dataclasses.replace(by_size(), by_size=sizes.fitted(tests))
    objectives = dataclasses.replace(long.entry.target.objectives, profile=profile)
    learned = Learning(ttft=1.0, learn=Learn.LOWER, headroom=0.2)
    long.entry = Entry(dataclasses.replace(long.entry.target, objectives=objectives, learning=learned))
    long.serve(output=200, minutes=60)
    (votes,) = kept.votes(long.entry.observers).values()
    assert max(votes.votes().windows) == pytest.approx(80 / CALM.supply.ready / 0.5, rel=0.05)
