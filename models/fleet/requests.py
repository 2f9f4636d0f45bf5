"""Requests as arrays: what a workload is made of."""

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from models.fleet.layout import Chunk
from models.series import Floats

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Requests in order of time; arrays of shape (n,).

    Attributes:
        times: arrival, seconds, not falling.
        prompts: prompt tokens, at least 1.
        outputs: output tokens, at least 1.
        sessions: the conversation a request belongs to, or -1; given or all -1.
        shared: prompt tokens that the session's earlier turns held already; given or all 0.
    """

    times: Floats
    prompts: Ints
    outputs: Ints
    sessions: Ints | None = None
    shared: Ints | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", np.ascontiguousarray(self.times, dtype=np.float64))
        for name, default in (("prompts", 1), ("outputs", 1), ("sessions", -1), ("shared", 0)):
            given = getattr(self, name)
            values = np.full(len(self), default) if given is None else given
            object.__setattr__(self, name, np.ascontiguousarray(values, dtype=np.int64))
            if len(getattr(self, name)) != len(self):
                raise ValueError(f"{name} has {len(getattr(self, name))} values for {len(self)} times")
        if len(self) == 0:
            return
        if not np.isfinite(self.times).all() or (np.diff(self.times) < 0).any():
            raise ValueError("times must be finite and must not fall")
        if min(self.prompts.min(), self.outputs.min()) < 1:
            raise ValueError("a request has no prompt or no output: both are at least 1 token")
        if max(self.prompts.max(), self.outputs.max()) > 1 << 28:
            raise ValueError("a request is longer than 2^28 tokens")

    def __len__(self) -> int:
        return len(self.times)

    def chunk(self) -> Chunk:
        """As the compiled loop takes it."""
        return Chunk(self.times, self.prompts, self.outputs, self._sessions, self._shared)

    @property
    def _sessions(self) -> Ints:
        return self.sessions if self.sessions is not None else np.full(len(self), -1, np.int64)

    @property
    def _shared(self) -> Ints:
        return self.shared if self.shared is not None else np.zeros(len(self), np.int64)

    def between(self, start: float, end: float) -> "Requests":
        """Those at or after `start` and before `end`, seconds."""
        first, last = np.searchsorted(self.times, [start, end])
        return self.select(slice(int(first), int(last)))

    def select(self, which: slice | npt.NDArray[np.bool_] | Ints) -> "Requests":
        """Some of them, by slice, mask or index; the order must not fall."""
        return Requests(
            self.times[which], self.prompts[which], self.outputs[which], self._sessions[which], self._shared[which]
        )

    def shifted(self, seconds: float) -> "Requests":
        """The same, later."""
        return dataclasses.replace(self, times=self.times + seconds)


def none() -> Requests:
    """No requests."""
    return Requests(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))


def joined(parts: Iterable[Requests]) -> Requests:
    """One after the other, in order of time."""
    every = list(parts)
    if not every:
        return none()
    columns = zip(*[part.chunk() for part in every], strict=True)
    return Requests(*[np.concatenate(column) for column in columns])
