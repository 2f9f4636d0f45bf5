import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.peers import registry, seasonal, triggers
from models.peers.engine import Engine
from models.peers.registry import Rival, Terms
from models.policy.context import Supply
from models.policy.protocol import Observation
from models.race import ours
from models.series import Series
from models.signals import Cause, Signal
from tests.fakes.observations import observe

DAY = 86400.0


@dataclasses.dataclass(frozen=True)
class Flat:
    """10 ms a step and .1 ms a token."""

    def step(self, *, decoding: float = 0, prefill: float = 0, context: float = 0, square: float = 0) -> float:
        return 10 + 0.1 * decoding + 0.01 * prefill + 1e-5 * context + 1e-9 * square


def terms(days: float = 8) -> Terms:
    hours = np.arange(int(days * 24 * 12)) / 12
    wave = 20 + 15 * np.sin(2 * np.pi * hours / 24)
    return Terms(
        rate=4.0,
        concurrency=40.0,
        engine=Engine(Flat(), kv_tokens=200_000),
        peak=9,
        history=Series(-days * DAY, 300.0, wave),
        future=Series(0.0, 300.0, wave[:288]),
    )


ALL = registry.rivals(terms())


def load(level: float, replicas: int, now: float, *, cause: Cause | None = None) -> Observation:
    values = {
        Signal.ARRIVALS: level, Signal.IN_FLIGHT: 8 * level, Signal.WAITING: max(level - 10, 0.0),
        Signal.KV_USAGE: min(level / 40, 1.0), Signal.TOKENS_IN: 800 * level, Signal.TOKENS_OUT: 200 * level,
    }  # fmt: skip
    seen = observe(values if cause is None else dict.fromkeys(values, cause), replicas=replicas)
    return dataclasses.replace(seen, now=now, minimum=1, maximum=30, supply=Supply(replicas))


def test_names_are_unique_and_every_kind_is_there() -> None:
    names = [rival.name for rival in ALL]
    assert len(set(names)) == len(names)
    for kind in ("static", "hpa", "keda", "knative", "wva", "dynamo", "aibrix", "ray", "skyserve", "oracle"):
        assert any(name.startswith(kind) for name in names), kind


@pytest.mark.parametrize("rival", ALL, ids=lambda rival: rival.name)
def test_a_sweep_has_the_default_in_it_and_says_what_it_varies(rival: Rival) -> None:
    assert rival.default in rival.values
    assert len(rival.values) >= 7
    assert list(rival.values) == sorted(rival.values)
    assert rival.knob
    assert rival.source
    assert rival.interval > 0


@pytest.mark.parametrize("rival", ALL, ids=lambda rival: rival.name)
@pytest.mark.parametrize("end", [0, -1])
def test_every_rival_works_at_both_ends_of_its_sweep(rival: Rival, end: int) -> None:
    rule, replicas = rival.make(rival.values[end]), 4
    for k in range(60):
        seen = load(10 + k % 20, replicas, rival.interval * k, cause=Cause.SOURCE_DOWN if k % 17 == 5 else None)
        decision = rule.decide(seen)
        assert (decision.at, decision.before) == (seen.now, replicas)
        replicas = decision.replicas
        assert 1 <= replicas <= 30


@given(
    st.sampled_from([rival for rival in ALL if not rival.name.startswith("oracle")]),
    st.lists(st.tuples(st.floats(0, 200), st.sampled_from([None, None, None, *Cause])), min_size=1, max_size=40),
)
def test_no_rival_ever_leaves_its_bounds(rival: Rival, course: list[tuple[float, Cause | None]]) -> None:
    rule, replicas = rival.make(rival.default), 4
    for k, (level, cause) in enumerate(course):
        replicas = rule.decide(load(level, replicas, rival.interval * k, cause=cause)).replicas
        assert 1 <= replicas <= 30


@pytest.mark.parametrize("rival", ALL, ids=lambda rival: rival.name)
def test_two_of_a_kind_share_nothing_and_decide_alike(rival: Rival) -> None:
    first, second = rival.make(rival.default), rival.make(rival.default)
    course = [load(10 + 3 * (k % 7), 4, rival.interval * k) for k in range(40)]
    assert [first.decide(one) for one in course] == [second.decide(one) for one in course]


def test_schedules_need_a_history_and_the_clairvoyant_the_future() -> None:
    bare = dataclasses.replace(terms(), history=None, future=None)
    names = {rival.name for rival in registry.rivals(bare)}
    gone = {rival.name for rival in ALL} - names
    assert {name for name in gone if not name.startswith("keda-cron")} == {"oracle", "oracle-99", "oracle-99.9"}
    assert {"keda-cron-day", "keda-cron-day-share", "keda-cron-week"} < gone
    assert not any(rival.name.startswith("keda-cron-week") for rival in registry.rivals(terms(days=3)))


def test_a_schedule_with_fewer_replicas_asks_for_its_share_at_every_hour_and_under_load() -> None:
    whole, lean = (registry.named("keda-cron-day-share", terms()).make(share) for share in (1.0, 2.0))
    for hour in range(24):
        calm = load(0.1, 4, hour * 3600.0)
        assert lean.decide(calm).wanted == -(-(whole.decide(calm).wanted or 0) // 2)
    assert registry.named("keda-cron-day", terms()).make(0.95).decide(calm).wanted == whole.decide(calm).wanted
    busy = load(60.0, 4, DAY)
    assert (whole.decide(busy).wanted or 0) > (lean.decide(busy).wanted or 0) > 4


def test_no_sweep_over_shares_ends_before_floorcasts_own_does() -> None:
    assert max(registry.SHARES) >= 1 / (1 + min(ours.CAUTION))


def test_a_rival_is_found_by_its_name() -> None:
    assert registry.named("wva-v1", terms()).default == 0.80
    with pytest.raises(ValueError, match=r"no rival 'hpa' .*hpa-queue"):
        registry.named("hpa", terms())
    with pytest.raises(ValueError, match="rate is 0"):
        dataclasses.replace(terms(), rate=0.0)


# -------------------------------------------------------------------------------------------------- schedules, static
def test_a_static_fleet_stays_what_it_is() -> None:
    rule = registry.named("static", terms()).make(7.0)
    assert [rule.decide(load(level, 7, level)).replicas for level in (0.0, 500.0)] == [7, 7]


def test_a_timetable_asks_for_what_a_quantile_of_each_window_needed() -> None:
    """Two days of two windows of 12 h: 10 and 14 at night, 40 and 60 by day, 4 a replica."""
    history = Series(0.0, DAY / 2, np.array([10.0, 40.0, 14.0, 60.0]))
    table = seasonal.timetable(history, per_replica=4.0, quantile=1.0, period=DAY, step=DAY / 2)
    assert table.replicas == (4, 15)
    median = seasonal.timetable(history, per_replica=4.0, quantile=0.5, period=DAY, step=DAY / 2)
    assert median.replicas == (3, 13)  # 12 / 4, 50 / 4


def test_a_window_without_history_asks_for_the_usual_quantile() -> None:
    history = Series(0.0, DAY / 2, np.array([10.0, np.nan, 14.0, np.nan]))
    table = seasonal.timetable(history, per_replica=4.0, quantile=1.0, period=DAY, step=DAY / 2)
    assert table.replicas == (4, 4)


def test_a_schedule_may_open_a_warm_up_earlier() -> None:
    table = seasonal.earlier(triggers.Timetable((1, 9), step=3600.0), 600.0)
    found = [table.read(load(0.0, 1, now)) for now in (0.0, 2999.0, 3000.0, 6599.0, 6600.0)]
    assert found == [1, 1, 9, 9, 1]


def test_a_history_of_nothing_or_windows_that_do_not_fit_are_refused() -> None:
    empty = Series(0.0, 300.0, np.array([np.nan]))
    with pytest.raises(ValueError, match="0 known points"):
        seasonal.timetable(empty, per_replica=1.0, quantile=0.5, period=DAY)
    with pytest.raises(ValueError, match="windows of 7000"):
        seasonal.timetable(Series(0.0, 300.0, np.array([1.0])), per_replica=1.0, quantile=0.5, period=DAY, step=7000)
