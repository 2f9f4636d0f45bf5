"""Pods of one pool: asked for, Pending until a GPU is free, starting, ready, draining, gone; and what they cost."""

import dataclasses
import enum
import itertools
from typing import Protocol

import numpy as np

from models.fleet.pool import LifeEvent, Pool
from models.fleet.warmup import BackOff, Drawn

DAY = 86400.0


class Start(Protocol):
    """Draws how a pod starts."""

    def draw(self, rng: np.random.Generator, weights_bytes: float) -> Drawn:
        """One start."""
        ...


class Phase(enum.Enum):
    """Where a pod is in its life."""

    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


@dataclasses.dataclass(slots=True)
class Pod:
    """One pod; times in seconds. Its place is the lowest number that no other replica holds: that of a node, say."""

    number: int
    place: int
    created: float
    phase: Phase = Phase.PENDING
    bound: float = np.nan
    ready: float = np.nan
    slot: int = -1
    served: bool = False
    start: Drawn | None = None
    crashes: int = 0
    began: float = np.nan  # when its container last started
    back_off: BackOff = dataclasses.field(default_factory=BackOff)

    def waits(self, now: float) -> bool:
        """Whether none of its containers runs yet, for want of a GPU, a node or an image: Pending, to Kubernetes."""
        if self.phase is not Phase.STARTING:
            return self.phase is Phase.PENDING
        return self.start is not None and now - self.bound < self.start.without_container

    def doing(self, now: float) -> str:
        """Its phase, and while it starts for the first time what it waits for: image, weights, engine and so on."""
        if self.phase is not Phase.STARTING or self.start is None:
            return self.phase.value
        return self.start.at(now - self.bound)


@dataclasses.dataclass(frozen=True, slots=True)
class Costs:
    """What the pods of a pool cost so far.

    Attributes:
        replica_seconds: from the GPU to the end, warming and draining counted.
        warming_seconds: of these, before the first Ready.
        pending_seconds: waiting for a GPU; on top.
        gpu_seconds: replica_seconds times the GPUs of a replica.
        starts: pods that got a GPU, restarts after a crash included.
        wasted: of these, gone without having been sent a single request.
        crashes: replicas that ended by themselves.
    """

    replica_seconds: float
    warming_seconds: float
    pending_seconds: float
    gpu_seconds: float
    starts: int
    wasted: int
    crashes: int


class Deployment:
    """A pool with a number of pods that somebody sets."""

    def __init__(self, pool: Pool, start: Start, *, seed: tuple[int, ...], grace: float = 300.0) -> None:
        """No pods yet; `grace` is how long a draining one may take, seconds.

        How long a pod takes to start follows from the seed, its place, the day and how often it has crashed alone, so
        that whoever asks for a replica earlier has it no later. Drawn in the order of the starts, two fleets under two
        policies would meet other warm-ups from the first difference on, and the luckier one would look like the better
        policy.
        """
        self.pool = pool
        self.wanted = 0
        self.pods: list[Pod] = []
        self.changes = 0  # goes up whenever a pod comes, goes or is in another phase
        self._pending: tuple[int, list[Pod]] = (-1, [])  # as of so many changes
        self._start = start
        self._seed = seed
        self._grace = grace
        self.warm_ups: list[float] = []  # seconds from asked for to the first Ready, of all that got there
        self._numbers = 0
        self._ended = {"replica": 0.0, "warming": 0.0, "pending": 0.0}
        self._starts = self._wasted = self._crashes = 0

    def scale(self, replicas: int) -> None:
        """Sets the number of pods. Which go first: Pending, then starting, then ready; in each the newest."""
        if replicas < 0:
            raise ValueError(f"replicas is {replicas!r}: must not be negative")
        self.wanted = replicas
        living = [pod for pod in self.pods if pod.phase is not Phase.DRAINING]
        for _ in range(replicas - len(living)):
            self._add()
        order = (Phase.PENDING, Phase.STARTING, Phase.READY)
        leaving = max(len(living) - replicas, 0)
        for pod in sorted(living, key=lambda pod: (order.index(pod.phase), -pod.number))[:leaving]:
            self._remove(pod)

    def stand(self, replicas: int) -> None:
        """So many pods that were ready before time began: they cost from now on, and are no starts."""
        for _ in range(replicas):
            pod = self._add()
            pod.phase, pod.bound, pod.ready = Phase.STARTING, self.pool.now, self.pool.now
            pod.began = pod.bound
            pod.slot = self.pool.start(ready_at=self.pool.now)
        self.changes += 1
        self.wanted += replicas

    def _add(self) -> Pod:
        held = {pod.place for pod in self.pods if pod.phase is not Phase.DRAINING}
        place = next(place for place in itertools.count() if place not in held)
        pod = Pod(self._numbers, place, self.pool.now)
        self.pods.append(pod)
        self._numbers += 1
        self.changes += 1
        return pod

    def _remove(self, pod: Pod) -> None:
        self.changes += 1
        if pod.phase is Phase.READY:
            pod.phase = Phase.DRAINING
            self.pool.drain(pod.slot, until=self.pool.now + self._grace)
        elif pod.phase is Phase.STARTING:
            pod.phase = Phase.DRAINING
            self.pool.kill(pod.slot)
        else:
            self._ended["pending"] += self.pool.now - pod.created
            self.pods.remove(pod)

    @property
    def pending(self) -> list[Pod]:
        """Pods without a GPU, oldest first."""
        if self._pending[0] != self.changes:
            self._pending = (self.changes, [pod for pod in self.pods if pod.phase is Phase.PENDING])
        return self._pending[1]

    @property
    def holding(self) -> int:
        """GPUs in use."""
        return (len(self.pods) - len(self.pending)) * self.pool.profile.gpus

    def bind(self, pod: Pod) -> None:
        """A GPU is free for the pod; it starts."""
        pod.bound = self.pool.now
        pod.start = self._draw(pod)
        pod.began = pod.bound + pod.start.without_container
        self._begin(pod, pod.start.total, pod.start.lives)

    def _draw(self, pod: Pod, life: int = 0) -> Drawn:
        rng = np.random.default_rng([*self._seed, pod.place, int(self.pool.now // DAY) % 2**31, life])
        return self._start.draw(rng, self.pool.profile.weights_bytes)

    def _begin(self, pod: Pod, takes: float, lives: float) -> None:
        ready_at = self.pool.now + takes
        pod.phase = Phase.STARTING
        self.changes += 1
        pod.slot = self.pool.start(ready_at=ready_at, crash_at=ready_at + lives)
        self._starts += 1

    def advance(self, to: float) -> None:
        """Lets time pass until `to`, and sees to whatever happens to the pods meanwhile."""
        while events := self.pool.advance(to):
            for event in events:
                self._see(event)

    def _see(self, event: LifeEvent) -> None:
        self.changes += 1
        pod = next(pod for pod in self.pods if pod.slot == event.slot and pod.phase is not Phase.PENDING)
        if event.kind == "ready":
            pod.phase = Phase.READY
            if np.isnan(pod.ready):
                pod.ready = event.at
                self.warm_ups.append(event.at - pod.created)
            return
        pod.served = pod.served or event.served
        if event.kind == "crashed":
            self._restart(pod, event.at)
        else:
            self.pods.remove(pod)
            self._wasted += pod.start is not None and not pod.served
            self._ended["replica"] += event.at - pod.bound
            self._ended["pending"] += pod.bound - pod.created
            self._ended["warming"] += (event.at if np.isnan(pod.ready) else pod.ready) - pod.bound

    def _restart(self, pod: Pod, at: float) -> None:
        """A container that crashed starts again on its node: image and scheduling are done, but the kubelet waits."""
        self._crashes += 1
        pod.crashes += 1
        waits = pod.back_off.after(at - pod.began)
        pod.began = at + waits
        drawn = self._draw(pod, pod.crashes)
        self._begin(pod, waits + drawn.weights + drawn.engine, drawn.lives)

    def costs(self) -> Costs:
        """What the pods cost so far."""
        now = self.pool.now
        bound = [pod for pod in self.pods if pod.phase is not Phase.PENDING]
        replica = self._ended["replica"] + sum(now - pod.bound for pod in bound)
        warming = sum((now if np.isnan(pod.ready) else pod.ready) - pod.bound for pod in bound)
        pending = sum((now if pod.phase is Phase.PENDING else pod.bound) - pod.created for pod in self.pods)
        return Costs(
            replica_seconds=replica,
            warming_seconds=self._ended["warming"] + warming,
            pending_seconds=self._ended["pending"] + pending,
            gpu_seconds=replica * self.pool.profile.gpus,
            starts=self._starts,
            wasted=self._wasted,
            crashes=self._crashes,
        )
