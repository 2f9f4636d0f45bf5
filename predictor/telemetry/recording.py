"""The loops' recorder: every step goes to the metrics, every change to the log."""

from collections.abc import Collection, Sequence

import structlog

from models.capacity import warmup
from models.policy.decision import Decision
from models.signals import Cause, Signal, Unknown
from predictor.board import Entry, Plans
from predictor.diary import Diary
from predictor.ports import Clock, Readings, Refused, Workload, Written
from predictor.targets import Mode, Target
from predictor.telemetry.health import Pulse
from predictor.telemetry.metrics import Metrics

FORBIDDEN = "Forbidden"  # reason of a missing permission
QUIET = 600.0  # seconds between two lines about late ticks of a loop; the metric counts every one


class Telemetry:
    """What `loops.Recorder` asks for. A state is logged when it changes, not at every tick."""

    def __init__(self, metrics: Metrics, pulse: Pulse, clock: Clock, diary: Diary | None = None) -> None:
        self._metrics = metrics
        self._pulse = pulse
        self._clock = clock
        self._diary = diary
        self._log = structlog.stdlib.get_logger("floorcast")
        self._troubles: dict[tuple[str, ...], str | None] = {}
        self._late: dict[str, tuple[float, int]] = {}  # loop -> when that was told last, and ticks left out since

    def tick(self, loop: str, *, seconds: float, outcome: str) -> None:
        """One pass ended."""
        self._metrics.tick(loop, seconds=seconds, outcome=outcome, at=self._clock.now())
        if outcome == "finished":
            self._pulse.beat(loop)
        if not self._changed("tick", loop, state=None if outcome == "finished" else outcome):
            return
        if outcome == "finished":
            self._log.info("ticks finish again", loop=loop)
        else:
            self._log.warning("tick did not finish", loop=loop, outcome=outcome, seconds=round(seconds, 3))

    def late(self, loop: str) -> None:
        """A tick was left out because the one before was still running."""
        self._metrics.late(loop)
        now = self._clock.now()
        told, more = self._late.get(loop, (float("-inf"), 0))
        if abs(now - told) < QUIET:
            self._late[loop] = told, more + 1
            return
        self._late[loop] = now, 0
        self._log.warning("tick left out: the one before is still running", loop=loop, more_since_last_said=more)

    def readings(self, target: Target, readings: Readings, *, now: float) -> None:
        """What a look gave."""
        self._metrics.readings(target, readings, now=now)
        news: dict[Cause | None, list[Signal]] = {}
        for signal, reading in readings.items():
            cause = reading.cause if isinstance(reading, Unknown) else None
            cause = None if cause is Cause.NOT_ASKED else cause
            if self._changed("signal", target.key, signal, state=cause):
                news.setdefault(cause, []).append(signal)
        for why, signals in news.items():
            self._tell_signals(target, why, signals, readings)

    def workload(self, target: Target, workload: Workload | Refused) -> None:
        """The state in the cluster, or why it cannot be had."""
        self._metrics.workload(target, workload)
        held = workload.advice if isinstance(workload, Workload) and target.mode is Mode.CONTROL else None
        refused = workload if isinstance(workload, Refused) else held
        if self._changed("workload", target.key, state=_told_by(refused)):
            self._tell_refusal("workload", target, refused or workload)
        if isinstance(workload, Workload):
            usual = workload.warm_up
            seconds = warmup.warm_up(usual, default=target.warm_up)
            self._metrics.warm_up(target, seconds, measured=usual is not None and usual.seconds is not None)
            self._tell_stuck(target, workload)

    def history(self, *, loaded: bool) -> None:
        """The history was asked for."""
        self._metrics.history_loaded(complete=loaded)
        if loaded:
            self._log.info("history loaded")

    def plans(self, target: Target, plans: Plans) -> None:
        """Forecasts and plans of a slow tick."""
        self._metrics.plans(target, plans)

    def decision(self, target: Target, decision: Decision, *, news: bool) -> None:
        """A decision; only one that says something new is logged."""
        self._metrics.decision(target, decision)
        if news:
            self._log.info(
                "decision",
                target=target.key,
                mode=target.mode,
                before=decision.before,
                replicas=decision.replicas,
                wanted=decision.wanted,
                reason=decision.reason,
                note=decision.note,
            )

    def row(self, entry: Entry, *, now: float) -> None:
        """All that is known of a target after a decision; what is wrong with it is told when it changes."""
        self._metrics.row(entry)
        key, note = entry.target.key, entry.capacity.note if entry.capacity else ""
        if entry.refused is None:
            # Nothing was to be written, or not by us: what is refused after this is news, be it for the same reason.
            self._changed("write", key, state=None)
        # The evidence grows with every minute; what is said of it changes with what is planned for.
        if self._changed("capacity", key, state=note.partition(",")[0] or None) and note:
            self._log.warning("capacity", target=key, problem=note)
        if self._changed("stall", key, state="stalled" if entry.stalled else None):
            told = "engines are stalled" if entry.stalled else "engines answer again"
            self._log.warning(told, target=key, seconds=round(entry.stalled))
        if self._diary is not None:
            self._diary.note(entry, now=now)
            self._metrics.journal(lost=self._diary.lost)

    def write(self, target: Target, outcome: Written | Refused) -> None:
        """A write was tried."""
        self._metrics.write(target, outcome)
        if self._changed("write", target.key, state=_told_by(outcome if isinstance(outcome, Refused) else None)):
            self._tell_refusal("write", target, outcome)
        if isinstance(outcome, Written):
            self._log.info("written", target=target.key, replicas=outcome.replicas)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forgets what was told of all other targets: of one that comes back all is news."""
        self._troubles = {what: state for what, state in self._troubles.items() if what[0] == "tick" or what[1] in keys}
        if self._diary is not None:
            self._diary.keep_only(keys)

    def _changed(self, *what: str, state: str | None) -> bool:
        """Whether the trouble (None: there is none) is another than last time."""
        before = self._troubles.get(what)
        self._troubles[what] = state
        return before != state

    def _tell_signals(self, target: Target, cause: Cause | None, signals: Sequence[Signal], readings: Readings) -> None:
        """One line for all that a cause made unknown: a server that is down takes every signal with it."""
        names = ", ".join(signals)
        if cause is None:
            self._log.info("signal known again", target=target.key, signal=names)
            return
        details = dict.fromkeys(reading.detail for name in signals if isinstance(reading := readings[name], Unknown))
        more = f" (and {len(details) - 1} more like it)" if len(details) > 1 else ""
        detail = f"{next(iter(details))}{more}"
        self._log.warning("signal unknown", target=target.key, signal=names, cause=cause, detail=detail)

    def _tell_stuck(self, target: Target, workload: Workload) -> None:
        """A line when the reasons change, not for every pod that joins those that wait for the same."""
        reasons = ", ".join(sorted({one.reason for one in workload.stuck}))
        if not self._changed("stuck", target.key, state=reasons or None):
            return
        if not reasons:
            self._log.info("no replica is stuck any more", target=target.key)
            return
        first = max(workload.stuck, key=lambda one: one.waited)
        self._log.warning(
            "replicas stuck",
            target=target.key,
            pods=len(workload.stuck),
            reasons=reasons,
            pod=first.pod,
            seconds=round(first.waited),
            message=first.message,
        )

    def _tell_refusal(self, what: str, target: Target, outcome: Workload | Written | Refused) -> None:
        if isinstance(outcome, Refused):
            why = {"reason": outcome.reason, "detail": outcome.detail}
            self._log.warning(f"{what} refused", target=target.key, **why)
        else:
            self._log.info(f"{what} possible again", target=target.key)


def _told_by(refused: Refused | None) -> str | None:
    """What one refusal is told from the next by; of a missing permission also which: one granted uncovers the next."""
    if refused is None:
        return None
    return f"{refused.reason} {refused.detail}" if refused.reason == FORBIDDEN else refused.reason
