"""Which profile is planned with: observation may lower and warn; it raises only where that is asked for."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity import sizes, trusting
from models.capacity.observing import Observed
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes
from models.capacity.trusting import Learn, Source

GIVEN = Profile(concurrency=40, throughput=4)
MISSED = Observed(met=30, missed=36, confidence=0.95, windows=24)
MET = Observed(met=72, missed=None, confidence=1.0, windows=24)


def choose(observed: Observed | None, learn: Learn = Learn.LOWER, given: Profile = GIVEN) -> trusting.Chosen:
    return trusting.choose(given, observed, learn=learn, headroom=0.2)


def test_the_configuration_holds_until_something_is_seen() -> None:
    assert choose(None) == trusting.Chosen(GIVEN, Source.CONFIGURED)
    assert choose(Observed(missed=10, confidence=0.7, windows=9)).profile is GIVEN  # the votes do not agree
    assert choose(Observed(met=35, missed=50, confidence=1, windows=9)).note == ""  # as configured


def test_what_was_missed_lowers_the_plan_with_the_evidence() -> None:
    chosen = choose(MISSED)
    assert chosen.source is Source.OBSERVED
    assert chosen.profile.concurrency == 25  # 30 / 1.2
    assert chosen.profile.throughput == 2.5
    assert chosen.note == (
        "the objective was missed at 36 in flight a replica, 24 windows of 5 min, 95% agree; planned for 25"
    )


def test_it_goes_no_lower_than_half_and_says_what_would_be_right() -> None:
    chosen = choose(Observed(met=12, missed=14, confidence=1, windows=24))
    assert chosen.profile.concurrency == 20
    assert chosen.note.endswith("planned for 20; as low as observation goes, 10 would be right")
    assert choose(Observed(missed=14, confidence=1, windows=24)).profile.concurrency == 20


def test_warn_says_it_and_plans_as_configured() -> None:
    chosen = choose(MISSED, Learn.WARN)
    assert chosen.profile is GIVEN
    assert chosen.note.endswith("lower capacity.concurrency to 25, or set learn: lower")


@pytest.mark.parametrize("learn", [Learn.WARN, Learn.LOWER])
def test_it_is_never_raised_silently(learn: Learn) -> None:
    chosen = choose(MET, learn)
    assert chosen.profile is GIVEN
    assert chosen.source is Source.CONFIGURED
    assert "capacity.concurrency could be 60" in chosen.note


def test_who_gave_load_tests_is_not_told_to_set_what_is_refused_beside_them() -> None:
    tests = [LoadTest(Sizes(p, o), 4, 40) for p, o in ((1000, 100), (2000, 100), (1000, 200))]
    chosen = choose(MET, given=dataclasses.replace(GIVEN, by_size=sizes.fitted(tests)))
    assert "repeat the tests of capacity.load_tests" in chosen.note
    assert "capacity.concurrency" not in chosen.note


def test_both_raises_it() -> None:
    chosen = choose(MET, Learn.BOTH)
    assert (chosen.profile.concurrency, chosen.profile.throughput, chosen.source) == (60, 6, Source.OBSERVED)


def test_off_looks_at_nothing() -> None:
    assert choose(MISSED, Learn.OFF) == trusting.Chosen(GIVEN, Source.CONFIGURED)


def test_a_default_says_that_it_is_one() -> None:
    chosen = choose(None, given=trusting.default())
    assert chosen.source is Source.DEFAULT
    assert "cautious 8 in flight; set capacity.concurrency" in chosen.note
    assert choose(None, given=Profile(concurrency=9, source="load_test")).source is Source.LOAD_TEST


observations = st.builds(
    Observed,
    met=st.none() | st.floats(0.1, 1000),
    missed=st.none() | st.floats(0.1, 1000),
    confidence=st.floats(0, 1),
    windows=st.floats(0, 100),
)


@given(observations, st.sampled_from(Learn))
def test_only_both_plans_a_replica_for_more_than_configured(observed: Observed, learn: Learn) -> None:
    chosen = choose(observed, learn)
    assert chosen.profile.concurrency <= 40 or learn is Learn.BOTH
    assert chosen.profile.concurrency >= 20
    assert (chosen.source is Source.OBSERVED) == (chosen.profile.concurrency != 40)


def test_tokens_a_second_move_with_concurrency_as_throughput_does() -> None:
    given = Profile(concurrency=40, tokens_in=30_000, tokens_out=2_000, kv_tokens=90_000)
    chosen = choose(MISSED, given=given)
    share = chosen.profile.concurrency / 40
    assert share < 1
    assert chosen.profile.tokens_in == 30_000 * share
    assert chosen.profile.tokens_out == 2_000 * share
    assert (chosen.profile.kv_tokens, chosen.profile.throughput) == (90_000, None)
