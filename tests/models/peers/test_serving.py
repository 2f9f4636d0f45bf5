import pytest

from models.peers.serving import RayServe, RaySettings, SkyServe, SkySettings
from models.policy.decision import Reason
from models.policy.protocol import Observation
from models.signals import Signal
from tests.fakes.observations import Value, at, observe, walk


def load(value: Value, *, replicas: int = 4) -> Observation:
    return at(observe({Signal.IN_FLIGHT: value, Signal.WAITING: 0.0}, replicas=replicas), 0, minimum=0)


def rate(value: Value, *, replicas: int = 4) -> Observation:
    return observe({Signal.ARRIVALS: value}, replicas=replicas)


def test_ray_wants_all_ongoing_requests_over_the_target_after_the_delay_up() -> None:
    """16 ongoing at 2 a replica: ratio 2, 4 + 4 x (2 - 1) = 8."""
    assert walk(RayServe(), [load(16.0)] * 5) == [4, 4, 8, 8, 8]


def test_ray_smooths_by_its_factor() -> None:
    rule = RayServe(RaySettings(upscaling_factor=0.5, upscale_delay=0))
    assert rule.decide(load(16.0)).replicas == 6


def test_ray_comes_down_only_after_ten_minutes_of_the_same_wish() -> None:
    course = walk(RayServe(), [load(2.0)] * 42)
    assert course[:40] == [4] * 40
    assert course[40] == 1


def test_ray_starts_anew_when_the_direction_turns() -> None:
    rule = RayServe(RaySettings(look_back=3))
    assert walk(rule, [load(16.0), load(16.0), load(2.0), load(16.0), load(16.0), load(16.0)]) == [4, 4, 4, 4, 4, 8]


def test_ray_leaves_zero_at_once() -> None:
    assert RayServe().decide(load(1.0, replicas=0)).replicas == 1
    assert RayServe().decide(load(0.0, replicas=0)).replicas == 0


def test_ray_and_sky_hold_while_nothing_is_known() -> None:
    assert RayServe().decide(load(None)).reason is Reason.HELD_UNKNOWN
    assert SkyServe().decide(rate(None)).reason is Reason.HELD_UNKNOWN


def test_sky_divides_the_rate_of_a_minute_and_waits_five_minutes_up_and_twenty_down() -> None:
    up = walk(SkyServe(SkySettings(target=2)), [rate(15.0)] * 22)
    assert up[:20] == [4] * 20
    assert up[20] == 8  # ceil(15 / 2)
    down = walk(SkyServe(SkySettings(target=2)), [rate(1.0)] * 82)
    assert (down[79], down[80]) == (4, 1)


def test_nonsense_is_refused() -> None:
    for kind in (RaySettings, SkySettings):
        with pytest.raises(ValueError, match="target is 0"):
            kind(target=0)
