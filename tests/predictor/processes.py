"""A process that learns and keeps what it has learned, for the tests of what outlives it."""

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.capacity import observing, sizes
from models.capacity.observing import Observer, Votes
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes
from models.capacity.trusting import Learn
from models.capacity.warmup import Start
from predictor.board import Board
from predictor.cluster.warmups import Remembered, WarmUps
from predictor.keeping import Keeping, Place
from predictor.targets import Learning, Target
from tests.fakes.stage import TARGET
from tests.fakes.world import FakeClock

LEARNS = dataclasses.replace(TARGET, learning=Learning(ttft=2.0, learn=Learn.BOTH))
KEY, NOW = TARGET.key, FakeClock().now()
VOTES = Votes(NOW, {observing.RATIO**30: (8.0, 1.0), observing.RATIO**42: (0.5, 6.0)})
STARTS = Remembered(
    NOW,
    done=(Start(NOW - 900, NOW - 890, NOW - 700, NOW - 600, gpu="H100"), Start(NOW - 800, ready=NOW - 650)),
    left=(Start(NOW - 400, left=NOW - 300),),
    warming={"u2": Start(NOW - 50, NOW - 49)},
    settled=frozenset({"u0", "u1"}),
)


def sized(**changes: float) -> Profile:
    """A profile of load tests, of which the last differs by `changes`."""
    last = {"prompt": 2000, "output": 200, "throughput": 2.0, "concurrency": 30, **changes}
    tests = [LoadTest(Sizes(1000, output), 4 * 200 / output, 40) for output in (200, 400)]
    tests.append(LoadTest(Sizes(last["prompt"], last["output"]), last["throughput"], last["concurrency"]))
    return Profile(40, throughput=4, by_size=sizes.fitted(tests))


class Process:
    """One process: a board, what is known of starts, and the file."""

    def __init__(
        self, folder: Path, *targets: Target, at: float = NOW, host: str = "pod-a", leads: bool = True
    ) -> None:
        self.clock, self.leads = FakeClock(at), leads
        self.board, self.starts = Board(targets or (LEARNS,)), WarmUps()
        place = Place(lambda: contextlib.nullcontext(self.board), self.starts, lambda: self.leads, self.clock)
        self.keeping = Keeping(folder, place, writer=host)
        self.keeping.give(self.board)

    def learns(self, votes: Votes = VOTES, starts: Remembered = STARTS) -> "Process":
        self.board.entries[KEY].observers = {"H100": Observer(objective=2.0, votes=votes)}
        self.starts = WarmUps()
        self.starts.recall(KEY, starts)
        self.keeping._place = dataclasses.replace(self.keeping._place, starts=self.starts)
        return self

    def saves(self) -> "Process":
        self.keeping.save()
        return self

    @property
    def votes(self) -> Mapping[str, Votes | None]:
        return {replica: observer.votes() for replica, observer in self.board.entries[KEY].observers.items()}


def learned(folder: Path, **more: Any) -> Process:  # noqa: ANN401  (as of Process)
    return Process(folder, **more).learns().saves()
