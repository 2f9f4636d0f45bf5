"""What is seen while serving becomes a capacity, with evidence."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity import observing
from models.capacity.observing import HALF_LIFE, WINDOW, Observed, Observer, Sight, Votes

OBJECTIVE = 2.0
votes = st.dictionaries(
    st.floats(1, 500), st.tuples(st.floats(0, 50), st.floats(0, 50)).filter(lambda pair: sum(pair) > 0), max_size=12
)


class Fleet:
    """Serves at a load for a while, looked at every 15 s."""

    def __init__(self) -> None:
        self.now = 0.0
        self.observer = Observer(objective=OBJECTIVE)

    def serve(self, load: float, *, minutes: float, ttft: float, ready: int = 4) -> "Fleet":
        for _ in range(round(minutes * 4)):
            self.observer.see(Sight(self.now, load, ready, ttft))
            self.now += 15
        return self


def test_the_step_lies_between_what_was_met_and_what_was_not() -> None:
    fleet = Fleet()
    for load, ttft in ((20, 0.5), (40, 1.0), (60, 5.0), (80, 20.0)):
        fleet.serve(load, minutes=30, ttft=ttft)
    found = fleet.observer.observed()
    assert found.met == pytest.approx(40, rel=0.06)
    assert found.missed == pytest.approx(60, rel=0.06)
    assert found.confidence == 1
    assert found.windows == pytest.approx(4 * 5, rel=0.01)  # of each half hour the first window is still filling


def test_one_bad_window_at_low_load_does_not_lower_what_a_day_has_shown() -> None:
    fleet = Fleet().serve(40, minutes=240, ttft=1.0).serve(20, minutes=15, ttft=9.0)
    found = fleet.observer.observed()
    assert found.met == pytest.approx(40, rel=0.06)
    assert found.missed is None
    assert 0.9 < found.confidence < 1


def test_a_quarter_of_an_hour_is_needed() -> None:
    assert Fleet().serve(40, minutes=15, ttft=1.0).observer.observed().met is None
    assert Fleet().serve(40, minutes=21, ttft=1.0).observer.observed().met is not None


def test_a_load_that_moves_says_nothing() -> None:
    fleet = Fleet()
    for load in itertools.islice(itertools.cycle((20, 40)), 200):
        fleet.serve(load, minutes=0.5, ttft=9.0)
    assert fleet.observer.observed() == Observed()


def test_a_change_of_replicas_or_a_gap_begins_a_new_stretch() -> None:
    fleet = Fleet()
    for ready in itertools.islice(itertools.cycle((3, 4)), 60):
        fleet.serve(40, minutes=4, ttft=1.0, ready=ready)
    assert fleet.observer.observed() == Observed()
    for _ in range(60):
        fleet.serve(40, minutes=4, ttft=1.0, ready=5)
        fleet.now += WINDOW
    assert fleet.observer.observed() == Observed()


def test_an_idle_fleet_says_nothing() -> None:
    assert Fleet().serve(0, minutes=60, ttft=0.1).observer.observed() == Observed()


def test_what_was_true_long_ago_gives_way() -> None:
    """Prompts have become longer: at 40 the objective was met for six hours, and is now missed for two."""
    fleet = Fleet().serve(40, minutes=360, ttft=1.0)
    fleet.now += 3 * HALF_LIFE
    found = fleet.serve(40, minutes=120, ttft=5.0).observer.observed()
    assert found.met is None
    assert found.missed == pytest.approx(40, rel=0.06)


def test_votes_fade_away_for_good() -> None:
    fleet = Fleet().serve(40, minutes=60, ttft=1.0)
    fleet.now += 20 * HALF_LIFE
    fleet.serve(10, minutes=30, ttft=1.0)
    assert len(fleet.observer._levels) == 1


@given(votes)
def test_what_was_met_lies_below_what_was_missed(seen: dict[float, tuple[float, float]]) -> None:
    found = observing.judge(seen)
    if found.met is not None and found.missed is not None:
        assert found.met < found.missed
    assert 0 <= found.confidence <= 1
    assert not seen or found.confidence >= 0.5  # everything on one side is a step too


@given(votes, st.floats(1, 500), st.floats(0.1, 50))
def test_more_misses_never_raise_the_step(seen: dict[float, tuple[float, float]], load: float, more: float) -> None:
    def step(found: dict[float, tuple[float, float]]) -> int:
        loads = sorted(found)
        against = [observing._against(found, loads, cut) for cut in range(len(loads) + 1)]
        return against.index(min(against))

    worse = {at: (met, missed + (more if at >= load else 0)) for at, (met, missed) in seen.items()}
    if seen:
        assert step(worse) <= step(seen)


stretches = st.lists(
    st.tuples(st.floats(1, 500), st.integers(6, 40), st.sampled_from((0.5, 9.0))), min_size=1, max_size=6
)


@given(stretches, st.integers(0, 6), st.integers(1, 10))
def test_who_goes_on_from_the_votes_of_another_sees_what_that_one_would_have(
    load: list[tuple[float, int, float]], cut: int, hours: int
) -> None:
    """One observer all along, and one that takes over at a cut after some hours in which nobody looked."""
    whole, first = Fleet(), Fleet()
    for step in load[:cut]:
        whole.serve(step[0], minutes=step[1], ttft=step[2])
        first.serve(step[0], minutes=step[1], ttft=step[2])
    second = Fleet()
    second.observer = Observer(objective=OBJECTIVE, votes=first.observer.votes())
    whole.now += hours * 3600
    second.now = whole.now
    for step in load[cut:]:
        whole.serve(step[0], minutes=step[1], ttft=step[2])
        second.serve(step[0], minutes=step[1], ttft=step[2])
    found, expected = second.observer.votes(), whole.observer.votes()
    assert (found is None) == (expected is None)
    if found and expected:
        assert found.at == expected.at
        assert {load: pytest.approx(pair) for load, pair in found.windows.items()} == expected.windows
    assert second.observer.observed().met == whole.observer.observed().met


def test_votes_fade_while_nobody_looks_and_the_oldest_are_forgotten() -> None:
    votes = Votes(1000.0, {20.0: (8.0, 2.0), 40.0: (1e-3, 0.0)})
    assert observing.faded(votes, now=1000.0 + HALF_LIFE) == Votes(1000.0 + HALF_LIFE, {20.0: (4.0, 1.0)})
    assert observing.faded(votes, now=1000.0 + 20 * HALF_LIFE).windows == {}


def test_a_clock_that_was_set_back_fades_nothing() -> None:
    votes = Votes(1e9, {20.0: (8.0, 2.0)})
    assert observing.faded(votes, now=1000.0) == Votes(1000.0, votes.windows)


def test_before_the_first_vote_there_is_nothing_to_go_on_from() -> None:
    assert Observer(objective=OBJECTIVE).votes() is None
