"""Sizes of requests that the source remembers: a restart loses none of them, and without them nothing is lowered."""

import dataclasses
import math
import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from models.capacity import mix, sizes
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes
from models.policy.decision import Reason
from models.series import Series
from models.signals import Cause, Signal, Unknown
from predictor import recalling
from predictor.board import Entry
from predictor.targets import Target
from tests.fakes.stage import SEASON, TARGET, Stage
from tests.fakes.world import CALM, FakeSource

BEGIN = SEASON * 300  # where the stage's clock starts
TESTS = [LoadTest(Sizes(1000, output), 4 * 100 / output, 40) for output in (100, 200)]
PROFILE = Profile(40, throughput=4, by_size=sizes.fitted([*TESTS, LoadTest(Sizes(2000, 100), 4, 40)]))
SIZED = dataclasses.replace(TARGET, objectives=dataclasses.replace(TARGET.objectives, profile=PROFILE))
STANDING = dataclasses.replace(CALM, standing=5, replicas=5)


class Source(FakeSource):
    """Ten requests a second, of so many tokens, as told by counters; counts what it is asked for of the past."""

    def __init__(self, output: float = 200.0, *, rate: Callable[[float], float] = lambda _: 10.0) -> None:
        super().__init__(
            arrivals=rate,
            in_flight=lambda time: 8 * rate(time),
            waiting=lambda _: 0.0,
            completions=rate,
            tokens_in=lambda time: 1000 * rate(time),
            tokens_out=lambda time: output * rate(time),
            reporting=lambda _: CALM.supply.ready,
        )
        self.asked: list[Signal] = []
        self.fails: set[Signal] = set()
        self.takes = 0.0  # seconds until it fails

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        if step == recalling.STEP:
            self.asked.append(signal)
            if signal in self.fails:
                threading.Event().wait(self.takes)
                return {target.key: Unknown(Cause.SOURCE_DOWN, "too slow") for target in targets}
        return super().history(targets, signal, since=since, until=until, step=step)


def past(source: FakeSource) -> mix.Mix | Unknown | None:
    return recalling.past(source, [SIZED], now=BEGIN, lag=60)[SIZED.key]


def output(found: mix.Mix | Unknown | None) -> float:
    assert isinstance(found, mix.Mix)
    return mix.sizes(found, Sizes(1000, 100)).output


# ----------------------------------------------------------------------------------------------------------- the past


def test_sizes_of_the_past_are_those_that_were_served() -> None:
    found = past(Source())
    assert output(found) == pytest.approx(200, rel=0.02)
    assert isinstance(found, mix.Mix)
    assert found.at == BEGIN
    assert found.taken == pytest.approx(10 * mix.MEMORY, rel=0.05)


def test_a_quiet_night_lies_behind_the_last_that_is_known() -> None:
    found = past(Source(rate=lambda time: 10.0 if time < BEGIN - 8 * 3600 else 0.0))
    assert output(found) == pytest.approx(185, rel=0.05)
    assert isinstance(found, mix.Mix)
    assert mix.known(found)


def test_holes_in_the_past_are_no_requests_and_no_tokens() -> None:
    source = Source()
    source.values[Signal.TOKENS_OUT] = lambda time: math.nan if time % 600 < 300 else 2000.0
    assert output(past(source)) == pytest.approx(200, rel=0.02)


def test_nothing_served_is_nothing_known() -> None:
    found = past(Source(rate=lambda _: 0.0))
    assert isinstance(found, mix.Mix)
    assert not mix.known(found)
    source = Source()
    source.values[Signal.COMPLETIONS] = lambda _: math.nan
    assert past(source) is None


@pytest.mark.parametrize("signal", recalling.ASKED)
def test_a_signal_without_a_past_makes_sizes_unknown_and_is_not_asked_for_again(signal: Signal) -> None:
    source = Source()
    del source.values[signal]
    found = past(source)
    assert isinstance(found, Unknown)
    assert recalling.answered(found)


def test_an_engine_that_counts_no_requests_is_asked_for_nothing_more() -> None:
    source = Source()
    del source.values[Signal.COMPLETIONS]
    past(source)
    assert source.asked == [Signal.COMPLETIONS]


def test_a_source_that_does_not_answer_now_may_later() -> None:
    source = Source()
    source.down = True
    assert not recalling.answered(past(source))
    assert recalling.answered(None)


@pytest.mark.parametrize("loaded", [False, True])
def test_the_past_is_wanted_where_sizes_matter_and_are_not_known(*, loaded: bool) -> None:
    assert recalling.wanted(Entry(SIZED), loaded=loaded)
    assert not recalling.wanted(Entry(TARGET), loaded=loaded)
    known = Entry(SIZED, mix=mix.Mix(BEGIN, 80, 1e6, 1e5, 1e3, 1e3))
    assert recalling.wanted(known, loaded=loaded) is not loaded  # it knows more of the last minutes than was kept


# ------------------------------------------------------------------------------------------------------------ restarts


def test_a_service_that_starts_anew_knows_the_sizes_that_its_source_remembers_from_the_first_look_on() -> None:
    stage = Stage(Source(), target=SIZED)
    stage.pass_time(10)
    assert stage.entry.sizes.output == pytest.approx(200, rel=0.02)
    assert stage.entry.plans.raising.replicas >= 5  # 10 a second at 2; the plans were made after
    assert sorted(stage.source.asked) == sorted(recalling.ASKED)
    stage.pass_time(300)
    assert sorted(stage.source.asked) == sorted(recalling.ASKED)


def test_it_decides_as_one_that_went_on() -> None:
    went_on = Stage(Source(), target=SIZED, workload=STANDING)
    went_on.pass_time(600)
    anew = Stage(Source(), target=SIZED, workload=STANDING)
    anew.clock.time = went_on.clock.time
    for stage in (went_on, anew):
        stage.pass_time(600)
    assert anew.entry.sizes.output == pytest.approx(went_on.entry.sizes.output, rel=0.01)
    assert anew.standing() == went_on.standing()


def test_without_a_past_nothing_comes_down_before_sizes_are_known_and_what_stood_stays() -> None:
    """Five are needed for what is served, and three would be of requests as tested."""
    source = Source(rate=lambda _: 0.05)
    source.keeps_history = False
    stage = Stage(source, target=SIZED, workload=STANDING)
    stage.pass_time(420)
    assert stage.standing() == 5
    assert stage.entry.decision.reason is Reason.HELD_UNKNOWN
    assert "sizes of requests are not known, " in stage.entry.decision.note
    stage.pass_time(420)
    assert stage.standing() < 5


def test_sizes_that_are_kept_in_the_file_count_where_the_source_knows_less() -> None:
    source = Source()
    source.keeps_history = False
    stage = Stage(source, target=SIZED)
    kept = mix.recalled(mix.Mix(BEGIN - 60, 80, prompt=9e6, output=3.6e6, taken=9e3, served=9e3), now=BEGIN)
    stage.entry.mix = kept
    stage.pass_time(10)
    assert stage.entry.sizes.output == pytest.approx(400, rel=0.05)


def test_a_past_that_could_not_be_had_is_asked_for_again_until_sizes_are_known_otherwise() -> None:
    source = Source(rate=lambda time: 10.0 if time < BEGIN - 60 else 0.0)
    source.fails = {Signal.TOKENS_OUT}
    stage = Stage(source, target=SIZED)
    stage.pass_time(60)
    asked = len(source.asked)
    assert asked == 2 * 3  # as far as the one that fails, at both slow ticks
    source.fails = set()
    stage.pass_time(60)
    assert len(source.asked) == asked + 4
    assert stage.entry.sizes.output == pytest.approx(200, rel=0.02)


def test_a_source_that_takes_long_to_fail_is_not_asked_at_every_tick_once_loads_are_known() -> None:
    source = Source(rate=lambda time: 10.0 if time < BEGIN - 60 else 0.0)
    source.fails, source.takes = {Signal.COMPLETIONS}, 1.6  # a twentieth of 32 s
    stage = Stage(source, target=SIZED)
    stage.pass_time(60)
    assert stage.loops.loaded
    assert len(source.asked) == 1
    stage.pass_time(30)
    assert len(source.asked) == 2


def test_a_source_that_never_tells_is_not_asked_once_sizes_were_seen() -> None:
    source = Source()
    source.fails = {Signal.TOKENS_OUT}
    stage = Stage(source, target=SIZED)
    stage.pass_time(300)
    assert len(source.asked) == 3
    assert mix.known(stage.entry.mix)


def test_targets_without_load_tests_ask_for_no_sizes() -> None:
    stage = Stage(Source())
    stage.pass_time(60)
    assert stage.source.asked == []
    assert stage.entry.mix is None


def test_a_day_of_looks_is_taken_in_as_it_would_have_been_seen() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.uniform(50, 400, 2000)
    source = Source()
    source.values[Signal.TOKENS_OUT] = lambda time: 10 * float(lengths[int((BEGIN - time) / 60) % 2000])
    looks = None
    for at in np.arange(BEGIN - recalling.SPAN, BEGIN + 1, recalling.STEP):
        values = [source.values[signal](at) for signal in (Signal.TOKENS_IN, Signal.TOKENS_OUT, Signal.COMPLETIONS)]
        looks = mix.after(looks, mix.Flow(*values, running=80.0), at=float(at), lag=60)
    assert past(source) == looks
