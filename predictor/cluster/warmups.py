"""Starts as they are seen to happen, pod by pod; what they say is worked out in `models.capacity.warmup`."""

import collections
import dataclasses
import threading
from collections.abc import Collection, Iterable, Mapping

from models.capacity import warmup
from models.capacity.warmup import Start, Usual
from predictor.cluster import fields, pods
from predictor.cluster.fields import Json

KEPT = 200  # a target: p90 of more says the same, and what was true hundreds of starts ago may not be
KEPT_LEFT = 50  # apart from those: an autoscaler that changes its mind must not push out what was measured
SOON = 600.0  # seconds after the last look at a warming pod within which its Ready is its first, and no flap


@dataclasses.dataclass(frozen=True, slots=True)
class Remembered:
    """All that is known of a target's starts, for another process to go on from.

    Attributes:
        at: when its pods were last looked at, Unix seconds.
        done: starts that became Ready, newest last.
        left: pods that were taken away while they warmed.
        warming: uid -> start of the pods on their way.
        settled: uids of the pods that are in `done`, or never to be measured.
    """

    at: float
    done: tuple[Start, ...] = ()
    left: tuple[Start, ...] = ()
    warming: Mapping[str, Start] = dataclasses.field(default_factory=dict)
    settled: frozenset[str] = frozenset()


class _Register:
    """What is known of one target's pods."""

    def __init__(self, known: Remembered) -> None:
        self.looked_at = known.at
        self.done: collections.deque[Start] = collections.deque(known.done, maxlen=KEPT)
        self.left: collections.deque[Start] = collections.deque(known.left, maxlen=KEPT_LEFT)
        self.warming: dict[str, Start] = dict(known.warming)  # seen on their way, never Ready so far
        self.settled: set[str] = set(known.settled)  # measured, or never to be measured
        self.told: tuple[tuple[Start, ...], Usual] | None = None  # what was worked out last, and from what


class WarmUps:
    """Remembers the first Ready of every pod. Safe to use from several threads; bounded by the pods that exist.

    A pod's Ready condition carries its last change only, so after a flap it no longer tells the warm-up. A pod is
    therefore believed when it was seen on its way shortly before; one that was Ready when first seen (Floorcast
    started after it) is believed unless that would be a far too long warm-up. Pods whose containers restarted are not.
    """

    def __init__(self) -> None:
        self._registers: dict[str, _Register] = {}
        self._lock = threading.Lock()

    def watch(self, key: str, running: Iterable[Json], *, now: float, longest: float) -> tuple[Start, ...]:
        """Takes in the pods of target `key` and returns its starts; those Ready newest last, then those on their way.

        Args:
            key: target.
            running: its pods as they are now.
            now: Unix time, seconds.
            longest: seconds above which the times of a pod that was Ready when first seen are put down to a flap.
        """
        counted = pods.counted(running)
        with self._lock:
            register = self._registers.setdefault(key, _Register(Remembered(now)))
            before = dict(register.warming)
            fresh = [one for one in (_first_ready(register, pod, longest=longest) for pod in counted) if one]
            alive = {fields.uid(pod) for pod in counted}
            # Who only counts those that arrive takes a slow tail for fast: a pod that was taken away while it warmed
            # says that it would have taken longer. Nobody saw it warm after the last look.
            until = min(register.looked_at, now)
            gone = [one for uid, one in before.items() if uid not in alive]
            register.left.extend(dataclasses.replace(one, left=until) for one in gone)
            register.done.extend(sorted(fresh, key=lambda start: start.ready or now))
            register.warming = {uid: one for uid, one in register.warming.items() if uid in alive}
            register.settled &= alive
            register.looked_at = now
            return (*register.left, *register.done, *register.warming.values())

    def remembered(self, key: str) -> Remembered | None:
        """What is known of the starts of target `key`; None where nobody ever looked."""
        with self._lock:
            one = self._registers.get(key)
            if one is None:
                return None
            return Remembered(
                one.looked_at, tuple(one.done), tuple(one.left), dict(one.warming), frozenset(one.settled)
            )

    def recall(self, key: str, known: Remembered) -> None:
        """Goes on from what another process knew of target `key`; to be called before the first look at it."""
        with self._lock:
            self._registers.setdefault(key, _Register(known))

    def keep_only(self, keys: Collection[str]) -> None:
        """Forgets all other targets."""
        with self._lock:
            self._registers = {key: one for key, one in self._registers.items() if key in keys}

    def usual(self, key: str, running: Iterable[Json], *, now: float, default: float) -> Usual:
        """Takes in the pods of target `key` as they are now; what its starts say, `default` seconds at first.

        While no pod is on its way nothing changes with time, and it is not worked out again: a tick over a thousand
        targets would take seconds.
        """
        starts = self.watch(key, running, now=now, longest=warmup.FAR_TOO_LONG * default)
        register = self._registers[key]
        if register.told is None or register.told[0] != starts or register.warming:
            register.told = starts, warmup.usual(starts, now=now, default=default)
        return register.told[1]


def _first_ready(register: _Register, pod: Json, *, longest: float) -> Start | None:
    """The pod's start, the one time it can be told."""
    uid = fields.uid(pod)
    if uid in register.settled:
        return None
    if not pods.is_ready(pod):
        start = None if pods.fell(pod) or pods.restarts(pod) else pods.start(pod)
        if start is None:
            register.warming.pop(uid, None)
            if pods.fell(pod):
                register.settled.add(uid)
        else:
            register.warming[uid] = start
        return None
    register.settled.add(uid)
    seen_warming = register.warming.pop(uid, None) is not None
    start = pods.start(pod)
    if start is None or start.ready is None or start.seconds is None or pods.restarts(pod) > 0:
        return None
    watched = seen_warming and start.ready <= register.looked_at + SOON
    return start if watched or start.seconds <= longest else None
