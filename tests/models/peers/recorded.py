"""What a real HPA was shown and what it wrote, and `models.peers` on the same metrics at the same times."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path

from models.peers import behavior
from models.peers.hpa import Hpa, HpaSettings
from models.policy.context import Supply
from models.policy.protocol import Observation
from models.signals import Cause, Known, Signal, Unknown

SYNC = 2.0  # seconds
TARGET = 4.0
REPLICAS, MAXIMUM = 2, 12  # at the start, which is the minimum too, and at most
LATE = 7.0  # seconds by which a change may come late on a noisy machine: three syncs and a second
PODS = behavior.PolicyKind.PODS
RULES = behavior.Behavior(
    up=behavior.Direction(0.0, (behavior.Policy(PODS, 2, 10.0),)),
    down=behavior.Direction(6.0, (behavior.Policy(PODS, 3, 8.0),)),
)
PLAIN = HpaSettings(Signal.WAITING, TARGET, stabilisation=10.0)  # no section `behavior`
LIMITED = dataclasses.replace(PLAIN, rules=RULES)  # 2 pods in 10 s up, 3 pods in 8 s down after 6 s
SETTINGS = {"plain": PLAIN, "limited": LIMITED}


@dataclasses.dataclass(frozen=True)
class Shown:
    """A metric's value and the HPA's minimum from a time on, in seconds; None is a metric that fails."""

    at: float
    value: float | None
    minimum: int


@dataclasses.dataclass(frozen=True)
class Change:
    """Replicas that were written, and when, in seconds."""

    at: float
    replicas: int


@dataclasses.dataclass(frozen=True)
class Recording:
    """One HPA of a name in SETTINGS: what it was shown until `end`, and what it wrote."""

    name: str
    shown: tuple[Shown, ...]
    end: float
    written: tuple[Change, ...]

    @property
    def replayed(self) -> tuple[Change, ...]:
        """What the model writes: a sync a second after each first value was shown, and each SYNC."""
        rule, replicas, changes = Hpa(SETTINGS[self.name]), REPLICAS, []
        now, number = self.shown[0].at + 1, 0
        while now < self.end:
            while number + 1 < len(self.shown) and self.shown[number + 1].at <= now:
                number += 1
            decided = rule.decide(self._seen(self.shown[number], now, replicas)).replicas
            if decided != replicas:
                changes.append(Change(now, decided))
            replicas, now = decided, now + SYNC
        return tuple(changes)

    @staticmethod
    def _seen(shown: Shown, now: float, replicas: int) -> Observation:
        reading = Unknown(Cause.SOURCE_DOWN) if shown.value is None else Known(shown.value, now)
        return Observation(now, replicas, shown.minimum, MAXIMUM, Supply(replicas), {Signal.WAITING: reading})

    def by_step(self, changes: Sequence[Change]) -> list[tuple[int, ...]]:
        """The replicas written while each value was shown."""
        starts = [one.at for one in self.shown]
        ends = [*starts[1:], math.inf]
        return [
            tuple(c.replicas for c in changes if start <= c.at < end) for start, end in zip(starts, ends, strict=True)
        ]

    @property
    def lateness(self) -> list[float]:
        """By how many seconds each real change came after the model's."""
        return [real.at - model.at for real, model in zip(self.written, self.replayed, strict=True)]

    def save(self, folder: Path) -> None:
        """Writes NAME.json, with times since the first value was shown, to the millisecond."""
        start = self.shown[0].at
        told = {
            "name": self.name,
            "end": round(self.end - start, 3),
            "shown": [{**dataclasses.asdict(one), "at": round(one.at - start, 3)} for one in self.shown],
            "written": [{**dataclasses.asdict(one), "at": round(one.at - start, 3)} for one in self.written],
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> Recording:
    """A recording that was saved."""
    told = json.loads(path.read_text(encoding="utf-8"))
    return Recording(
        told["name"],
        tuple(Shown(**one) for one in told["shown"]),
        told["end"],
        tuple(Change(**one) for one in told["written"]),
    )
