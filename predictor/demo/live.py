"""The day on a page: the clock runs, compressed, until it is over or interrupted."""

import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import rich.console

from predictor.demo import pages, site, summary
from predictor.demo.options import DemoOptions
from predictor.demo.stage import Stage
from predictor.errors import ListenError
from predictor.ports import SignalSource
from predictor.telemetry.http import Server

USUAL_PORT = 8080


def run(options: DemoOptions) -> int:
    """Serves the page and plays the day; returns 0 when it is over or was interrupted.

    Raises:
        ListenError: the address asked for cannot be had.
    """
    console = rich.console.Console(stderr=True, highlight=False)
    stage = Stage(options)
    stop = threading.Event()

    def interrupt() -> None:
        stop.set()
        if stage.preparing:  # the compiler asks nobody whether to stop
            raise KeyboardInterrupt

    with _interrupted(interrupt), serving(stage, options) as server:
        console.print(f"Floorcast demo: [bold]{server.url}[/bold]  (Ctrl-C stops it)", soft_wrap=True)
        console.print(f"A day in {options.minutes:g} minutes, seed {options.seed}; the page shows it live.")
        source = pages.over_http(stage, base=server.url)
        try:
            play(stage, source, stop=stop, tell=functools.partial(console.print, soft_wrap=True))
        except KeyboardInterrupt:
            console.print("Stopped before the first decision.")
            return 0
        finally:
            source.close()
        summary.show(console, summary.result(stage))
        if stage.over and options.stay and not stop.is_set():
            console.print(f"The day is over; the page stays at {server.url} until Ctrl-C.")
            stop.wait()
    return 0


@contextmanager
def serving(stage: Stage, options: DemoOptions) -> Iterator[Server]:
    """The page's server; on the usual port or, where that is taken and none was asked for, on a free one."""
    application = site.application(stage)
    port = USUAL_PORT if options.port is None else options.port
    server = Server(application, host=options.host, port=port)
    try:
        server.start()
    except ListenError:
        if options.port is not None:
            raise
        server = Server(application, host=options.host, port=0)
        server.start()
    try:
        yield server
    finally:
        server.stop()


def play(stage: Stage, source: SignalSource, *, stop: threading.Event, tell: Callable[[str], None]) -> None:
    """Plays the day at the speed of the options, or as fast as this machine can where that is slower."""
    tell(f"Preparing: {stage.preparing}.")
    stage.begin(source)
    decision = stage.entry.decision
    if decision is not None:
        tell(f"First decision: {decision.before} -> {decision.replicas} replicas, {decision.reason}: {decision.note}")
    due = time.monotonic()
    while not stage.over and not stop.is_set():
        before = stage.seconds
        stage.step()
        due = max(due + (stage.seconds - before) / stage.options.speed, time.monotonic() - 1.0)  # lost time is lost
        stop.wait(max(due - time.monotonic(), 0.0))


@contextmanager
def _interrupted(stop: Callable[[], None]) -> Iterator[None]:
    """Turns SIGINT and SIGTERM into a call; only in the main thread, which is the only one that gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
