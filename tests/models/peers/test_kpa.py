import pytest

from models.peers.kpa import Kpa, KpaSettings
from models.policy.context import Supply
from models.policy.decision import Reason
from models.policy.protocol import Observation
from models.signals import Signal
from tests.fakes.observations import Value, at, observe


def seen(
    concurrency: Value, *, replicas: int = 1, ready: int | None = None, minimum: int = 1, now: float = 0
) -> Observation:
    found = observe({Signal.IN_FLIGHT: concurrency, Signal.WAITING: 0.0}, replicas=replicas, ready=ready)
    return at(found, now, minimum=minimum)


def test_defaults_are_those_of_the_config_map() -> None:
    settings = KpaSettings()
    assert settings.aimed == 70  # 100 at 70 %
    assert (settings.stable_window, settings.panic_share, settings.panic_threshold) == (60, 0.1, 2)
    assert (settings.up, settings.down, settings.grace, settings.scale_down_delay) == (1000, 2, 30, 0)


def test_in_calm_the_stable_window_over_the_target_decides() -> None:
    """Mean of 30 and 105 over the window is 67.5, below 70: 1; of 30 and 150 it is 90: 2, not yet twice two ready."""
    for later, wanted in ((105.0, 1), (150.0, 2)):
        rule = Kpa()
        rule.decide(seen(30.0))
        calm = rule.decide(seen(later, replicas=2, now=20))
        assert (calm.note.split(":")[0], calm.replicas) == ("stable", wanted)


def test_it_panics_when_the_short_window_asks_for_twice_what_is_ready_and_never_goes_down_in_it() -> None:
    rule = Kpa()
    assert rule.decide(seen(0.0, replicas=1)).replicas == 1
    # 2 s later 700 in flight: stable mean 350 -> 5, panic mean 350 -> 5: 5 / 1 >= 2
    panic = rule.decide(seen(700.0, replicas=1, now=2))
    assert (panic.replicas, panic.note.split(":")[0]) == (5, "panic")
    later = [rule.decide(seen(0.0, replicas=5, now=2.0 * k)).replicas for k in range(2, 40)]
    # over the threshold last at 4 s ((0 + 700 + 0) / 3 = 234 -> 4 of 5 is not: so at 2 s); ends after 60 s more
    assert later[:30] == [5] * 30
    assert later[30] < 5


def test_stable_scale_down_halves_at_most() -> None:
    rule = Kpa()
    rule.decide(seen(0.0, replicas=1))
    calm = rule.decide(seen(0.0, replicas=9, now=300.0))
    assert calm.replicas == 4  # floor(9 / 2)


def test_scale_up_is_capped_by_its_rate() -> None:
    rule = Kpa(KpaSettings(up=3))
    assert rule.decide(seen(7000.0, replicas=2, ready=1)).replicas == 3  # ceil(3 x 1 ready)


def test_warming_pods_do_not_count_so_a_slow_warm_up_looks_like_panic() -> None:
    """serving#13284: 4 wanted of 1 ready is 4 times as much, although 3 are on their way."""
    rule = Kpa()
    assert rule.decide(seen(280.0, replicas=4, ready=1)).note.startswith("panic")


def test_a_restart_with_more_than_one_ready_pod_begins_in_panic() -> None:
    rule = Kpa()
    first = rule.decide(seen(10.0, replicas=6))
    assert (first.replicas, first.note.split(":")[0]) == (6, "panic")
    assert rule.decide(seen(10.0, replicas=6, now=58)).replicas == 6
    assert rule.decide(seen(10.0, replicas=6, now=62)).replicas == 3


def test_without_data_there_is_no_decision() -> None:
    held = Kpa().decide(seen(None, replicas=4))
    assert (held.replicas, held.reason) == (4, Reason.HELD_UNKNOWN)


def test_data_outlives_a_gap_shorter_than_its_window() -> None:
    rule = Kpa()
    rule.decide(seen(70.0))
    assert rule.decide(seen(None, now=4)).reason is not Reason.HELD_UNKNOWN
    assert rule.decide(seen(None, now=12)).reason is Reason.HELD_UNKNOWN  # the panic window is empty


def test_a_delay_keeps_the_largest_number_of_its_window() -> None:
    rule = Kpa(KpaSettings(scale_down_delay=120))
    assert rule.decide(seen(280.0)).replicas == 4
    assert rule.decide(seen(0.0, replicas=4, now=100)).replicas == 4
    assert rule.decide(seen(0.0, replicas=4, now=221)).replicas == 2


def test_an_activation_scale_is_the_fewest_while_there_is_load() -> None:
    assert Kpa(KpaSettings(activation_scale=3)).decide(seen(1.0)).replicas == 3
    assert Kpa(KpaSettings(activation_scale=3)).decide(seen(0.0)).replicas == 1


def test_the_last_pod_goes_only_after_the_grace_period() -> None:
    rule = Kpa()
    course = [rule.decide(seen(0.0, replicas=1, minimum=0, now=2.0 * k)).replicas for k in range(17)]
    assert course == [1] * 15 + [0, 0]  # 30 s
    assert rule.decide(at(seen(5.0, replicas=0, minimum=0), 40.0, supply=Supply(0))).replicas == 1


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="target 0"):
        KpaSettings(target=0)
    with pytest.raises(ValueError, match="rates"):
        KpaSettings(down=1)
