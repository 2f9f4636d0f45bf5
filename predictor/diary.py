"""What goes into the journal: each decision that says something new, explained, and every minute what was seen."""

import zlib
from collections.abc import Collection, Mapping
from typing import Any

from models.signals import Known, Signal
from predictor import explaining
from predictor.board import Entry
from predictor.journal import Journal
from predictor.ports import Workload
from predictor.telemetry import pages

SEEN_EVERY = 60.0  # seconds; what `floorcast counterfactual` replays
TOLD_EVERY = 900.0  # seconds after which a decision that stays the same is written again, so that any time has one near
SIGNALS = (
    Signal.ARRIVALS,
    Signal.IN_FLIGHT,
    Signal.WAITING,
    Signal.TOKENS_IN,
    Signal.TOKENS_OUT,
    Signal.TTFT_P95,
    Signal.DURATION_MEAN,
)
DECISION, SEEN = "decision", "seen"  # kinds of record


class Diary:
    """Writes rows of the board down."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._told: dict[str, tuple[float, object]] = {}
        self._seen: dict[str, float] = {}

    @property
    def lost(self) -> int:
        """Records that could not be written."""
        return self._journal.health.lost

    def note(self, entry: Entry, *, now: float) -> None:
        """Takes a row after its decision; `now` in Unix seconds."""
        key, decision = entry.target.key, entry.decision
        at, said = self._told.get(key, (float("-inf"), None))
        says = (decision.replicas, decision.reason) if decision else None
        if says != said or not 0 <= now - at < _patience(key):
            self._told[key] = now, says
            self._write(DECISION, explaining.explain(entry), now=now)
        if not 0 <= now - self._seen.get(key, float("-inf")) < SEEN_EVERY:
            self._seen[key] = now
            self._write(SEEN, seen(entry), now=now)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forgets when anything was written of all other targets."""
        self._told = {key: told for key, told in self._told.items() if key in keys}
        self._seen = {key: at for key, at in self._seen.items() if key in keys}

    def _write(self, kind: str, record: Mapping[str, Any] | None, *, now: float) -> None:
        if record is not None:
            self._journal.append({"kind": kind, **_plain(record), "at": now})


def seen(entry: Entry) -> Mapping[str, Any] | None:
    """What a target served and had, in one short line; None where its state is not known."""
    workload, decision = entry.workload, entry.decision
    if not isinstance(workload, Workload) or decision is None:
        return None
    readings = {signal: entry.readings.get(signal) for signal in SIGNALS}
    # as tested: what came of a past is asked of one fleet, whatever sizes requests had at its end
    profile = entry.capacity.profile if entry.capacity else entry.target.objectives.profile
    return {
        "target": entry.target.key,
        "mode": entry.target.mode,
        "owner": workload.owner,
        "signals": {signal: round(one.value, 4) for signal, one in readings.items() if isinstance(one, Known)},
        "ready": workload.supply.ready,
        "warming": workload.supply.warming,
        "asked": workload.replicas,
        "standing": workload.standing,
        "floor": decision.replicas,
        "base": workload.base,
        "maximum": workload.maximum,
        "gpus": workload.gpus,
        "warm_up": workload.warm_up.seconds if workload.warm_up else None,
        "concurrency": profile.concurrency,
        "duration": profile.duration or (entry.plans.duration if entry.plans else None),
    }


def _patience(key: str) -> float:
    """Three to five quarters of TOLD_EVERY: a thousand targets are not all told again in the same tick."""
    return TOLD_EVERY * (0.75 + zlib.crc32(key.encode()) % 1000 / 2000)


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    plain = pages.plain(record)
    return plain if isinstance(plain, dict) else {}
