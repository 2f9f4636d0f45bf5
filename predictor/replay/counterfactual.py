"""What Floorcast would have done in shadow mode, and what that would have spared or cost, from the journal.

Both courses of replicas are run on the simulated fleet under the same requests, drawn anew for each seed from the
arrivals that were recorded: the count that really was asked for, and the larger of it and Floorcast's floor (or the
floor alone where nothing else owns the count). The decisions are those that were taken; a floor that had been there
would have kept queues away that some of them answered, so the figures are rather too high than too low in cost.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from models.fleet.profiles import LLAMA_8B_H100, Profile, StepLaw
from models.fleet.workload import Counts, FromCounts
from models.policy.decision import Decision, Reason
from models.policy.protocol import Observation
from models.race import running
from models.race.running import Course, Outcome
from models.series import Floats
from predictor.diary import SEEN, SEEN_EVERY
from predictor.errors import HistoryError
from predictor.ports import Owner

LONGEST_GAP = 600.0  # seconds for which the last record stands in; what is missing for longer is told
INTERVAL = 15.0  # seconds between two looks of a schedule
KNEE = 1.2  # requests in flight a simulated replica holds, over those it is planned for: the default headroom
PROMPT, OUTPUT = 1000.0, 200.0  # tokens of a request where no reading says
FEWEST = 15  # minutes
DURATION = 10.0  # seconds a request takes where nobody knows


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A target over time, minute by minute; arrays of shape (n,).

    Attributes:
        start: Unix time of the first minute, seconds.
        requests: arrived in each minute; NaN where not known.
        prompt: mean prompt tokens.
        output: mean output tokens.
        ran: replicas that were asked for.
        would: replicas that would have been.
        missing: share of the minutes without a record.
        replica: what is simulated for one of them.
        warm_up: seconds.
        gpus: of one replica; 1 where not known.
    """

    start: float
    requests: Floats
    prompt: Floats
    output: Floats
    ran: Floats
    would: Floats
    missing: float
    replica: Profile
    warm_up: float
    gpus: int


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """A mean over the seeds and the half-width of its 95 % interval."""

    mean: float
    error: float


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What came of both courses; differences are Floorcast's less what really ran, seed by seed.

    Attributes:
        hours: simulated.
        missing: share of them of which nothing was recorded.
        requests: that were served, mean over the seeds.
        ran: figures of what really ran, by name.
        would: of what would have.
        difference: of one less the other.
    """

    hours: float
    missing: float
    requests: float
    ran: Mapping[str, Figure]
    would: Mapping[str, Figure]
    difference: Mapping[str, Figure]


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """How it is simulated.

    Attributes:
        objective: seconds to the first token.
        price: of a GPU and hour.
        warm_up: seconds, where none was measured.
        seeds: how many times.
    """

    objective: float
    price: float
    warm_up: float
    seeds: int = 5

    def __post_init__(self) -> None:
        if self.seeds < 2:  # noqa: PLR2004  (an interval takes two)
            raise ValueError(f"seeds is {self.seeds!r}: an error bar takes at least 2")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """A policy that asks for what is written down, minute by minute."""

    counts: Floats

    def decide(self, observation: Observation) -> Decision:
        """The count of this minute."""
        place = min(int(observation.now // SEEN_EVERY), len(self.counts) - 1)
        count = int(self.counts[place])
        return Decision(observation.now, observation.replicas, count, count, Reason.AT_PLAN, "as recorded")


def recorded(records: Iterable[Mapping[str, Any]], *, warm_up: float, target: str) -> Recorded:
    """A target's minutes out of the journal.

    Raises:
        HistoryError: too few of them, or Floorcast ruled.
    """
    seen = [one for one in records if one.get("kind") == SEEN]
    if any(one["mode"] == "control" for one in seen):
        raise HistoryError(
            f"{target} was in control mode: what ran is what Floorcast did, and what would have been without it nobody"
            " knows; ask for a span of shadow mode"
        )
    if len(seen) < FEWEST:
        raise HistoryError(f"the journal has {len(seen)} minutes of {target} in that span, {FEWEST} are needed")
    start = math.floor(seen[0]["at"] / SEEN_EVERY) * SEEN_EVERY
    minutes = int((seen[-1]["at"] - start) // SEEN_EVERY) + 1
    rows: list[Mapping[str, Any] | None] = [None] * minutes
    for one in seen:
        rows[min(max(int((one["at"] - start) // SEEN_EVERY), 0), minutes - 1)] = one
    held = _held(rows)
    arrivals = np.array([0.0 if one is None else _signal(one, "arrivals") for one in held])
    if not any("arrivals" in one["signals"] for one in seen):
        raise HistoryError(f"the journal knows no arrivals of {target}: its engine's series do not tell them")
    last = seen[-1]
    prompt, output = (_per_request(held, arrivals, name, mean) for name, mean in _TOKENS)
    return Recorded(
        start=start,
        requests=arrivals * SEEN_EVERY,
        prompt=prompt,
        output=output,
        ran=_lasting([None if one is None else float(one["asked"]) for one in held]),
        would=_lasting([None if one is None else _would(one) for one in held]),
        missing=sum(one is None for one in held) / minutes,
        replica=replica(
            concurrency=last["concurrency"],
            duration=last["duration"] or DURATION,
            prompt=float(np.nanmean(prompt)),
            output=float(np.nanmean(output)),
        ),
        warm_up=last["warm_up"] or warm_up,
        gpus=max(int(last["gpus"]), 1),
    )


_TOKENS = (("tokens_in", PROMPT), ("tokens_out", OUTPUT))


def replica(*, concurrency: float, duration: float, prompt: float, output: float) -> Profile:
    """A simulated replica that holds what the target's is planned for, and takes as long for a request.

    The shape of its step law is that of Llama 8B on an H100; its speed and its batch are the target's. A request beyond
    the batch waits.
    """
    batch = max(math.ceil(concurrency * KNEE), 1)
    law, half = LLAMA_8B_H100.law, max(batch / 2, 1.0)
    step = law.step(decoding=half, context=half * (prompt + output / 2))
    slower = duration / max(output * step / 1e3, 1e-3)
    scaled = {field.name: getattr(law, field.name) * slower for field in dataclasses.fields(StepLaw)}
    return dataclasses.replace(
        LLAMA_8B_H100,
        name="as recorded",
        law=StepLaw(**{**scaled, "alpha0": law.alpha0}),
        kv_tokens=max(int(2 * batch * (prompt + output)), LLAMA_8B_H100.kv_tokens),
        token_budget=max(LLAMA_8B_H100.token_budget, batch + 1),
        max_num_seqs=batch,
        source="concurrency and duration of the target",
        calibrated=False,
    )


def run(given: Recorded, terms: Terms, *, tell: Callable[[float], None] = lambda _: None) -> Found:
    """Both courses, once for each seed; `tell` gets the share that is done."""
    pairs = []
    for seed in range(1, terms.seeds + 1):
        ran = _outcome(given, given.ran, terms, seed=seed)
        would = _outcome(given, given.would, terms, seed=seed)
        pairs.append((_figures(ran, given, terms), _figures(would, given, terms)))
        tell(seed / terms.seeds)
    names = list(pairs[0][0])
    return Found(
        hours=len(given.requests) * SEEN_EVERY / 3600,
        missing=given.missing,
        requests=float(np.mean([ran["requests"] for ran, _ in pairs])),
        ran={name: _mean([ran[name] for ran, _ in pairs]) for name in names},
        would={name: _mean([would[name] for _, would in pairs]) for name in names},
        difference={name: _mean([would[name] - ran[name] for ran, would in pairs]) for name in names},
    )


def _outcome(given: Recorded, counts: Floats, terms: Terms, *, seed: int) -> Outcome:
    end = len(given.requests) * SEEN_EVERY
    first = max(int(counts[0]), 0)
    course = Course(
        profile=given.replica,
        source=FromCounts(Counts(SEEN_EVERY, given.requests, given.prompt, given.output), seed=seed),
        start=0.0,
        end=end,
        warm_up=given.warm_up,
        objective=terms.objective,
        initial=first,
        minimum=0,
        maximum=max(int(max(given.ran.max(), given.would.max())), 1),
        timeout=max(60.0, 2 * terms.objective),
        settling=0.0,
        seed=seed,
    )
    return running.run(course, Schedule(counts), interval=INTERVAL)


def _figures(outcome: Outcome, given: Recorded, terms: Terms) -> dict[str, float]:
    return {
        "requests": float(outcome.requests),
        "missed": float(outcome.missed),
        "replica_hours": outcome.replica_hours,
        "warming_hours": outcome.warming_hours,
        "starts": float(outcome.starts),
        "cost": outcome.replica_hours * given.gpus * terms.price,
    }


# Two-sided 95 % quantiles of Student's t by degrees of freedom; the normal one beyond.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


def _mean(values: Sequence[float]) -> Figure:
    free = len(values) - 1
    student = _STUDENT[free - 1] if free <= len(_STUDENT) else 2.0
    return Figure(float(np.mean(values)), student * float(np.std(values, ddof=1)) / math.sqrt(len(values)))


def _held(rows: Sequence[Mapping[str, Any] | None]) -> list[Mapping[str, Any] | None]:
    """Gaps filled with the record before them, those up to LONGEST_GAP; None where there is none."""
    held: list[Mapping[str, Any] | None] = []
    age = 0.0
    for row in rows:
        age = 0.0 if row is not None else age + SEEN_EVERY
        before = held[-1] if held else None
        held.append(row if row is not None else before if age <= LONGEST_GAP else None)
    return held


def _signal(row: Mapping[str, Any] | None, name: str) -> float:
    return float(row["signals"].get(name, math.nan)) if row is not None else math.nan


def _lasting(counts: Sequence[float | None]) -> Floats:
    """Replicas stay as they were where nothing is recorded; the first minute always is."""
    lasting: list[float] = []
    for count in counts:
        lasting.append(lasting[-1] if count is None else count)
    return np.array(lasting)


def _would(row: Mapping[str, Any]) -> float:
    """Replicas under Floorcast: its floor lifts what an autoscaler asks for, and is the count where there is none."""
    floor, asked = float(row["floor"]), float(row["asked"])
    return floor if row["owner"] == Owner.SCALE else max(floor, asked)


def _per_request(rows: Sequence[Mapping[str, Any] | None], arrivals: Floats, name: str, otherwise: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.array([_signal(row, name) for row in rows]) / arrivals
    return np.asarray(np.where(np.isfinite(means) & (means >= 1), means, otherwise), dtype=np.float64)
