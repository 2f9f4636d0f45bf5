"""Starts as they are seen to happen, pod by pod; what they say is worked out in `models.capacity.warmup`."""

import collections
import dataclasses
import threading
from collections.abc import Iterable

from models.capacity import warmup
from models.capacity.warmup import Start, Usual
from predictor.cluster import fields, pods
from predictor.cluster.fields import Json

KEPT = 200  # a target: p90 of more says the same, and what was true hundreds of starts ago may not be
KEPT_LEFT = 50  # apart from those: an autoscaler that changes its mind must not push out what was measured


class _Register:
    """What is known of one target's pods."""

    def __init__(self) -> None:
        self.done: collections.deque[Start] = collections.deque(maxlen=KEPT)
        self.left: collections.deque[Start] = collections.deque(maxlen=KEPT_LEFT)  # taken away while they warmed
        self.warming: dict[str, Start] = {}  # seen on their way, never Ready so far
        self.settled: set[str] = set()  # measured, or never to be measured
        self.told: tuple[tuple[Start, ...], Usual] | None = None  # what was worked out last, and from what


class WarmUps:
    """Remembers the first Ready of every pod. Safe to use from several threads; bounded by the pods that exist.

    A pod's Ready condition carries its last change only, so after a flap it no longer tells the warm-up. A pod is
    therefore believed when it was seen on its way; one that was Ready when first seen (Floorcast started after it) is
    believed unless that would be a far too long warm-up. Pods whose containers restarted are not.
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
            register = self._registers.setdefault(key, _Register())
            before = dict(register.warming)
            fresh = [one for one in (_first_ready(register, pod, longest=longest) for pod in counted) if one]
            alive = {fields.uid(pod) for pod in counted}
            # Who only counts those that arrive takes a slow tail for fast: a pod that was taken away while it warmed
            # says that it would have taken longer.
            register.left.extend(dataclasses.replace(one, left=now) for uid, one in before.items() if uid not in alive)
            register.done.extend(sorted(fresh, key=lambda start: start.ready or now))
            register.warming = {uid: one for uid, one in register.warming.items() if uid in alive}
            register.settled &= alive
            return (*register.left, *register.done, *register.warming.values())

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
    if start is None or start.seconds is None or pods.restarts(pod) > 0:
        return None
    return start if seen_warming or start.seconds <= longest else None
