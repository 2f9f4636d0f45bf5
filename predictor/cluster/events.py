"""Decisions as Kubernetes Events, for whoever runs `kubectl describe`. A courtesy: nothing waits for it."""

import datetime as dt
import threading
from collections.abc import Sequence

import structlog

from models.policy.decision import Decision, Reason
from predictor.cluster import client, errors
from predictor.cluster.fields import Json
from predictor.cluster.owners import Object
from predictor.cluster.resources import EVENTS
from predictor.ports import Stuck

STUCK = "ReplicasStuck"  # reason of the Event about pods that do not get Ready
QUIET = 600.0  # seconds in which a hold that comes and goes is told of once; a change of the number always is
WORTH_A_WARNING = frozenset(
    {Reason.HELD_UNKNOWN, Reason.HELD_OWNER_UNHEALTHY, Reason.DECAYED_ONE_STEP, Reason.CAPPED_AT_MAXIMUM}
)
SILENT = frozenset({Reason.AT_PLAN, Reason.HELD_RECENT_NEED, Reason.HELD_STEP_PERIOD, Reason.HELD_LOADING})
LONGEST_MESSAGE = 1024  # what the API server accepts

_log = structlog.get_logger(__name__)


class Announcer:
    """Sends Events, each once; remembers one time per object and reason. Without an `api` it keeps them to itself."""

    def __init__(self, api: client.Api | None) -> None:
        self._api = api
        self._told: dict[tuple[Object, str], float] = {}
        self._stuck: dict[Object, tuple[tuple[str, ...], float]] = {}
        self._complained = False
        self._lock = threading.Lock()

    def announce(self, thing: Object, decision: Decision) -> None:
        """Sends an Event about `thing` unless it would say nothing new. Failures are logged once, and swallowed."""
        with self._lock:
            if not self._news(thing, decision):
                return
            self._told[thing, decision.reason] = decision.at
        self._send(thing, event(thing, decision))

    def tell(self, thing: Object, *, reason: str, message: str, at: float) -> None:
        """A warning about what lasts: why the number is left alone. Told once in a while."""
        with self._lock:
            if at - self._told.get((thing, reason), float("-inf")) < QUIET:
                return
            self._told[thing, reason] = at
        self._send(thing, _object(thing, kind="Warning", reason=reason, message=message, at=at))

    def tell_once(self, thing: Object, *, reason: str, message: str, at: float) -> None:
        """What there is to know of an object, once for as long as it is known; to the log as well."""
        with self._lock:
            if (thing, reason) in self._told:
                return
            self._told[thing, reason] = at
        _log.info(message, reason=reason, namespace=thing.namespace)
        self._send(thing, _object(thing, kind="Normal", reason=reason, message=message, at=at))

    def tell_stuck(self, thing: Object, stuck: Sequence[Stuck], *, at: float) -> None:
        """An Event about pods that do not get Ready, unless the same reasons were told a moment ago."""
        reasons = tuple(sorted({one.reason for one in stuck}))
        with self._lock:
            before, told = self._stuck.get(thing, ((), float("-inf")))
            if not stuck or (reasons == before and at - told < QUIET):
                return
            self._stuck[thing] = reasons, at
        worst = max(stuck, key=lambda one: one.waited)
        told_of = f"{worst.pod} has not been ready for {worst.waited:.0f} s: {worst.reason}: {worst.message}"
        message = f"{len(stuck)} replicas are stuck and do not count as supply; {told_of}"
        self._send(thing, _object(thing, kind="Warning", reason=STUCK, message=message, at=at))

    def forget(self, thing: Object) -> None:
        """The object is gone, or no target's any more."""
        with self._lock:
            self._told = {what: at for what, at in self._told.items() if what[0] != thing}
            self._stuck.pop(thing, None)

    def _send(self, thing: Object, event: Json) -> None:
        if self._api is None:
            return
        try:
            self._api.create(EVENTS, event, namespace=thing.namespace)
            self._complained = False
        except errors.NotLeaderError:
            return  # the replica that leads tells it
        except errors.ClusterError as error:
            if not self._complained:
                _log.warning("cannot send events, going on without", reason=error.reason, detail=str(error))
            self._complained = True

    def _news(self, thing: Object, decision: Decision) -> bool:
        if decision.changes:
            return True
        if decision.reason in SILENT:
            return False
        return decision.at - self._told.get((thing, decision.reason), float("-inf")) >= QUIET


def event(thing: Object, decision: Decision) -> Json:
    """The Event object for a decision."""
    change = f"{decision.before} -> {decision.replicas}" if decision.changes else f"stays {decision.before}"
    kind = "Warning" if decision.reason in WORTH_A_WARNING else "Normal"
    message = f"{change}: {decision.note or decision.reason}"
    return _object(thing, kind=kind, reason=str(decision.reason), message=message, at=decision.at)


def _object(thing: Object, *, kind: str, reason: str, message: str, at: float) -> Json:
    time = dt.datetime.fromtimestamp(at, tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{thing.name}.floorcast-", "namespace": thing.namespace},
        "involvedObject": {
            "apiVersion": thing.api_version,
            "kind": thing.kind,
            "namespace": thing.namespace,
            "name": thing.name,
            "uid": thing.uid,
        },
        "type": kind,
        "reason": reason,
        "message": message[:LONGEST_MESSAGE],
        "source": {"component": client.FIELD_MANAGER},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
