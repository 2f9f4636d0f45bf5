"""Requests that run and never end are no demand."""

from models import stall
from models.stall import PATIENCE, Flow, Watch


def walked(*flows: Flow, every: float = 60.0) -> float:
    """Seconds of stall at the end of looks `every` seconds apart."""
    watch = Watch()
    for number, flow in enumerate(flows):
        watch = stall.look(watch, flow, now=number * every)
    return stall.stalled_for(watch, now=(len(flows) - 1) * every)


STUCK, BUSY, IDLE = Flow(running=30, tokens=0), Flow(running=30, tokens=900), Flow(running=0, tokens=0)
BLIND = Flow(running=None, tokens=0)


def test_requests_without_tokens_for_three_minutes_are_a_stall() -> None:
    assert walked(BUSY, STUCK, STUCK, STUCK) == 0  # two minutes: a long prompt
    assert walked(BUSY, STUCK, STUCK, STUCK, STUCK) == PATIENCE
    assert walked(*[STUCK] * 11) == 600


def test_one_token_ends_it() -> None:
    assert walked(*[STUCK] * 10, BUSY) == 0
    assert walked(*[STUCK] * 10, BUSY, STUCK) == 0


def test_an_idle_engine_is_not_stalled() -> None:
    assert walked(*[IDLE] * 10) == 0


def test_what_is_not_known_changes_nothing() -> None:
    assert walked(*[BLIND] * 10) == 0
    assert walked(*[Flow(30, None)] * 10) == 0
    assert walked(STUCK, *[BLIND] * 3) == PATIENCE
