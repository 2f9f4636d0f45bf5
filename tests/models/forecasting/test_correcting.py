"""What a miss and a hit do to the band that comes next."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecasting import correcting, learning
from models.forecasting.lanes import Lanes, Plan
from models.forecasting.settings import ForecastSettings
from models.series import Floats

PLAN = Plan.of(ForecastSettings(quantiles=(0.5, 0.9, 0.99)), 120.0)  # a step is an origin
BAND = np.array([10.0, 12.0, 14.0])
TEMPER = correcting.Temper.of(PLAN)
REACTION, KEPT, CAUTION = TEMPER.reaction, TEMPER.keep, TEMPER.caution
NAN = float("nan")


def lanes(*steps: int, seen: int = correcting.RARE_GROWN, shift: float = 0.0) -> Lanes:
    """Lanes with horizons of `steps`, two days of scores and nothing corrected yet unless told otherwise."""
    made = Lanes.empty(np.array(steps, dtype=np.intp), delay=16, plan=PLAN)
    made.seen[:] = seen
    made.shift[:] = shift
    return made


def shifted(made: Lanes, came: float, present: float = 0.0, band: Floats = BAND) -> Floats:
    """The correction of all lanes once the same came to each."""
    count = len(made.steps)
    outcome = correcting.Outcome(np.tile(band, (count, 1)), present=np.full(count, present), came=np.full(count, came))
    correcting.correct(made, PLAN, outcome)
    return made.shift


def test_a_miss_widens_by_its_probability_and_a_hit_narrows_by_the_rest() -> None:
    assert shifted(lanes(1), came=13.0)[0] == pytest.approx(KEPT * REACTION * np.array([0.5, 0.9, -0.01]))


def test_what_never_became_known_changes_nothing() -> None:
    assert shifted(lanes(1, shift=0.3), came=NAN).tolist() == [[0.3] * 3]
    assert shifted(lanes(1, shift=0.3), came=13.0, band=np.full(3, NAN)).tolist() == [[0.3] * 3]


def test_a_miss_below_the_value_of_then_is_half_a_hit() -> None:
    # p50 and p90 missed what came, but neither was issued below 13; p99 covered it by itself
    found = shifted(lanes(1, shift=0.3), came=13.0, present=13.0)[0]
    assert found == pytest.approx(KEPT * (0.3 - REACTION * np.array([0.25, 0.05, 0.01])))


def test_a_miss_above_the_value_of_then_is_one() -> None:
    assert (shifted(lanes(1), came=13.0, present=12.9) == shifted(lanes(1), came=13.0)).all()


def test_the_band_is_judged_by_itself_and_not_by_the_value_of_then() -> None:
    made = Lanes.empty(np.array([5]), delay=16, plan=PLAN)
    falling = np.concatenate([np.random.default_rng(1).poisson(20.0, 300), np.linspace(400.0, 20.0, 90)])
    learning.advance(made, PLAN, falling[None], first=0, settle_from=0)
    present = made.roots + made.inputs[..., 1]
    assert (made.bounds[0, :, 0] < present[0] - 0.1).all()


@pytest.mark.parametrize("came", [9.0, 13.0])
def test_a_horizon_of_n_origins_reacts_by_the_root_of_n_less(came: float) -> None:
    one, four, sixteen = shifted(lanes(1, 4, 16), came=came)
    assert one == pytest.approx(2 * four)
    assert one == pytest.approx(4 * sixteen)


def test_chance_alone_shakes_the_correction_alike_at_all_horizons() -> None:
    steps = np.repeat([1, 9], 2000)
    made, rng = lanes(*steps), np.random.default_rng(2)
    missed = np.zeros(len(steps), dtype=np.bool_)
    for origin in range(540):
        missed = np.where(origin % steps == 0, rng.random(len(steps)) > 0.9, missed)  # nine horizons that overlap: one
        came = np.where(missed, 13.0, 11.0)
        band = np.tile(BAND, (len(steps), 1))
        correcting.correct(made, PLAN, correcting.Outcome(band, present=np.zeros(len(steps)), came=came))
    assert made.shift[steps == 9, 1].std() == pytest.approx(made.shift[steps == 1, 1].std(), rel=0.08)


def test_a_young_lane_widens_by_how_far_it_was_missed() -> None:
    near, far, farther = (shifted(lanes(1, seen=0), came=came)[0, 1] for came in (12.1, 14.0, 16.0))
    assert near == pytest.approx(KEPT[1] * (REACTION[1] * 0.9 + CAUTION[1] * 0.1 / 4))
    assert far == pytest.approx(KEPT[1] * (REACTION[1] * 0.9 + CAUTION[1] * 2 / 4))
    assert farther == pytest.approx(KEPT[1] * (REACTION[1] * 0.9 + CAUTION[1]))
    assert shifted(lanes(1, seen=0), came=1000.0)[0, 1] == farther  # no more than a width of the band counts


def test_caution_fades_with_the_scores_and_is_gone_after_as_many_as_a_day_has_at_two_minutes() -> None:
    none, half, day, more = (shifted(lanes(1, seen=n), came=20.0)[0, 1] for n in (0, 360, 720, 5000))
    assert half == pytest.approx((none + day) / 2)
    assert day == more == pytest.approx(KEPT[1] * REACTION[1] * 0.9)


def test_caution_does_not_turn_a_hit_or_an_excused_miss_into_one() -> None:
    assert (shifted(lanes(1, seen=0), came=9.0) == shifted(lanes(1), came=9.0)).all()
    assert shifted(lanes(1, seen=0), came=13.0, present=13.0)[0, :2] == pytest.approx(
        -(KEPT * REACTION)[:2] * np.array([0.25, 0.05])
    )


@pytest.mark.parametrize("seen", [0, 100, 720])
@pytest.mark.parametrize("factor", [0.25, 10.0, 1e6])
def test_the_correction_does_not_depend_on_the_unit(seen: int, factor: float) -> None:
    for came, present in ((9.0, 0.0), (13.0, 0.0), (13.0, 12.95), (13.0, 13.0), (100.0, 13.0)):
        plain = shifted(lanes(3, seen=seen), came=came, present=present)
        scaled = shifted(lanes(3, seen=seen), factor * came, present=factor * present, band=factor * BAND)
        assert scaled == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(("seen", "limits"), [(correcting.RARE_GROWN, (2.5, 4.5, 9.8)), (0, (16, 18, 250))])
def test_the_correction_of_each_quantile_has_an_end_however_often_it_is_missed(
    seen: int, limits: tuple[float, float, float]
) -> None:
    made = lanes(1, seen=seen)
    for _ in range(2000):
        shifted(made, came=1000.0)
    assert (made.shift[0] < limits).all()
    assert (made.shift[0] > 0.95 * np.array(limits)).all()


def temper(quantiles: tuple[float, ...], step: float) -> correcting.Temper:
    """How quantiles answer on a grid of `step` seconds, each of which is an origin."""
    return correcting.Temper.of(Plan.of(ForecastSettings(quantiles=quantiles), step))


def test_quantiles_above_p90_react_more_and_forget_sooner_than_p90_and_those_below() -> None:
    found = temper((0.5, 0.8, 0.9, 0.95, 0.99), 120.0)
    assert found.reaction.tolist() == [0.05, 0.05, 0.05, 0.15, 0.15]
    assert found.keep.tolist() == [0.99, 0.99, 0.99, 0.985, 0.985]


def test_a_young_lane_is_the_more_cautious_the_less_a_quantile_leaves_out() -> None:
    found = temper((0.5, 0.9, 0.95, 0.99), 120.0)
    assert found.caution == pytest.approx(np.array([0.135, 0.135, 0.36, 3.6]))


def test_p95_and_p975_which_floors_follow_are_half_as_cautious_for_what_they_leave_out_as_p99() -> None:
    found = temper((0.95, 0.975, 0.98, 0.99, 0.999), 120.0)
    assert found.caution * (1 - np.array([0.95, 0.975, 0.98, 0.99, 0.999])) == pytest.approx([0.018] * 3 + [0.036] * 2)


def test_p99_alone_is_still_cautious_on_a_second_day() -> None:
    none, day, later, grown = (shifted(lanes(1, seen=n), came=20.0)[0] for n in (0, 720, 1080, 1440))
    assert day[2] == pytest.approx((none[2] + grown[2]) / 2)
    assert later[2] == pytest.approx((day[2] + grown[2]) / 2)
    assert (day[:2] == grown[:2]).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2000), st.integers(0, 2000), st.floats(9.0, 40.0), st.integers(1, 16))
def test_fewer_scores_never_widen_a_quantile_less(one: int, other: int, came: float, steps: int) -> None:
    few, many = (shifted(lanes(steps, seen=n), came=came)[0] for n in sorted((one, other)))
    assert (few >= many).all()


def test_where_origins_are_further_apart_each_is_answered_by_the_root_more() -> None:
    near, far = temper((0.9, 0.95), 120.0), temper((0.9, 0.95), 1800.0)
    assert far.reaction == pytest.approx(near.reaction * np.sqrt(15))


def test_above_p90_three_hours_are_forgotten_alike_however_far_apart_origins_are() -> None:
    near, far = temper((0.9, 0.95), 120.0), temper((0.9, 0.95), 1800.0)
    assert far.keep[1] ** 6 == pytest.approx(near.keep[1] ** 90)
    assert far.keep[0] == near.keep[0]


def test_origins_closer_together_than_two_minutes_are_answered_as_those_at_two_minutes() -> None:
    near = correcting.Temper.of(Plan.of(ForecastSettings(quantiles=(0.9, 0.95), spacing=5.0), 5.0))
    assert near.reaction.tolist() == [0.05, 0.15]
    assert near.keep.tolist() == [0.99, 0.985]


def test_a_band_without_width_is_divided_by_no_zero() -> None:
    assert np.isfinite(shifted(lanes(1, seen=0), came=13.0, band=np.full(3, 12.0))).all()


def test_no_correction_lifts_a_jump_beyond_the_largest_ones_seen() -> None:
    made = lanes(1, seen=0, shift=100.0)
    made.quantiles[:] = np.array([0.5, 1.0, 2.0])
    made.largest[:] = 4.0
    found = learning.combined(made, np.array([10.0]), np.array([[0.0, 0.0, 1.0, 1.0]]))
    assert found[0] == pytest.approx(np.full(3, 10.0 + learning.REACH * 4.0))


def test_a_quantile_that_lies_beyond_the_largest_jump_seen_lately_stays_what_it_is() -> None:
    made = lanes(1, shift=100.0)
    made.quantiles[:] = np.array([5.0, 7.0, 9.0])
    found = learning.combined(made, np.array([10.0]), np.array([[0.0, 0.0, 1.0, 1.0]]))
    assert found[0] == pytest.approx([15.0, 17.0, 19.0])
