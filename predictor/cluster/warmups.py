"""Warm-ups as they are seen to happen, pod by pod."""

import collections
import threading
from collections.abc import Iterable

from predictor.cluster import fields, pods
from predictor.cluster.fields import Json
from predictor.cluster.pods import WarmUp

KEPT = 200  # a target: p90 of more says the same, and what was true hundreds of starts ago may not be


class _Register:
    """What is known of one target's pods."""

    def __init__(self) -> None:
        self.measured: collections.deque[WarmUp] = collections.deque(maxlen=KEPT)
        self.warming: set[str] = set()  # seen on their way, never Ready so far
        self.settled: set[str] = set()  # measured, or never to be measured


class WarmUps:
    """Remembers the first Ready of every pod. Safe to use from several threads; bounded by the pods that exist.

    A pod's Ready condition carries its last change only, so after a flap it no longer tells the warm-up. A pod is
    therefore believed when it was seen on its way; one that was Ready when first seen (Floorcast started after it) is
    believed unless that would be a far too long warm-up. Pods whose containers restarted are not.
    """

    def __init__(self) -> None:
        self._registers: dict[str, _Register] = {}
        self._lock = threading.Lock()

    def watch(self, key: str, running: Iterable[Json], *, longest: float) -> tuple[float, ...]:
        """Takes in the pods of target `key` and returns its warm-ups in seconds, newest last.

        Args:
            key: target.
            running: its pods as they are now.
            longest: seconds above which the times of a pod that was Ready when first seen are put down to a flap.
        """
        counted = pods.counted(running)
        with self._lock:
            register = self._registers.setdefault(key, _Register())
            fresh = [one for one in (_first_ready(register, pod, longest=longest) for pod in counted) if one]
            register.measured.extend(sorted(fresh, key=lambda warm_up: warm_up.ready))
            alive = {fields.uid(pod) for pod in counted}
            register.warming &= alive
            register.settled &= alive
            return tuple(warm_up.seconds for warm_up in register.measured)


def _first_ready(register: _Register, pod: Json, *, longest: float) -> WarmUp | None:
    """The pod's warm-up, the one time it can be told."""
    uid = fields.uid(pod)
    if uid in register.settled:
        return None
    if not pods.is_ready(pod):
        (register.settled if pods.fell(pod) else register.warming).add(uid)
        return None
    register.settled.add(uid)
    warm_up = pods.measure(pod)
    seen_warming = uid in register.warming
    register.warming.discard(uid)
    return warm_up if warm_up and (seen_warming or warm_up.seconds <= longest) else None
