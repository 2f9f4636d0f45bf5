"""Pods of one pool: asked for, Pending until a GPU is free, starting, ready, draining, gone; and what they cost."""

import dataclasses
import enum
from typing import Protocol

import numpy as np

from models.fleet.pool import LifeEvent, Pool
from models.fleet.warmup import Drawn


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
    """One pod; times in seconds."""

    number: int
    created: float
    phase: Phase = Phase.PENDING
    bound: float = np.nan
    ready: float = np.nan
    slot: int = -1
    served: bool = False
    start: Drawn | None = None

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
        """No pods yet; `grace` is how long a draining one may take, seconds."""
        self.pool = pool
        self.wanted = 0
        self.pods: list[Pod] = []
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
            self.pods.append(Pod(self._numbers, self.pool.now))
            self._numbers += 1
        order = (Phase.PENDING, Phase.STARTING, Phase.READY)
        leaving = max(len(living) - replicas, 0)
        for pod in sorted(living, key=lambda pod: (order.index(pod.phase), -pod.number))[:leaving]:
            self._remove(pod)

    def stand(self, replicas: int) -> None:
        """So many pods that were ready before time began: they cost from now on, and are no starts."""
        for _ in range(replicas):
            pod = Pod(self._numbers, self.pool.now, Phase.STARTING, bound=self.pool.now, ready=self.pool.now)
            pod.slot = self.pool.start(ready_at=self.pool.now)
            self.pods.append(pod)
            self._numbers += 1
        self.wanted += replicas

    def _remove(self, pod: Pod) -> None:
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
        return [pod for pod in self.pods if pod.phase is Phase.PENDING]

    @property
    def holding(self) -> int:
        """GPUs in use."""
        return (len(self.pods) - len(self.pending)) * self.pool.profile.gpus

    def bind(self, pod: Pod) -> None:
        """A GPU is free for the pod; it starts."""
        pod.bound = self.pool.now
        pod.start = self._draw(pod.number)
        self._begin(pod, pod.start.total, pod.start.lives)

    def _draw(self, number: int, life: int = 0) -> Drawn:
        rng = np.random.default_rng([*self._seed, number, life])
        return self._start.draw(rng, self.pool.profile.weights_bytes)

    def _begin(self, pod: Pod, takes: float, lives: float) -> None:
        ready_at = self.pool.now + takes
        pod.phase = Phase.STARTING
        pod.slot = self.pool.start(ready_at=ready_at, crash_at=ready_at + lives)
        self._starts += 1

    def advance(self, to: float) -> None:
        """Lets time pass until `to`, and sees to whatever happens to the pods meanwhile."""
        while events := self.pool.advance(to):
            for event in events:
                self._see(event)

    def _see(self, event: LifeEvent) -> None:
        pod = next(pod for pod in self.pods if pod.slot == event.slot and pod.phase is not Phase.PENDING)
        if event.kind == "ready":
            pod.phase = Phase.READY
            if np.isnan(pod.ready):
                pod.ready = event.at
                self.warm_ups.append(event.at - pod.created)
            return
        pod.served = pod.served or event.served
        if event.kind == "crashed":
            self._crashes += 1
            drawn = self._draw(pod.number, self._crashes)
            # The container restarts on its node: image and scheduling are done.
            self._begin(pod, drawn.weights + drawn.engine, drawn.lives)
        else:
            self.pods.remove(pod)
            self._wasted += pod.start is not None and not pod.served
            self._ended["replica"] += event.at - pod.bound
            self._ended["pending"] += pod.bound - pod.created
            self._ended["warming"] += (event.at if np.isnan(pod.ready) else pod.ready) - pod.bound

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
