"""What each rule is good for when something it stands for goes wrong: Floorcast as it is set up, told a wrong thing.

A race in which the forecast and the load test are right shows nothing of the rules that answer what they miss.
"""

import dataclasses
from collections.abc import Sequence

from benchmarks.scoreboard.traces import Prepared
from models.race import ours
from models.race.foresight import Foresight
from models.race.loadtest import Knee

AS_IT_IS, HALVED, SILENT, OVERSTATED = "as it is", "forecast halved", "no forecast", "capacity doubled"
MISTAKES = (AS_IT_IS, HALVED, SILENT, OVERSTATED)
ALL_RULES = ""
PREFIX = "mistaken:"


@dataclasses.dataclass(frozen=True, slots=True)
class Mistaken:
    """Floorcast at its default setting.

    Attributes:
        mistake: what it is told wrong, one of `MISTAKES`.
        without: name of the rule that is left out; `ALL_RULES` where none is.
    """

    mistake: str
    without: str = ALL_RULES

    @property
    def name(self) -> str:
        """Under which its runs are kept; apart from the policies of the scoreboard."""
        return f"{PREFIX}{self.mistake}:{self.without}"

    def make(self, trace: Prepared, foreseen: Foresight, lead: float) -> ours.Floorcast:
        """The autoscaler; `lead` is the warm-up, seconds."""
        return ours.Floorcast(
            ours.objectives(_knee(trace.knee, self.mistake), ours.HEADROOM),
            _foresight(foreseen, self.mistake),
            lead=lead,
            ttft=trace.knee.objective,
            without=self.without,
        )


def every(rules: Sequence[str]) -> tuple[Mistaken, ...]:
    """With all the rules and without each, under each mistake."""
    return tuple(Mistaken(mistake, without) for mistake in MISTAKES for without in (ALL_RULES, *rules))


def names(rules: Sequence[str]) -> tuple[str, ...]:
    """Their names."""
    return tuple(one.name for one in every(rules))


def _foresight(foreseen: Foresight, mistake: str) -> Foresight | None:
    if mistake == SILENT:
        return None
    if mistake == HALVED:
        return dataclasses.replace(foreseen, raising=foreseen.raising / 2, lowering=foreseen.lowering / 2)
    return foreseen


def _knee(knee: Knee, mistake: str) -> Knee:
    """A load test that flattered: twice the throughput and twice the concurrency, each request as fast as before."""
    if mistake != OVERSTATED:
        return knee
    return dataclasses.replace(knee, concurrency=2 * knee.concurrency, rate=2 * knee.rate)
