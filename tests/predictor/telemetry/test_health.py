from predictor.telemetry.health import Pulse


class Watch:
    """A monotonic clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 50.0

    def __call__(self) -> float:
        return self.time


def test_alive_while_both_loops_finish() -> None:
    watch = Watch()
    pulse = Pulse({"slow": 30, "fast": 10}, watch)
    for _ in range(100):
        watch.time += 10
        pulse.beat("fast")
        pulse.beat("slow")
        assert pulse.problems() == ()


def test_a_loop_that_stands_still_for_five_intervals_is_named() -> None:
    watch = Watch()
    pulse = Pulse({"slow": 30, "fast": 10}, watch)
    pulse.beat("slow")
    pulse.beat("fast")
    watch.time += 50
    assert pulse.problems() == ()
    watch.time += 1
    pulse.beat("slow")
    assert pulse.problems() == ("the fast loop last finished 51 s ago, at most 50 s",)


def test_the_first_tick_may_take_as_long_as_loading_the_history() -> None:
    watch = Watch()
    pulse = Pulse({"slow": 30}, watch)
    watch.time += 300
    assert pulse.problems() == ()
    watch.time += 1
    assert pulse.problems() == ("the slow loop has not finished once in 301 s",)
    pulse.beat("slow")
    assert pulse.problems() == ()


def test_loops_that_begin_anew_are_given_the_time_of_the_first_tick_again() -> None:
    watch = Watch()
    pulse = Pulse({"slow": 30, "fast": 10}, watch)
    pulse.beat("fast")
    pulse.beat("slow")
    pulse.begin({"slow": 60})
    watch.time += 299
    assert pulse.problems() == ()
    pulse.beat("slow")
    watch.time += 301
    assert pulse.problems() == ("the slow loop last finished 301 s ago, at most 300 s",)
