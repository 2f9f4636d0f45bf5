import pytest

from models.peers.aibrix import AibrixKpa, AibrixKpaSettings, Apa, ApaSettings
from models.policy.decision import Reason
from models.policy.protocol import Observation
from models.signals import Signal
from tests.fakes.observations import Value, at, observe, walk


def seen(load: Value, *, replicas: int = 4, now: float = 0) -> Observation:
    return at(observe({Signal.IN_FLIGHT: load, Signal.WAITING: 0.0}, replicas=replicas), now)


@pytest.mark.parametrize(
    ("load", "wanted"),
    [
        (400.0, 8),  # u = 2.5: min(ceil(10), ceil(2 x 4))
        (240.0, 6),  # u = 1.5
        (176.0, 4),  # u = 1.1: inside
        (144.0, 4),  # u = .9: inside
        (100.0, 3),  # u = .625: ceil(2.5)
        (10.0, 2),  # u = .0625: max(1, floor(4 / 2))
    ],
)
def test_apa_steps_by_use_over_target_between_half_and_twice(load: float, wanted: int) -> None:
    assert Apa(ApaSettings(target=40)).decide(seen(load)).wanted == wanted


def test_apa_keeps_the_largest_number_of_five_minutes() -> None:
    rule = Apa(ApaSettings(target=40))
    course = walk(rule, [seen(240.0, replicas=4), *[seen(0.0)] * 21])
    assert course[:20] == [6] * 20
    assert course[20] < 6


def test_apa_without_a_metric_or_a_ready_pod_holds() -> None:
    assert Apa().decide(seen(None)).reason is Reason.HELD_UNKNOWN
    none_ready = observe({Signal.IN_FLIGHT: 9.0, Signal.WAITING: 0.0}, ready=0)
    assert Apa().decide(none_ready).replicas == 4


def test_aibrix_kpa_divides_the_window_by_the_target_outside_a_tenth() -> None:
    assert AibrixKpa(AibrixKpaSettings(target=40)).decide(seen(170.0)).replicas == 4  # 170 / 160 = 1.06
    assert AibrixKpa(AibrixKpaSettings(target=40)).decide(seen(190.0)).replicas == 5


def test_aibrix_kpa_panics_when_the_minute_is_more_than_twice_the_three_minutes() -> None:
    rule = AibrixKpa(AibrixKpaSettings(target=40))
    for k in range(12):
        rule.decide(seen(40.0, replicas=1, now=10.0 * k))
    found = [rule.decide(seen(600.0, replicas=1, now=120 + 10.0 * k)) for k in range(6)]
    # (12 x 40 + 6 x 600) / 18 = 226.7 over three minutes, 600 over the last: 2.6 times as much, and 600 / 40 = 15
    assert (found[-1].replicas, found[-1].note) == (15, "panic window at 600.0")


def test_aibrix_kpa_without_load_before_panics_and_without_a_metric_holds() -> None:
    assert AibrixKpa().decide(seen(0.0)).note.startswith("panic")
    assert AibrixKpa().decide(seen(None)).reason is Reason.HELD_UNKNOWN


def test_a_target_of_nothing_is_refused() -> None:
    for kind in (ApaSettings, AibrixKpaSettings):
        with pytest.raises(ValueError, match="target is 0"):
            kind(target=0)
