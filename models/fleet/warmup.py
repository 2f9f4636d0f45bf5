"""How long a replica takes from being asked for to serving, phase by phase, and what can go wrong meanwhile."""

import dataclasses

import numpy as np

BACK_OFF, LONGEST_BACK_OFF, FORGIVEN = 10.0, 300.0, 600.0  # seconds, the kubelet's


@dataclasses.dataclass(frozen=True, slots=True)
class Drawn:
    """The start of one pod, seconds from its GPU being free: when it serves, and how long it then lives."""

    schedule: float
    node: float
    image: float
    weights: float
    engine: float
    lives: float
    stuck: float

    @property
    def total(self) -> float:
        """Seconds from the GPU to the first Ready."""
        return sum(seconds for _, seconds in self.phases)

    @property
    def phases(self) -> tuple[tuple[str, float], ...]:
        """What happens until the first Ready, in order, with its seconds."""
        names = ("stuck", "schedule", "node", "image", "weights", "engine")
        return tuple((name, getattr(self, name)) for name in names)

    @property
    def without_container(self) -> float:
        """Seconds from the GPU until a container runs; Kubernetes calls the pod Pending until then."""
        return self.stuck + self.schedule + self.node + self.image

    def at(self, passed: float) -> str:
        """The phase after so many seconds; the last one for good."""
        for name, seconds in self.phases:
            passed -= seconds
            if passed < 0:
                return name
        return "engine"


@dataclasses.dataclass(slots=True)
class BackOff:
    """How long the kubelet waits before it starts a container again: CrashLoopBackOff, of each container for itself.

    At once after the first crash, then 10 s, doubling up to 5 min; forgotten when the container ran for 10 min.

    Attributes:
        crashes: in a row.
    """

    crashes: int = 0

    def after(self, ran: float) -> float:
        """Seconds until the next start, where the container ran for `ran` seconds before it crashed."""
        self.crashes = 1 if ran >= FORGIVEN else self.crashes + 1
        again = self.crashes - 2
        return 0.0 if again < 0 else min(BACK_OFF * 2.0 ** min(again, 10), LONGEST_BACK_OFF)


@dataclasses.dataclass(frozen=True, slots=True)
class WarmUp:
    """Phases of a start. The defaults are an assumption, made from published cold starts of vLLM.

    Attributes:
        schedule: seconds until the scheduler has bound the pod, drawn evenly between the two.
        node: median seconds for a new node, or 0 where nodes are there; lognormal.
        node_sigma: spread of its logarithm.
        image: seconds to pull the image, drawn evenly between the two; (0, 0) where it is cached.
        read: bytes a second at which weights are read, drawn evenly between the two.
        engine: seconds for the engine: 35 with its compile caches, 90 without.
        jitter: coefficient of variation of weights and engine.
        slow_share: share of pods that are slow.
        slow_factor: how much longer those take.
        stuck_share: share of pods that stay Pending although there is a GPU.
        stuck_for: how long, seconds.
        mean_life: mean seconds until a ready replica crashes; None for never.
    """

    schedule: tuple[float, float] = (1.0, 5.0)
    node: float = 0.0
    node_sigma: float = 0.25
    image: tuple[float, float] = (0.0, 0.0)
    read: tuple[float, float] = (1.5e9, 2.5e9)
    engine: float = 35.0
    jitter: float = 0.15
    slow_share: float = 0.0
    slow_factor: float = 3.0
    stuck_share: float = 0.0
    stuck_for: float = 1800.0
    mean_life: float | None = None

    def __post_init__(self) -> None:
        for name in ("node", "node_sigma", "engine", "jitter", "stuck_for"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must not be negative")
        for name in ("slow_share", "stuck_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must lie in 0..1")
        if self.read[0] <= 0 or self.slow_factor < 1:
            raise ValueError("read must be positive and slow_factor at least 1")

    def draw(self, rng: np.random.Generator, weights_bytes: float) -> Drawn:
        """One start. The same number of draws each time, so that one setting does not shift the others."""
        even, normal = rng.random(6), rng.standard_normal(3)
        slow = self.slow_factor if even[3] < self.slow_share else 1.0
        wobble = np.exp(self.jitter * normal[1:]) * slow
        return Drawn(
            schedule=float(np.interp(even[0], (0, 1), self.schedule)),
            node=float(self.node * np.exp(self.node_sigma * normal[0])),
            image=float(np.interp(even[1], (0, 1), self.image)),
            weights=float(weights_bytes / np.interp(even[2], (0, 1), self.read) * wobble[0]),
            engine=float(self.engine * wobble[1]),
            stuck=self.stuck_for if even[4] < self.stuck_share else 0.0,
            lives=np.inf if self.mean_life is None else float(-self.mean_life * np.log1p(-even[5])),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class FixedWarmUp:
    """A start that always takes the same, for tests and for comparing policies at a given warm-up."""

    seconds: float
    mean_life: float | None = None

    def draw(self, rng: np.random.Generator, weights_bytes: float) -> Drawn:
        """One start; the weights are within the time given."""
        del weights_bytes
        lives = np.inf if self.mean_life is None else float(rng.exponential(self.mean_life))
        return Drawn(schedule=0, node=0, image=0, weights=0, engine=self.seconds, lives=lives, stuck=0)
