import time
from collections.abc import Sequence

import numpy as np
import pytest
import structlog.testing
from hypothesis import given
from hypothesis import strategies as st

from models.series import Series
from models.signals import Cause, Known, Signal, Unknown
from predictor import history

KEY = "llm/chat"
NAN = float("nan")
START = 1_800_000_000.0  # a whole multiple of every step used here
SIGNAL = Signal.ARRIVALS


def make(*, step: float = 10.0, span: float = 1000.0, carry: float = 0.0) -> history.History:
    return history.History(step=step, span=span, carry=carry)


def put(kept: history.History, *readings: tuple[float, float]) -> None:
    """Records values at seconds after START, each as soon as it was sampled."""
    for after, value in readings:
        kept.record(KEY, SIGNAL, Known(value, START + after), now=START + after)


def shown(kept: history.History, now: float) -> list[float]:
    return kept.series(KEY, SIGNAL, now=START + now).values.tolist()


def same(values: Sequence[float], expected: Sequence[float]) -> None:
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_readings_land_on_the_grid_they_fall_into() -> None:
    kept = make()
    put(kept, (3, 1.0), (10, 2.0), (29.9, 3.0))
    series = kept.series(KEY, SIGNAL, now=START + 30)
    assert (series.start, series.step) == (START, 10.0)
    same(series.values, [1, 2, 3, NAN])


def test_several_readings_in_one_point_are_averaged() -> None:
    kept = make()
    put(kept, (1, 2.0), (5, 4.0), (9, 9.0))
    same(shown(kept, 9), [5.0])


def test_a_late_reading_joins_the_point_it_belongs_to() -> None:
    kept = make()
    put(kept, (0, 2.0), (20, 6.0))
    kept.record(KEY, SIGNAL, Known(8.0, START + 12), now=START + 21)
    kept.record(KEY, SIGNAL, Known(4.0, START + 3), now=START + 22)
    same(shown(kept, 22), [3, 8, 6])


def test_a_reading_from_before_the_span_is_left_out() -> None:
    kept = make(span=50)
    put(kept, (100, 1.0))
    kept.record(KEY, SIGNAL, Known(9.0, START + 3), now=START + 100)
    same(shown(kept, 100), [1])


def test_what_is_unknown_leaves_a_gap_and_never_a_zero() -> None:
    kept = make()
    put(kept, (0, 5.0))
    kept.record(KEY, SIGNAL, Unknown(Cause.SOURCE_DOWN), now=START + 10)
    put(kept, (20, 7.0))
    same(shown(kept, 20), [5, NAN, 7])


def test_a_short_gap_holds_the_value_before_it_and_a_long_one_stays_a_gap() -> None:
    kept = make(carry=20)
    put(kept, (0, 5.0), (30, 7.0), (70, 8.0))
    same(shown(kept, 70), [5, 5, 5, 7, NAN, NAN, NAN, 8])


def test_a_hole_at_the_end_is_carried_for_as_long_and_then_unknown() -> None:
    kept = make(carry=20)
    put(kept, (0, 5.0))
    same(shown(kept, 20), [5, 5, 5])
    same(shown(kept, 30), [5, NAN, NAN, NAN])


def test_a_part_of_the_past_begins_with_the_same_values_as_the_whole() -> None:
    kept = make(carry=20)
    put(kept, (0, 5.0), (30, 7.0), (90, 8.0))
    whole = kept.series(KEY, SIGNAL, now=START + 90)
    for after in range(0, 110, 10):
        part = kept.series(KEY, SIGNAL, now=START + 90, since=START + after)
        assert part.start == START + after
        same(part.values, whole.since(START + after).values)


def test_nothing_known_is_an_empty_series_on_the_grid() -> None:
    series = make().series(KEY, SIGNAL, now=START + 37)
    assert len(series) == 0
    assert series.step == 10.0


def test_only_the_span_is_kept() -> None:
    kept = make(span=50)
    put(kept, *((10.0 * n, float(n)) for n in range(100)))
    same(shown(kept, 990), [94, 95, 96, 97, 98, 99])


def test_a_jump_over_the_whole_span_forgets_what_was_before() -> None:
    kept = make(span=50)
    put(kept, (0, 1.0), (10, 2.0), (10_000, 3.0))
    same(shown(kept, 10_000), [NAN, NAN, NAN, NAN, NAN, 3])


def test_a_loaded_past_goes_on_into_what_is_recorded() -> None:
    kept = make()
    put(kept, (30, 9.0))
    kept.load(KEY, SIGNAL, Series(START, 10.0, np.array([1.0, 2.0, NAN, 4.0])))
    put(kept, (40, 10.0))
    same(shown(kept, 40), [1, 2, NAN, 9, 10])  # our own reading at 30 stays


def test_loading_twice_changes_nothing() -> None:
    kept = make()
    past = Series(START, 10.0, np.array([1.0, 2.0, 3.0]))
    kept.load(KEY, SIGNAL, past)
    kept.load(KEY, SIGNAL, past)
    same(shown(kept, 20), [1, 2, 3])


def test_a_finer_past_is_averaged_and_a_coarser_one_leaves_gaps() -> None:
    kept = make()
    kept.load(KEY, SIGNAL, Series(START, 5.0, np.array([1.0, 3.0, 5.0, 7.0])))
    same(shown(kept, 10), [2, 6])
    coarse = make()
    coarse.load(KEY, SIGNAL, Series(START, 20.0, np.array([1.0, 2.0])))
    same(shown(coarse, 20), [1, NAN, 2])


def test_a_past_of_nothing_but_gaps_is_nothing() -> None:
    kept = make()
    kept.load(KEY, SIGNAL, Series(START, 10.0, np.array([NAN, NAN])))
    assert shown(kept, 20) == []


def test_a_past_longer_than_the_span_is_cut() -> None:
    kept = make(span=30)
    kept.load(KEY, SIGNAL, Series(START, 10.0, np.arange(100.0)))
    same(shown(kept, 990), [96, 97, 98, 99])


def test_a_past_older_than_the_span_leaves_what_is_there_alone() -> None:
    kept = make(span=30)
    put(kept, (1000, 5.0))
    kept.load(KEY, SIGNAL, Series(START, 10.0, np.arange(10.0)))
    same(shown(kept, 1000), [5])


def test_a_clock_set_back_is_not_believed_and_said_once() -> None:
    kept = make()
    put(kept, (500, 5.0))
    with structlog.testing.capture_logs() as logs:
        put(kept, (200, 1.0), (210, 1.0), (220, 1.0))
    assert [entry["event"] for entry in logs] == ["clock_set_back"]
    same(shown(kept, 500), [5])


def test_a_look_that_took_longer_than_others_is_no_clock_set_back() -> None:
    """The slow loop asks a slow source for minutes, and the fast one goes on: what it saw then is older than theirs."""
    kept = make()
    with structlog.testing.capture_logs() as logs:
        for after in range(100, 400, 100):
            put(kept, (after, 5.0))
            for signal in (SIGNAL, Signal.WAITING):
                kept.record(KEY, signal, Known(1.0, START + after - 60), now=START + after - 60)
    assert logs == []
    assert shown(kept, 300)[0] == 5.0


def test_a_clock_that_stays_back_is_believed_and_the_future_forgotten() -> None:
    kept = make()
    put(kept, (0, 1.0), (700, 5.0))
    with structlog.testing.capture_logs() as logs:
        put(kept, (200, 2.0), (350, 3.0), (500, 4.0), (510, 6.0))
    assert [entry["event"] for entry in logs] == ["clock_set_back", "clock_believed_again"]
    series = kept.series(KEY, SIGNAL, now=START + 510)
    assert series.values[[0, 50, 51]].tolist() == [1, 4, 6]
    assert shown(kept, 800)[51:] == [6, *[pytest.approx(NAN, nan_ok=True)] * 29]


def test_a_clock_a_little_back_is_jitter() -> None:
    kept = make()
    put(kept, (5, 1.0), (3, 3.0))
    same(shown(kept, 5), [2])


def test_a_source_behind_the_clock_is_late_and_not_a_clock_set_back() -> None:
    kept = make()
    with structlog.testing.capture_logs() as logs:
        for after in range(0, 100, 10):
            kept.record(KEY, SIGNAL, Known(1.0, START + after - 30), now=START + after)
    assert logs == []


def test_a_value_too_large_for_the_storage_is_the_largest_it_holds() -> None:
    kept = make()
    put(kept, (0, 1e300))
    kept.load(KEY, SIGNAL, Series(START + 10, 10.0, np.array([1e300])))
    same(shown(kept, 10), [history.LARGEST, history.LARGEST])


def test_targets_and_signals_are_kept_apart_and_forgotten_on_request() -> None:
    kept = make()
    put(kept, (0, 1.0))
    kept.record("llm/other", SIGNAL, Known(2.0, START), now=START)
    kept.record(KEY, Signal.WAITING, Known(3.0, START), now=START)
    same(shown(kept, 0), [1])
    kept.keep_only(["llm/other"])
    assert shown(kept, 0) == []
    same(kept.series("llm/other", SIGNAL, now=START).values, [2])


@pytest.mark.parametrize(
    ("step", "span", "carry", "told"),
    [
        (0, 10, 0, "step is 0 s"),
        (NAN, 10, 0, "step is nan s"),
        (10, 5, 0, "span is 5 s: must be at least one step"),
        (10, 100, -1, "carry is -1 s"),
    ],
)
def test_nonsense_is_refused(step: float, span: float, carry: float, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        history.History(step=step, span=span, carry=carry)


@given(
    st.lists(st.tuples(st.floats(0, 3000), st.floats(1e-6, 1e6)), max_size=60),
    st.sampled_from([1.0, 7.5, 10.0]),
    st.floats(0, 100),
)
def test_whatever_comes_in_what_comes_out_lies_between(
    readings: list[tuple[float, float]], step: float, carry: float
) -> None:
    kept = make(step=step, span=1000, carry=carry)
    for after, value in sorted(readings):
        kept.record(KEY, SIGNAL, Known(value, START + after), now=START + after)
    series = kept.series(KEY, SIGNAL, now=START + 3000)
    known = series.values[~np.isnan(series.values)]
    assert len(series) <= 1000 / step + 2
    if len(known):
        values = [value for _, value in readings]
        assert min(values) * (1 - 1e-6) <= known.min()
        assert known.max() <= max(values) * (1 + 1e-6)


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=1, max_size=300))
def test_a_past_comes_back_as_it_was_loaded(points: list[int | None]) -> None:
    values = np.array([NAN if point is None else float(point) for point in points])
    kept = make(span=10 * len(points))
    kept.load(KEY, SIGNAL, Series(START, 10.0, values))
    series = kept.series(KEY, SIGNAL, now=START + 10 * (len(points) - 1))
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        assert len(series) == 0
        return
    assert series.start == START + 10 * known[0]
    np.testing.assert_array_equal(series.values, values[known[0] :])


def test_a_thousand_targets_take_milliseconds() -> None:
    kept = history.History(step=60.0, span=8 * 86400.0, carry=120.0)
    keys = [f"ns/{n}" for n in range(1000)]
    for key in keys:
        kept.load(key, SIGNAL, Series(START, 60.0, np.ones(100)))
    start = time.process_time()
    for key in keys:
        kept.record(key, SIGNAL, Known(1.0, START + 6000), now=START + 6000)
    for key in keys:
        kept.series(key, SIGNAL, now=START + 6000)
    assert time.process_time() - start < 0.5  # some 30 ms on an idle machine
