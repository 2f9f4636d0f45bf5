import hypothesis
import hypothesis.strategies as st
import pytest

from models.capacity import crowd
from models.capacity.crowd import Look
from models.capacity.profile import Profile
from models.capacity.sizing import Load

SIX = Profile(concurrency=6)


def test_while_a_backlog_is_worked_off_in_flight_counts_as_far_as_arrivals_make_it() -> None:
    # 9 replicas with 8 places each are full: 72, at 2 s each 36 end in a second; 20 arrive, which make 40
    assert crowd.demanded(SIX, Load(72, arrivals=20, duration=2, growth=-16), ready=9) == pytest.approx(40)
    # at 8 in a replica a request takes 1.8 s, alone 1.2 s: what runs now counts, not what ran alone
    assert crowd.demanded(SIX, Load(72, arrivals=20, duration=1.2, growth=-20), ready=9) == pytest.approx(36)


def test_it_counts_for_no_less_than_the_arrivals_make_of_themselves() -> None:
    assert crowd.demanded(SIX, Load(72, arrivals=20, duration=2.5, growth=-16), ready=9) == pytest.approx(50)
    told = Profile(concurrency=6, throughput=2.4)  # 20 / 2.4 replicas of 6
    assert crowd.demanded(told, Load(72, arrivals=20, growth=-16), ready=9) == pytest.approx(50)


@pytest.mark.parametrize(
    "load",
    [
        Load(72, arrivals=20, duration=2, growth=3),  # the supply is too small
        Load(72, arrivals=20, duration=2),  # each takes longer than it did
        Load(72, arrivals=20, growth=-16),  # nobody knows how long a request takes
        Load(72, duration=2, growth=-16),  # or how many come
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


def looks(*seen: tuple[float, float | None]) -> crowd.Looks:
    found: crowd.Looks = ()
    for at, running in seen:
        found = crowd.look(found, at=at, running=running, waiting=5.0)
    return found


def test_growth_is_that_of_the_last_looks() -> None:
    assert crowd.growth(looks((0, 1000), (10, 80), (20, 100), (30, 40))) == pytest.approx(-2)
    assert crowd.growth(looks((0, 1000))) == crowd.growth(()) == 0


def test_two_looks_at_the_same_moment_are_one() -> None:
    assert looks((10, 80), (10.4, 90), (9.8, 70)) == (Look(10, 85),)


def test_a_gap_in_the_signals_and_a_clock_set_back_start_afresh() -> None:
    assert looks((10, 80), (20, None)) == ()
    assert looks((10, 80), (20, None), (30, 60)) == (Look(30, 65),)
    assert looks((100, 80), (20, 60)) == (Look(20, 65),)
