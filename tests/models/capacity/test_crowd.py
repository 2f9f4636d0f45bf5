import hypothesis
import hypothesis.strategies as st
import pytest

from models.capacity import crowd
from models.capacity.crowd import Look
from models.capacity.profile import Profile
from models.capacity.sizing import Load

SIX = Profile(concurrency=6)


def test_while_a_backlog_is_worked_off_in_flight_counts_as_far_as_arrivals_make_it() -> None:
    # 9 replicas with 8 places each are full: 72, at 1.5 s each 48 end in a second; 40 arrive, which make 60
    assert crowd.demanded(SIX, Load(72, arrivals=40, duration=1.5, growth=-8), ready=9) == pytest.approx(60)
    # at 8 in a replica a request takes 1.5 s, alone 1 s: what runs now counts, not what ran alone
    assert crowd.demanded(SIX, Load(72, arrivals=40, duration=1.0, growth=-8), ready=9) == pytest.approx(60)


def test_it_counts_for_no_less_than_the_arrivals_make_of_themselves() -> None:
    assert crowd.demanded(SIX, Load(72, arrivals=20, duration=2.5, growth=-16), ready=8) == pytest.approx(50)
    told = Profile(concurrency=6, throughput=2.4)  # 20 / 2.4 replicas of 6
    assert crowd.demanded(told, Load(72, arrivals=20, growth=-16), ready=8) == pytest.approx(50)


@pytest.mark.parametrize(
    "load",
    [
        Load(72, arrivals=20, duration=2, growth=3),  # the supply is too small
        Load(72, arrivals=20, duration=2),  # each takes longer than it did
        Load(72, arrivals=20, growth=-16),  # nobody knows how long a request takes
        Load(72, duration=2, growth=-16),  # or how many come
        Load(72, arrivals=0, duration=2, growth=-16),  # nothing arrives: clients left, or a pod took its count along
        Load(54, arrivals=20, duration=2, growth=-16),  # nine replicas are planned for 54
    ],
)
def test_elsewhere_all_that_is_in_flight_counts(load: Load) -> None:
    assert crowd.demanded(SIX, load, ready=9) == load.in_flight


def test_what_is_not_known_stays_unknown() -> None:
    assert crowd.demanded(SIX, Load(arrivals=20, duration=2, growth=-16), ready=9) is None


@hypothesis.given(
    in_flight=st.floats(0, 1e4), arrivals=st.floats(0, 1e4), growth=st.floats(-1e4, 1e4), ready=st.integers(0, 100)
)
def test_it_never_counts_more_than_there_is_nor_less_than_what_arrives(
    in_flight: float, arrivals: float, growth: float, ready: int
) -> None:
    value = crowd.demanded(SIX, Load(in_flight, arrivals, 2.0, growth), ready=ready)
    assert value is not None
    assert min(in_flight, 2.0 * arrivals) - 1e-6 <= value <= in_flight


def looks(*seen: tuple[float, float], waiting: float = 0.0) -> crowd.Looks:
    found: crowd.Looks = ()
    for at, inside in seen:
        found = crowd.after(found, Look(at, inside, waiting, ready=9))
    return found


def test_growth_is_that_of_the_last_looks() -> None:
    assert crowd.growth(looks((0, 1000), (10, 180), (20, 200), (30, 100))) == pytest.approx(-4)
    assert crowd.growth(looks((0, 1000))) == crowd.growth(()) == 0


def test_what_counts_scatter_by_is_no_growth_unless_requests_wait() -> None:
    few = (0, 200), (20, 163)  # two counts of 180 differ by 19 or less, two times in three
    assert crowd.growth(looks(*few)) == 0
    assert crowd.growth(looks(*few, waiting=1)) == pytest.approx(-1.85)
    assert crowd.growth(looks((0, 200), (20, 160))) == pytest.approx(-2)
    assert crowd.growth(looks((0, 0), (20, 0), waiting=1)) == 0


def test_two_looks_at_the_same_sample_are_one_and_a_late_one_is_none() -> None:
    assert looks((10, 80), (10.4, 90), (9.8, 70), (2, 70)) == (Look(10, 80, 0, 9),)


def test_a_clock_set_back_starts_afresh() -> None:
    assert looks((1000, 80), (20, 60)) == (Look(20, 60, 0, 9),)


def test_what_was_inside_a_replica_that_is_gone_was_not_worked_off() -> None:
    before = looks((10, 456), (20, 456))
    fewer = Look(30, 399, 0, ready=8)
    assert crowd.after(before, fewer) == (fewer,)
    assert crowd.growth(crowd.after(before, Look(30, 390, 0, ready=10))) < 0
