"""Several pools on the same GPUs: who gets one when it is free."""

import math
from collections.abc import Mapping

from models.fleet.deployment import Deployment

TICK = 1.0  # seconds between two looks of the scheduler at pods that wait for a GPU


class Cluster:
    """Deployments by name, and how many GPUs there are of each kind (None: as many as are asked for).

    Time passes for all of them together. A freed GPU is given out at the next full second, the oldest pod first, so
    that it does not matter in which pieces one advances.
    """

    def __init__(self, deployments: Mapping[str, Deployment], *, gpus: Mapping[str, int] | None = None) -> None:
        if not deployments:
            raise ValueError("a cluster needs at least one deployment")
        starts = {deployment.pool.now for deployment in deployments.values()}
        if len(starts) > 1:
            raise ValueError(f"the pools start at different times: {sorted(starts)} s")
        self.deployments = dict(deployments)
        self._gpus = gpus
        self.now = starts.pop()

    def scale(self, name: str, replicas: int) -> None:
        """Sets the number of pods of a deployment, now."""
        self.deployments[name].scale(replicas)
        self._bind()

    def advance(self, to: float) -> None:
        """Lets time pass until `to`, seconds. Raises ValueError when that lies in the past."""
        if to < self.now:
            raise ValueError(f"cannot go back from {self.now} s to {to} s")
        while self.now < to:
            waiting = any(deployment.pending for deployment in self.deployments.values())
            tick = (math.floor(self.now / TICK) + 1) * TICK
            stop = min(to, tick) if waiting else to
            for deployment in self.deployments.values():
                deployment.advance(stop)
            self.now = stop
            if waiting and stop == tick:
                self._bind()

    def free(self, kind: str) -> float:
        """GPUs of a kind that nobody holds; infinite where they are not limited."""
        if self._gpus is None:
            return math.inf
        pools = self.deployments.values()
        return self._gpus.get(kind, 0) - sum(each.holding for each in pools if each.pool.profile.gpu == kind)

    def _bind(self) -> None:
        waiting = [(pod.created, place, pod.number) for place, each in enumerate(self.deployments.values())
                   for pod in each.pending]  # fmt: skip
        deployments = list(self.deployments.values())
        for _, place, number in sorted(waiting):
            deployment = deployments[place]
            if self.free(deployment.pool.profile.gpu) >= deployment.pool.profile.gpus:
                deployment.bind(next(pod for pod in deployment.pending if pod.number == number))
