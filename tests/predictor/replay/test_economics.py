"""What a floor costs and spares: the arithmetic on courses small enough to count, and the verdict on typical loads."""

import dataclasses

import numpy as np
import pytest

from models.capacity.profile import Profile
from models.policy.planning import Objectives
from models.signals import Signal
from predictor.replay import backtest, economics, verdict
from predictor.replay.economics import Economics, Kind, Option
from predictor.replay.verdict import Answer
from tests.predictor.replay import histories
from tests.predictor.replay.histories import HOUR, KEY

ONE_EACH = Objectives(profile=Profile(concurrency=1.0, throughput=1.0))


def weighed(values: histories.Floats, *, every: float = 240.0) -> Economics:
    questions = backtest.Questions({"chat": (300.0,)}, every=every, learning=12 * HOUR)
    found = backtest.run({KEY: histories.series(values)}, questions)
    made = economics.weigh(backtest.signals_of(found, "chat", 300.0), ONE_EACH, duration=None)
    assert made is not None
    return made


@pytest.fixture(scope="module")
def steep() -> Economics:
    return weighed(histories.steep(2.0), every=120.0)


@pytest.fixture(scope="module")
def surging() -> Economics:
    return weighed(histories.surges(2.0))


def test_a_replica_is_ready_once_it_was_wanted_for_a_whole_warm_up() -> None:
    scale = economics._Scale(step=60.0, warm_up=120.0)
    course = scale.course(np.array([1, 3, 3, 3, 3, 3, 1]))
    assert course.ready.tolist() == [1, 1, 1, 1, 3, 3, 3]  # wanted at the end of minute 1, warm after minutes 2 and 3
    assert scale.course(np.array([1, 3, 1, 3, 1, 1])).ready.tolist() == [1] * 6  # given up before they were warm


def test_the_autoscaler_follows_the_highest_load_of_five_minutes_and_holds_while_it_is_unknown() -> None:
    scale = economics._Scale(step=60.0, warm_up=60.0)
    wanted = scale.reactive(np.array([0.0, 2.5, np.nan, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]))
    assert wanted.tolist() == [1, 3, 3, 3, 3, 3, 3, 3, 1]


def test_hours_paid_and_missing_are_counted_over_the_scored_part() -> None:
    need = np.array([9.0, 1.0, 4.0, np.nan, 2.0])
    course = economics.Course(wanted=np.array([1, 1, 2, 2, 2]), ready=np.array([1, 1, 2, 2, 2]))
    option = economics._option(Kind.REACTIVE, 0, course, need, 3600.0, slice(1, None))
    assert (option.paid, option.missing) == (1 + 2 + 2, 2)
    assert option.short == pytest.approx(1 / 3)
    assert option.met == pytest.approx(1 - 4 / 7)  # all that came while one was missing


def test_the_floor_never_wants_less_than_the_autoscaler_alone(steep: Economics) -> None:
    alone = steep.courses[0.0]
    for probability, course in steep.courses.items():
        assert (course.wanted >= alone.wanted).all(), probability
        assert (course.ready >= alone.ready).all(), probability


def test_a_higher_quantile_costs_more_and_leaves_less_short(steep: Economics) -> None:
    floors = steep.of(Kind.FLOOR)
    assert [one.setting for one in floors] == [0.8, 0.9, 0.95, 0.975, 0.99]
    assert floors[0].paid < floors[-1].paid
    assert floors[0].met <= floors[-1].met


def test_a_steep_load_that_recurs_pays(steep: Economics) -> None:
    found = verdict.of(steep)
    assert found.answer is Answer.PAYS, found.sentence
    assert found.floor is not None
    assert found.floor.met >= 0.99 > steep.reactive.met
    assert f"A floor pays here, at p{found.floor.setting * 100:g}" in found.sentence


def test_surges_that_nothing_announces_do_not_pay_and_the_sentence_says_so(surging: Economics) -> None:
    found = verdict.of(surging)
    assert found.answer is Answer.NOT, found.sentence
    assert found.instead is not None
    assert found.instead.kind is Kind.MINIMUM  # a fleet of one size: nothing says when it is needed
    assert "its surges unannounced" in found.sentence


def test_a_flat_load_needs_no_floor() -> None:
    found = verdict.of(weighed(5.5 + 0.2 * np.sin(np.arange(2 * 1440) / 50)))
    assert found.answer is Answer.NOT
    assert "already finds enough replicas" in found.sentence


def test_a_day_is_the_least_that_is_judged() -> None:
    found = verdict.of(weighed(histories.daily(1.0)))
    assert found.answer is Answer.UNSAID
    assert "only 18.0 h could be judged" in found.sentence  # a quarter of the day is for learning


def test_where_no_load_came_nothing_is_said(steep: Economics) -> None:
    found = verdict.of(dataclasses.replace(steep, need=np.zeros_like(steep.need)))
    assert found.answer is Answer.UNSAID
    assert "no load came" in found.sentence


def test_what_a_floor_is_held_against_is_finer_than_what_matters(steep: Economics) -> None:
    """Else a floor would pay by what lies between two minima or two headrooms."""
    shares = np.array([1, *(1 + one.setting for one in steep.of(Kind.HEADROOM))])
    assert (np.diff(shares) / shares[:-1] < verdict.MATTERS * 0.6).all()
    minima = np.array(list(economics._minima(1e6)))
    assert len(minima) < 1500
    assert (np.diff(minima) <= np.maximum(verdict.MATTERS * 0.6 * minima[:-1], 1)).all()
    assert (minima[0], minima[-1]) == (1, 1e6 + 1)


def test_an_objective_is_written_as_it_was_given(steep: Economics) -> None:
    ways = (option(Kind.REACTIVE, 0, 100, 0.9999), option(Kind.FLOOR, 0.99, 110, 1.0))
    assert "(99.9% wanted)" in verdict.of(dataclasses.replace(steep, options=ways), objective=0.999).sentence


def test_points_farther_apart_than_a_warm_up_are_not_judged(steep: Economics) -> None:
    found = verdict.of(dataclasses.replace(steep, step=600.0))
    assert found.answer is Answer.UNSAID
    assert "10m apart" in found.sentence


def option(kind: Kind, setting: float, paid: float, met: float) -> Option:
    return Option(kind=kind, setting=setting, paid=paid, missing=1.0, short=1 - met, met=met)


ALONE = option(Kind.REACTIVE, 0, 100, 0.90)


@pytest.mark.parametrize(
    ("others", "answer", "words"),
    [
        ((option(Kind.HEADROOM, 0.5, 150, 0.995),), Answer.PAYS, "50% headroom on every replica would be needed"),
        ((option(Kind.HEADROOM, 0.1, 111, 0.995),), Answer.NOT, "as good"),
        ((option(Kind.HEADROOM, 0.1, 102, 0.995),), Answer.NOT, "cheaper"),
        (
            (option(Kind.MINIMUM, 4, 108, 0.991),),
            Answer.NOT,
            "the load is flat, its surges unannounced, or the fleet small",
        ),
    ],
)
def test_the_floor_is_held_against_the_cheapest_way_that_does_as_well(
    steep: Economics, others: tuple[Option, ...], answer: Answer, words: str
) -> None:
    floor = option(Kind.FLOOR, 0.95, 110, 0.992)
    found = verdict.of(dataclasses.replace(steep, options=(ALONE, *others, floor)))
    assert found.answer is answer
    assert words in found.sentence


def test_what_just_misses_the_objective_is_not_written_as_reaching_it(steep: Economics) -> None:
    ways = (ALONE, option(Kind.MINIMUM, 9, 200, 0.999), option(Kind.FLOOR, 0.99, 110, 0.98999))
    found = verdict.of(dataclasses.replace(steep, options=ways))
    assert found.answer is Answer.HELPS
    assert "only from 90.0% to 98.99% (99% wanted)" in found.sentence


def test_what_a_floor_that_is_not_enough_costs_is_said_and_what_does_as_much(steep: Economics) -> None:
    ways = (
        ALONE,
        option(Kind.HEADROOM, 0.08, 112, 0.985),
        option(Kind.MINIMUM, 9, 280, 0.999),
        option(Kind.FLOOR, 0.99, 118, 0.98),
    )
    found = verdict.of(dataclasses.replace(steep, options=ways))
    assert found.answer is Answer.NOT
    assert (
        "98.00% (99% wanted), for 18% more replica-hours; 8% headroom on every replica does as much for 12% more;"
        in (found.sentence)
    )
    assert "only a fixed minimum of 9 replicas would reach it, for 2.8 times the replica-hours" in found.sentence


def test_only_the_quantile_that_was_asked_for_is_judged(steep: Economics) -> None:
    floors = (option(Kind.FLOOR, 0.9, 110, 0.992), option(Kind.FLOOR, 0.99, 140, 0.999))
    other = option(Kind.HEADROOM, 0.5, 130, 0.995)
    both = dataclasses.replace(steep, options=(ALONE, other, *floors))
    assert verdict.of(both).answer is Answer.PAYS
    assert verdict.of(both, only=0.99).answer is Answer.NOT
    assert verdict.of(both, objective=0.85).answer is Answer.NOT  # the autoscaler alone does that


def test_several_verdicts_make_one_sentence(steep: Economics) -> None:
    first = verdict.of(steep)
    slow = dataclasses.replace(first, warm_up=600.0, answer=Answer.NOT)
    assert verdict.headline([first]) == first.sentence
    text = verdict.headline([first, slow])
    assert text.startswith("A floor pays with a warm-up of 5m at p")
    assert text.endswith("a floor does not pay with a warm-up of 10m.")
    other = verdict.headline([first, dataclasses.replace(slow, target="batch")])
    assert "for batch (warm-up 10m)" in other
    assert "no load could be turned into replicas" in verdict.headline([])


def test_a_profile_that_says_nothing_of_the_load_is_not_weighed() -> None:
    questions = backtest.Questions({"chat": (300.0,)})
    found = backtest.run({KEY: histories.series(histories.daily(0.2))}, questions)
    only_concurrency = Objectives(profile=Profile(concurrency=40))
    signals = backtest.signals_of(found, "chat", 300.0)
    assert economics.weigh(signals, only_concurrency, duration=None) is None
    assert economics.weigh(signals, only_concurrency, duration=10.0) is not None  # by Little's law


def test_the_larger_of_two_needs_counts() -> None:
    series = {
        (KEY[0], signal): histories.series(histories.daily(0.2)) for signal in (Signal.ARRIVALS, Signal.IN_FLIGHT)
    }
    found = backtest.run(series, backtest.Questions({"chat": (300.0,)}))
    objectives = Objectives(profile=Profile(concurrency=4.0, throughput=2.0))
    made = economics.weigh(backtest.signals_of(found, "chat", 300.0), objectives, duration=None)
    assert made is not None
    np.testing.assert_allclose(made.need, histories.daily(0.2) / 2)


def test_without_a_profile_the_busiest_time_takes_ten_replicas() -> None:
    load = np.linspace(0, 50, 5000)
    assert economics.assumed_profile(arrivals=load).throughput == pytest.approx(5.0, rel=0.01)
    assert economics.assumed_profile(in_flight=load).concurrency == pytest.approx(5.0, rel=0.01)
    assert economics.assumed_profile(arrivals=np.zeros(9)).throughput == pytest.approx(0.1)
