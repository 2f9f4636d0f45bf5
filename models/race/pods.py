"""The pods of a deployment one by one, for policies that look at each."""

import functools
from collections.abc import Sequence
from typing import overload

import numpy as np

from models.fleet import layout
from models.fleet.deployment import Deployment, Phase
from models.fleet.pool import Pool
from models.fleet.seen import STALE
from models.policy.protocol import Pod


class Pods(Sequence[Pod]):
    """The pods one by one, looked at when a policy asks for them; before time passes."""

    def __init__(self, target: Deployment) -> None:
        self._target = target

    def __len__(self) -> int:
        return len(self._target.pods)

    @overload
    def __getitem__(self, index: int) -> Pod: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Pod]: ...
    def __getitem__(self, index: int | slice) -> Pod | Sequence[Pod]:
        return self._seen[index]

    @functools.cached_property
    def _seen(self) -> tuple[Pod, ...]:
        shown = _shown(self._target.pool)
        return tuple(
            Pod(
                str(pod.number),
                ready=pod.phase is Phase.READY,
                pending=pod.phase is Phase.PENDING,
                deleting=pod.phase not in (Phase.READY, Phase.PENDING, Phase.STARTING),
                **shown.get(pod.slot, {}),
            )
            for pod in self._target.pods
        )


def _shown(pool: Pool) -> dict[int, dict[str, float]]:
    """What the newest scrape of each ready replica said, by slot; without those it missed."""
    m, interval = pool.memory, pool.settings.scrape_interval
    if interval is None:
        return {}
    slots = np.flatnonzero(m.replicas["phase"] == layout.READY)
    own = m.scrapes[slots, :, layout.POD] == m.replicas["pod"][slots][:, None]
    at = np.where(own, m.scrapes[slots, :, layout.AT], -np.inf)
    last = m.scrapes[slots, at.argmax(axis=1)] if len(slots) else np.empty((0, layout.SCRAPE_COLUMNS))
    fresh = pool.now - at.max(axis=1, initial=-np.inf) <= STALE * interval
    return {
        int(slot): {
            "running": float(row[layout.SEEN_RUNNING]),
            "waiting": float(row[layout.SEEN_WAITING]),
            "kv_usage": float(row[layout.SEEN_KV]),
        }
        for slot, row, known in zip(slots, last, fresh, strict=True)
        if known
    }
