"""The jobs as APScheduler really runs them, at intervals of hundredths of a second."""

import threading
import time

import pytest
from structlog.testing import capture_logs

from predictor.clock import SystemClock
from predictor.schedule import Job, Schedule
from tests.fakes.world import FakeClock

SOON = 10.0  # seconds after which a test gives up waiting; nothing here takes one


class Counter:
    """A tick that counts, and can be made to take its time."""

    def __init__(self) -> None:
        self.runs = 0
        self.together = 0
        self.most_together = 0
        self.enough = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self.wanted = 3

    def __call__(self) -> None:
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        self.runs += 1
        if self.runs >= self.wanted:
            self.enough.set()
        self.go_on.wait(SOON)
        self.together -= 1


class Late:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.happened = threading.Event()

    def __call__(self, name: str) -> None:
        self.names.append(name)
        self.happened.set()


def test_a_job_runs_at_once_and_again_and_again() -> None:
    tick = Counter()
    schedule = Schedule([Job("slow", tick, 0.02)], clock=SystemClock(), late=Late())
    schedule.start()
    assert tick.enough.wait(SOON)
    assert schedule.stop(within=SOON)


def test_a_tick_that_is_due_while_the_one_before_runs_is_dropped_and_reported_as_late() -> None:
    tick, late = Counter(), Late()
    tick.go_on.clear()
    schedule = Schedule([Job("fast", tick, 0.02)], clock=SystemClock(), late=late)
    schedule.start()
    assert late.happened.wait(SOON)
    assert tick.runs == 1
    tick.go_on.set()
    assert tick.enough.wait(SOON)
    assert schedule.stop(within=SOON)
    assert tick.most_together == 1
    assert set(late.names) == {"fast"}


def test_one_job_does_not_wait_for_the_other() -> None:
    slow, fast = Counter(), Counter()
    slow.go_on.clear()
    schedule = Schedule([Job("slow", slow, 60), Job("fast", fast, 0.02)], clock=SystemClock(), late=Late())
    schedule.start()
    assert fast.enough.wait(SOON)
    slow.go_on.set()
    assert schedule.stop(within=SOON)


def test_a_tick_that_fails_does_not_end_the_job() -> None:
    runs = Counter()

    def fail() -> None:
        runs()
        raise RuntimeError

    schedule = Schedule([Job("slow", fail, 0.02)], clock=SystemClock(), late=Late())
    schedule.start()
    assert runs.enough.wait(SOON)
    assert schedule.stop(within=SOON)


def test_a_tick_that_goes_on_failing_is_told_once_and_again_when_it_fails_otherwise() -> None:
    runs = Counter()
    runs.wanted = 8

    def fail() -> None:
        runs()
        if runs.runs <= 4:
            raise RuntimeError(f"port {runs.runs}")
        raise ValueError

    schedule = Schedule([Job("slow", fail, 0.02)], clock=SystemClock(), late=Late())
    with capture_logs() as said:
        schedule.start()
        assert runs.enough.wait(SOON)
        assert schedule.stop(within=SOON)
    told = [one for one in said if one["event"] == "tick failed"]
    assert [(one["loop"], one["exc_info"]) for one in told] == [("slow", True)] * 2


def test_stopping_waits_for_the_tick_that_runs_and_no_longer_than_asked() -> None:
    tick = Counter()
    tick.wanted = 1
    tick.go_on.clear()
    schedule = Schedule([Job("slow", tick, 60)], clock=SystemClock(), late=Late())
    schedule.start()
    assert tick.enough.wait(SOON)
    begin = time.monotonic()
    assert not schedule.stop(within=0.2)
    assert time.monotonic() - begin < SOON
    tick.go_on.set()
    assert schedule.stop(within=SOON)


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_jumps_sets_the_jobs_anew(jump: float) -> None:
    clock, tick = FakeClock(SystemClock().now()), Counter()
    tick.wanted = 2
    schedule = Schedule([Job("slow", tick, 3600)], clock=clock, late=Late())
    schedule.start()
    assert not schedule.keep_pace()
    clock.time += jump
    assert schedule.keep_pace()
    assert not schedule.keep_pace()
    assert schedule.stop(within=SOON)
