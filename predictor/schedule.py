"""When the loops run: two APScheduler jobs that never overlap themselves and never queue up what they missed."""

import dataclasses
import datetime as dt
import threading
import time
import traceback
from collections.abc import Callable, Sequence

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from predictor.ports import Clock

CLOCK_JUMP = 5.0  # seconds between wall clock and monotonic clock from which on the jobs are set anew

_log = structlog.stdlib.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """A loop: its name, what to call, and every how many seconds."""

    name: str
    tick: Callable[[], None]
    interval: float


class Schedule:
    """Runs the jobs until it is stopped.

    A tick that is due while the one before still runs is dropped; one that could not be started within an interval is
    dropped too. Both are reported through `late`, by the job's name. A tick that raises ends no job; its traceback is
    logged when it is another than that of the tick before.
    """

    def __init__(self, jobs: Sequence[Job], *, clock: Clock, late: Callable[[str], None]) -> None:
        self._jobs = jobs
        self._clock = clock
        self._late = late
        self._running = 0
        self._idle = threading.Condition()
        self._offset = clock.now() - time.monotonic()
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(max_workers=len(jobs))},
            timezone=dt.UTC,  # an interval in local time would move by an hour twice a year
        )
        self._scheduler.add_listener(self._missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)

    def start(self) -> None:
        """Runs every job at once and from then on at its interval."""
        for job in self._jobs:
            self._scheduler.add_job(
                self._tracked(job),
                "interval",
                id=job.name,
                seconds=job.interval,
                next_run_time=self._now(),
                coalesce=True,
                max_instances=1,
                misfire_grace_time=max(int(job.interval), 1),
            )
        self._scheduler.start()

    def keep_pace(self) -> bool:
        """Sets the jobs anew when the wall clock has jumped, else they would wait for the time before; True if so."""
        offset = self._clock.now() - time.monotonic()
        if abs(offset - self._offset) < CLOCK_JUMP:
            return False
        self._offset = offset
        for job in self._jobs:
            self._scheduler.modify_job(job.name, next_run_time=self._now())
        return True

    def stop(self, *, within: float) -> bool:
        """Starts no more ticks and waits for those that run; False if one still runs after `within` seconds."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        with self._idle:
            return self._idle.wait_for(lambda: self._running == 0, timeout=within)

    def _tracked(self, job: Job) -> Callable[[], None]:
        told = ""

        def run() -> None:
            nonlocal told
            with self._idle:
                self._running += 1
            try:
                job.tick()
                told = ""
            except Exception as error:  # noqa: BLE001  (a thread's last frame: above it there is only APScheduler)
                place = _place(error)
                if place != told:
                    _log.exception("tick failed", loop=job.name)
                told = place
            finally:
                with self._idle:
                    self._running -= 1
                    self._idle.notify_all()

        return run

    def _missed(self, event: JobEvent) -> None:
        self._late(event.job_id)

    def _now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock.now(), tz=dt.UTC)


def _place(error: Exception) -> str:
    """Kind of an error and the line that raised it. Its text may name times and ports, another one each tick."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}" if frames else type(error).__name__
