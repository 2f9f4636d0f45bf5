"""What a replica sustains, learned while it serves: readings of a target -> the profile it is planned with."""

import dataclasses

from models.capacity import trusting
from models.capacity.observing import Observed, Observer, Sight
from models.capacity.sizes import BySize
from models.capacity.trusting import Chosen, Learn
from models.signals import Known, Signal
from predictor.board import Entry
from predictor.ports import MIXED_GPUS, Workload
from predictor.targets import Target

DIGITS = 6  # after the point, of figures that are compared


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What was seen was seen of such a replica, under such an objective; of another it says nothing.

    Attributes:
        ttft: p95 of the time to the first token to keep to, seconds.
        concurrency: requests in flight that a replica was configured for.
        throughput: requests per second, as configured.
        kv_tokens: KV-cache capacity in tokens, as configured.
        tokens_in: prompt tokens per second, as configured.
        tokens_out: generated tokens per second, as configured.
        by_size: what the load tests say of requests of other sizes; empty without.
    """

    ttft: float | None
    concurrency: float
    throughput: float | None = None
    kv_tokens: float | None = None
    tokens_in: float | None = None
    tokens_out: float | None = None
    by_size: tuple[float, ...] = ()


def terms(target: Target) -> Terms:
    """Those of a target; who changes the figures of its replicas has other replicas now."""
    given = target.objectives.profile
    return Terms(
        target.learning.ttft,
        given.concurrency,
        given.throughput,
        given.kv_tokens,
        given.tokens_in,
        given.tokens_out,
        _figures(given.by_size),
    )


def _figures(given: BySize | None) -> tuple[float, ...]:
    """What is planned with of load tests; rounded, as another version of a solver differs in the last of 16 digits."""
    if given is None:
        return ()
    sizes = (given.tested, given.least, given.most)
    lengths = [length for one in sizes for length in (one.prompt, one.output)]
    return tuple(round(figure, DIGITS) for figure in (*lengths, *given.throughput, *given.concurrency))


def replica(workload: Workload) -> str:
    """What tells one kind of replica from another: the type of GPU, and their number where there are several."""
    return f"{workload.gpus} x {workload.gpu}" if workload.gpus > 1 else workload.gpu


def learn(entry: Entry, workload: Workload, *, now: float) -> Chosen:
    """The profile to plan with, after what is seen now (Unix seconds) was taken in.

    Nothing is seen of a fleet that changes: during a rollout, while replicas warm, and on GPUs of several types, of
    which nobody could tell which one was overloaded.
    """
    given = entry.target.learning
    if given.ttft is not None and given.learn is not Learn.OFF:
        observer = entry.observers.setdefault(replica(workload), Observer(objective=given.ttft))
        sight = _sight(entry, workload, now=now)
        if sight is not None and workload.gpu != MIXED_GPUS:
            observer.see(sight)
    return known(entry, workload)


def known(entry: Entry, workload: Workload) -> Chosen:
    """The profile to plan with, by what was seen so far."""
    given = entry.target.learning
    observer = entry.observers.get(replica(workload)) if given.ttft is not None else None
    seen = observer.observed() if observer else None
    return trusting.choose(entry.target.objectives.profile, seen, learn=given.learn, headroom=given.headroom)


def observed(entry: Entry) -> Observed | None:
    """What was seen on the GPUs in use; None where nothing is looked at."""
    workload = entry.workload
    observer = entry.observers.get(replica(workload)) if isinstance(workload, Workload) else None
    return observer.observed() if observer else None


def _sight(entry: Entry, workload: Workload, *, now: float) -> Sight | None:
    values = [entry.readings.get(signal) for signal in (Signal.IN_FLIGHT, Signal.WAITING, Signal.TTFT_P95)]
    known = [one.value for one in values if isinstance(one, Known)]
    supply = workload.supply
    if len(known) < len(values) or supply.ready < 1 or supply.warming or workload.rollout:
        return None
    running, waiting, ttft = known
    return Sight(now, (running + waiting) / supply.ready / _relative(entry), supply.ready, ttft)


def _relative(entry: Entry) -> float:
    """How many requests as large as now a replica holds over those of the load test, which votes are counted in."""
    by_size, now = entry.target.objectives.profile.by_size, entry.sizes
    return 1.0 if by_size is None or now is None else by_size.relative(now)[1]
