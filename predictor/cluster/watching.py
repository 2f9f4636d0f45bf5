"""What runs, kept up to date by watches: one follower for each kind of object and namespace, in a thread of its own.

A follower lists once, then follows the changes from the version it has. The API server ends each watch after `window`
seconds; the follower goes on from where it is. It lists again when its version is no longer known (410), and every
`resync` seconds, should an event ever get lost. A broken connection costs nothing but another watch.

It is known how old the picture is at most: every event, every bookmark and every regular end of a watch say that the
API server had nothing more to tell. When none of these came for `stale_after` seconds the picture is not given out any
more, for a silent connection looks just like a quiet cluster.

The informer of the kubernetes client is not used: it keeps whole objects in models that refuse what real clusters send,
does not tell how old they are, asks for no bookmarks and retries without a pause.
"""

import dataclasses
import threading
import time
from collections.abc import Callable

import structlog

from predictor.cluster import client, errors, fields, picking, streams
from predictor.cluster.client import Watched
from predictor.cluster.fields import Json
from predictor.cluster.resources import Resource

CATCH_UP = 1.0  # seconds a look waits for the event of our own last write; it takes milliseconds
LONGEST_PAUSE = 15.0  # seconds between two tries of a watch that fails
# Trying again soon does not help against these, and who asks should be told at once.
PLAIN_NO = (errors.ForbiddenError, errors.UnauthorizedError, errors.NotFoundError, errors.MisconfiguredError)

_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """Times of a follower, in seconds.

    Attributes:
        window: how long one watch lasts; twice a minute the API server proves that it is there.
        stale_after: age from which the picture is not given out.
        resync: time after which everything is listed anew.
        patience: how long the first look waits for the first list.
        idle: a follower that nobody has asked for so long ends.
    """

    window: float = 30.0
    stale_after: float = 45.0
    resync: float = 1800.0
    patience: float = 10.0
    idle: float = 900.0


@dataclasses.dataclass(frozen=True, slots=True)
class What:
    """What is followed."""

    resource: Resource
    namespace: str
    selector: str = ""
    names_only: bool = False

    def __str__(self) -> str:
        return f"{self.resource.rule_name} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """How a follower fares.

    Attributes:
        what: what it follows.
        objects: how many it knows.
        age: seconds since the API server last said that this is all; None before the first list.
        lists: times everything was listed.
        watches: watches begun.
    """

    what: What
    objects: int
    age: float | None
    lists: int
    watches: int


class Cache:
    """Lists from memory what an `Api` would list from the API server. Safe to use from several threads.

    Args:
        api: the API server.
        pace: see there.
        everywhere: follow each kind in all namespaces at once, which takes the permission to.
        passed: seconds on a clock that nobody sets.
    """

    def __init__(
        self,
        api: client.Api,
        *,
        pace: Pace | None = None,
        everywhere: bool = False,
        passed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._pace = pace or Pace()
        self._everywhere = everywhere
        self._passed = passed
        self._followers: dict[What, Follower] = {}
        self._lock = threading.Lock()
        api.listen(self._written)

    def list_all(
        self, resource: Resource, *, namespace: str = "", selector: str = "", names_only: bool = False
    ) -> list[Json]:
        """All objects of a kind in a namespace, as they were no longer than `stale_after` ago; not to be changed.

        Raises:
            StaleError: nothing was heard for too long, and why is not known.
            ClusterError: why there is nothing that could be given out.
        """
        what = What(resource, "" if self._everywhere else namespace, selector, names_only)
        return self._follower(what).objects(namespace)

    def report(self) -> tuple[Report, ...]:
        """How all followers fare; ends those that nobody asks any more."""
        with self._lock:
            for what in [what for what, one in self._followers.items() if one.idle()]:
                self._followers.pop(what).stop()
            followers = list(self._followers.values())
        return tuple(one.report() for one in followers)

    def close(self) -> None:
        """Ends all watches."""
        with self._lock:
            followers, self._followers = list(self._followers.values()), {}
        for one in followers:
            one.stop()
        for one in followers:
            one.join(CATCH_UP)

    def _follower(self, what: What) -> "Follower":
        with self._lock:
            found = self._followers.get(what)
            if found is None or found.ended:
                found = self._followers[what] = Follower(self._api, what, self._pace, self._passed)
                found.start()
            return found

    def _written(self, resource: Resource, after: Json) -> None:
        """A look after a write of ours must not show what was before it."""
        with self._lock:
            followers = list(self._followers.values())
        for one in followers:
            if dataclasses.replace(resource, subresource="") == one.what.resource:
                one.expect(fields.text(after, "metadata", "namespace"), _number(after))


class Follower(threading.Thread):
    """Keeps one kind of object in one namespace."""

    def __init__(self, api: client.Api, what: What, pace: Pace, passed: Callable[[], float]) -> None:
        super().__init__(name=f"watch {what}", daemon=True)
        self.what = what
        self.ended = False
        self._api, self._pace, self._passed = api, pace, passed
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._objects: dict[tuple[str, str], Json] = {}
        self._version = ""  # up to which everything is known; empty: list anew
        self._expected = 0  # version of our own last write
        self._listed_at = self._confirmed_at = float("-inf")
        self._asked_at = passed()
        self._error: errors.ClusterError | None = None
        self._stream: streams.Stream | None = None
        self._failures = self._lists = self._watches = 0

    # ------------------------------------------------------------------------------------------- for those who look

    def objects(self, namespace: str) -> list[Json]:
        """What is there; see `Cache.list_all`."""
        with self._changed:
            self._asked_at = self._passed()
            self._changed.wait_for(lambda: self._error or self._lists, self._pace.patience)
            if self._expected > _numeric(self._version):
                self._changed.wait_for(lambda: self._expected <= _numeric(self._version), CATCH_UP)
            self._refuse_if_old()
            return [one for (place, _), one in self._objects.items() if namespace in ("", place)]

    def _refuse_if_old(self) -> None:
        if isinstance(self._error, PLAIN_NO):
            raise self._error
        age = self._passed() - self._confirmed_at
        if age > self._pace.stale_after or self._expected > _numeric(self._version):
            if self._error is not None:
                raise self._error
            told = f"{age:.0f} s ago" if self._lists else "never"
            raise errors.StaleError(f"watch {self.what}: last heard of {told}; what was known then is not used")

    def expect(self, namespace: str, version: int) -> None:
        """The next look must know this version."""
        if self.what.namespace in ("", namespace):
            with self._changed:
                self._expected = max(self._expected, version)

    def idle(self) -> bool:
        """Whether nobody has looked for long."""
        return self._passed() - self._asked_at > self._pace.idle

    def report(self) -> Report:
        """How it fares."""
        with self._changed:
            age = self._passed() - self._confirmed_at if self._lists else None
            return Report(self.what, len(self._objects), age, self._lists, self._watches)

    def stop(self) -> None:
        """Ends it, a wait for the next event included."""
        self._stopping.set()
        with self._changed:
            stream = self._stream
        if stream is not None:
            stream.cut()

    # --------------------------------------------------------------------------------------------------- the thread

    def run(self) -> None:
        """Follows until stopped."""
        try:
            while not self._stopping.is_set() and not isinstance(self._error, errors.NotFoundError):
                self._go_on()
        finally:
            self.ended = True  # also where there is no such kind: whoever asks again later begins anew

    def _go_on(self) -> None:
        try:
            self._list_if_due()
            self._follow()
        except errors.ExpiredError as error:
            _log.info("watch too far behind: listing anew", what=str(self.what), detail=str(error))
            self._version = ""
            self._stopping.wait(self._pause())
        except errors.ClusterError as error:
            self._fail(error)
            self._stopping.wait(self._pause())

    def _list_if_due(self) -> None:
        if self._version and self._passed() - self._listed_at < self._pace.resync:
            return
        found: dict[tuple[str, str], Json] = {}
        version, begun, what = "", self._passed(), self.what
        asked = {"namespace": what.namespace, "selector": what.selector}
        for page in self._api.pages(what.resource, names_only=what.names_only, **asked):  # each let go before the next
            version = version or fields.text(page, "metadata", "resourceVersion")
            found.update((_key(thing), self._picked(thing)) for thing in fields.mappings(page, "items"))
        with self._changed:
            self._objects, self._version, self._listed_at = found, version, begun
            self._lists += 1
            self._confirm()

    def _follow(self) -> None:
        """One watch."""
        what, since = self.what, self._version
        asked = Watched(since, self._pace.window, what.namespace, what.selector, what.names_only)
        stream = self._api.watch(what.resource, asked)
        begun = self._passed()
        with self._changed:
            self._stream = stream
            self._watches += 1
        try:
            if not self._stopping.is_set():
                for event in stream:
                    self._take(event)
        finally:
            with self._changed:
                self._stream = None
            stream.close()
        if self._stopping.is_set():
            return
        with self._changed:
            self._confirm()
        if self._passed() - begun < self._pace.window / 2:
            self._stopping.wait(self._pause())  # something in between ends watches early: not again and again at once
        else:
            self._failures = 0

    def _take(self, event: Json) -> None:
        thing = fields.mapping(event, "object")
        kind, version = fields.text(event, "type"), fields.text(thing, "metadata", "resourceVersion")
        with self._changed:
            if kind in ("ADDED", "MODIFIED"):
                self._objects[_key(thing)] = self._picked(thing)
            elif kind == "DELETED":
                self._objects.pop(_key(thing), None)
            self._version = version or self._version
            self._confirm()

    def _confirm(self) -> None:
        """The API server has just told all there is; called with the lock held."""
        if self._error is not None:
            _log.info("watch goes on", what=str(self.what))
        self._error = None
        self._confirmed_at = self._passed()
        self._changed.notify_all()

    def _fail(self, error: errors.ClusterError) -> None:
        if self._stopping.is_set():
            return  # we cut it ourselves
        with self._changed:
            if type(error) is not type(self._error):
                _log.warning("watch failed", what=str(self.what), reason=error.reason, detail=str(error))
            self._error = error
            self._changed.notify_all()

    def _pause(self) -> float:
        """Seconds to the next try: none after the first failure, then longer and longer, and not all at one time."""
        self._failures += 1
        spread = 1 + (hash(self.what) % 100) / 200
        return min(0.5 * (2.0 ** (self._failures - 1) - 1) * spread, LONGEST_PAUSE)

    def _picked(self, thing: Json) -> Json:
        return picking.picked(self.what.resource, thing, names_only=self.what.names_only)


def _key(thing: Json) -> tuple[str, str]:
    return fields.text(thing, "metadata", "namespace"), fields.name(thing)


def _number(thing: Json) -> int:
    return _numeric(fields.text(thing, "metadata", "resourceVersion"))


def _numeric(version: str) -> int:
    """Versions of one kind can be compared where they are numbers, which those of Kubernetes are."""
    return int(version) if version.isdecimal() else 0
