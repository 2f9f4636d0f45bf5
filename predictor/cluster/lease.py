"""Who may write: at most one of several replicas, by a Lease of the API group coordination.k8s.io.

The holder renews its lease every few seconds. It stops writing `renew` seconds after it *sent* the last renewal that
the API server took. Others take the lease when they have seen it unchanged for `duration` seconds, and they saw it only
after it was sent. As `renew` plus the longest time a write may take is no longer than `duration`, the last write of one
holder is over before the first of the next begins. Every time is measured on the replica's own clock, which nobody
sets: the clocks of two machines need not agree. A process that was stopped and goes on finds its time over, because
`holds` is asked right before each write.

What is left: a process that is stopped between that question and the system call which sends the write, for longer than
the lease. Its write names the version it was computed from, so it is refused where the next holder has written since.

The election in the kubernetes client is not used: it has no such question to ask (a stopped process writes on until its
own loop has noticed), measures on the wall clock, and does not give the lease back.
"""

import dataclasses
import datetime as dt
import math
import threading
import traceback
from collections.abc import Callable

import structlog

from predictor import clock as clocks
from predictor.cluster import client, errors, fields
from predictor.cluster.fields import Json
from predictor.cluster.resources import LEASES
from predictor.ports import Clock

_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """Which lease, for whom, and its times in seconds.

    Attributes:
        namespace: where the Lease object is.
        name: its name; the replicas of one installation share it.
        identity: this process; no other one, now or before, has the same.
        duration: how long others leave an unchanged lease alone.
        renew: how long after a renewal was sent its holder goes on writing.
        retry: time between two renewals, and between two looks at somebody else's lease.
    """

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.renew < self.duration:
            raise ValueError(
                f"retry {self.retry:g} s, renew {self.renew:g} s, duration {self.duration:g} s: each must be below the"
                " next, or a lease ends before it is renewed, or is taken before its holder has stopped"
            )


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen:
    """Somebody else's lease, or none at all, and since when it has been just that."""

    version: str
    holder: str
    duration: float
    since: float


class Elector:
    """Takes part in the election. `step` and `resign` belong to one thread; `holds` may be asked from any.

    Args:
        api: the API server, by a client of its own, so that nothing else delays a renewal.
        terms: see there.
        clock: for what stands in the lease, where people read it.
        passed: seconds on a clock that nobody sets; everything is measured on it.
    """

    def __init__(
        self, api: client.Api, terms: Terms, *, clock: Clock, passed: Callable[[], float] = clocks.passed
    ) -> None:
        self._api = api
        self._terms = terms
        self._clock = clock
        self._passed = passed
        self._until = -math.inf  # when to stop writing
        self._ours: Json | None = None  # the lease as we last wrote it
        self._seen: _Seen | None = None
        self._told = ""
        self._resigned = False

    def holds(self) -> bool:
        """Whether this replica may write at this instant."""
        return self._passed() < self._until

    def run(self, stop: threading.Event) -> None:
        """Goes on trying until told to stop; failures are logged when they change, and tried again."""
        place = ""
        while not stop.is_set():
            try:
                self.step()
                place = ""
            except Exception as error:  # noqa: BLE001  (a thread's last frame: no election, no writes)
                frame = traceback.extract_tb(error.__traceback__)[-1]
                if (place, place := f"{frame.filename}:{frame.lineno}")[0] != place:
                    _log.exception("election failed")
            stop.wait(self.pause())

    def pause(self) -> float:
        """Seconds until the next step: less than `retry` where the lease can be had before.

        A lease that is over and could not be had is tried for at the usual distance: the API server may be down.
        """
        seen, retry = self._seen, self._terms.retry
        if seen is None or self.holds():
            return retry
        left = seen.since + seen.duration - self._passed()
        return min(max(left, 0.01), retry) if left > 0 else retry

    def step(self) -> None:
        """One try to renew the lease, or to get it."""
        if self._resigned:
            return
        try:
            self._try()
        except errors.ConflictError:
            self._lose()  # somebody else was faster: the next step sees who
        except errors.NotFoundError:
            self._lose()  # deleted: read it anew
        except errors.ClusterError as error:
            self._tell("cannot reach the lease", state=error.reason, problem=str(error))

    def resign(self) -> None:
        """Gives the lease back, so that the next holder need not wait; only once no write is under way any more."""
        held, self._until, self._resigned = self.holds(), -math.inf, True
        if held and self._ours is not None:
            given_up = {**fields.mapping(self._ours, "spec"), "holderIdentity": "", "leaseDurationSeconds": 1}
            try:
                self._replace({**self._ours, "spec": given_up})
                self._tell("lease given back", state="resigned")
            except errors.ClusterError as error:
                _log.warning("lease not given back, others wait until it is over", problem=str(error))

    def _try(self) -> None:
        lease = self._ours if self._ours is not None else self._read()
        if lease is None:
            self._create_if_long_absent()
        elif self._ours is not None or self._may_take(lease):
            self._take(lease)

    def _read(self) -> Json | None:
        try:
            return self._api.get(LEASES, namespace=self._terms.namespace, name=self._terms.name)
        except errors.NotFoundError:
            return None

    def _may_take(self, lease: Json) -> bool:
        """Whether nobody holds it: given back, or not renewed for as long as it lasts."""
        holder = fields.text(lease, "spec", "holderIdentity")
        version = fields.text(lease, "metadata", "resourceVersion")
        lasts = float(fields.count(lease, "spec", "leaseDurationSeconds") or self._terms.duration)
        if holder in ("", self._terms.identity):
            return True
        seen = self._notice(version, holder, max(lasts, self._terms.duration))
        over = self._passed() >= seen.since + seen.duration
        if not over:
            self._tell("standing by", state=f"standby {holder}", holder=holder)
        return over

    def _create_if_long_absent(self) -> None:
        """A lease that is not there may have been deleted under a holder, who goes on until it notices."""
        seen = self._notice("", "", self._terms.duration)
        if self._passed() < seen.since + seen.duration:
            self._tell("no lease yet: waiting, for it may have been deleted under its holder", state="absent")
            return
        sent = self._passed()
        place = {"namespace": self._terms.namespace, "name": self._terms.name}
        thing = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": place, "spec": self._spec({})}
        self._win(self._api.create(LEASES, thing, namespace=self._terms.namespace), sent=sent)

    def _notice(self, version: str, holder: str, duration: float) -> _Seen:
        """Since when it has been like this; counted from after the answer, never from before somebody wrote it."""
        if self._seen is None or self._seen.version != version:
            self._seen = _Seen(version, holder, duration, self._passed())
        return self._seen

    def _take(self, lease: Json) -> None:
        sent = self._passed()
        self._win(self._replace({**lease, "spec": self._spec(fields.mapping(lease, "spec"))}), sent=sent)

    def _win(self, lease: Json, *, sent: float) -> None:
        self._ours, self._seen = lease, None
        self._until = sent + self._terms.renew
        self._tell("leading", state="leading", lease=f"{self._terms.namespace}/{self._terms.name}")

    def _lose(self) -> None:
        if self._ours is not None:
            self._tell("lease lost", state="lost")
        self._ours, self._until = None, -math.inf

    def _replace(self, lease: Json) -> Json:
        return self._api.replace(LEASES, lease, namespace=self._terms.namespace, name=self._terms.name)

    def _spec(self, before: Json) -> Json:
        """The lease's spec with us as its holder, from now."""
        now = dt.datetime.fromtimestamp(self._clock.now(), tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        ours = fields.text(before, "holderIdentity") == self._terms.identity
        return {
            **before,
            "holderIdentity": self._terms.identity,
            "leaseDurationSeconds": math.ceil(self._terms.duration),
            "acquireTime": fields.text(before, "acquireTime") or now if ours else now,
            "renewTime": now,
            "leaseTransitions": fields.count(before, "leaseTransitions") + (not ours),
        }

    def _tell(self, event: str, *, state: str, **more: str) -> None:
        """Logs a state once."""
        if state != self._told:
            self._told = state
            _log.info(event, identity=self._terms.identity, **more)
