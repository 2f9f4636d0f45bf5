import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.peers.windows import Peak, Window

TIMED = st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0, 1e3)), min_size=1, max_size=60)


def test_values_of_one_bucket_are_averaged_and_empty_buckets_do_not_count() -> None:
    window = Window(60.0)
    for now, value in ((0.0, 10.0), (1.0, 20.0), (30.0, 45.0)):
        window.add(now, value)
    assert window.mean(30.0) == 30.0  # (15 + 45) / 2
    assert window.mean(61.0) == 45.0
    assert window.mean(95.0) is None


@given(TIMED)
def test_the_mean_is_that_of_the_buckets_inside(values: list[tuple[float, float]]) -> None:
    window, now, buckets = Window(60.0), 0.0, dict[int, list[float]]()
    for gap, value in values:
        now += gap
        window.add(now, value)
        buckets.setdefault(int(now // 2), []).append(value)
        inside = [sum(one) / len(one) for number, one in buckets.items() if number > int((now - 60) // 2)]
        assert window.mean(now) == pytest.approx(sum(inside) / len(inside), abs=1e-6)


@given(TIMED)
def test_the_peak_is_the_largest_inside(values: list[tuple[float, float]]) -> None:
    peak, now, all_of_them = Peak(60.0), 0.0, list[tuple[float, float]]()
    for gap, value in values:
        now += gap
        all_of_them.append((now, value))
        assert peak.add(now, value) == max(one for at, one in all_of_them if at > now - 60)


def test_a_peak_over_no_time_is_the_newest() -> None:
    peak = Peak(0.0)
    assert [peak.add(now, value) for now, value in ((0.0, 3.0), (15.0, 2.0), (30.0, 4.0))] == [3.0, 2.0, 4.0]


def test_a_window_shorter_than_its_buckets_is_refused() -> None:
    with pytest.raises(ValueError, match="must hold a bucket"):
        Window(1.0)
