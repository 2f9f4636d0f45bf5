"""What a replica sustains, learned while it serves: readings of a target -> the profile it is planned with."""

from models.capacity import trusting
from models.capacity.observing import Observed, Observer, Sight
from models.capacity.trusting import Chosen, Learn
from models.signals import Known, Signal
from predictor.board import Entry
from predictor.ports import MIXED_GPUS, Workload


def learn(entry: Entry, workload: Workload, *, now: float) -> Chosen:
    """The profile to plan with, after what is seen now (Unix seconds) was taken in.

    Nothing is seen of a fleet that changes: during a rollout, while replicas warm, and on GPUs of several types, of
    which nobody could tell which one was overloaded.
    """
    given = entry.target.learning
    if given.ttft is None or given.learn is Learn.OFF:
        return trusting.choose(entry.target.objectives.profile, None, learn=Learn.OFF, headroom=given.headroom)
    observer = entry.observers.setdefault(workload.gpu, Observer(objective=given.ttft))
    sight = _sight(entry, workload, now=now)
    if sight is not None and workload.gpu != MIXED_GPUS:
        observer.see(sight)
    profile = entry.target.objectives.profile
    return trusting.choose(profile, observer.observed(), learn=given.learn, headroom=given.headroom)


def observed(entry: Entry) -> Observed | None:
    """What was seen on the GPUs in use; None where nothing is looked at."""
    workload = entry.workload
    observer = entry.observers.get(workload.gpu) if isinstance(workload, Workload) else None
    return observer.observed() if observer else None


def _sight(entry: Entry, workload: Workload, *, now: float) -> Sight | None:
    values = [entry.readings.get(signal) for signal in (Signal.IN_FLIGHT, Signal.WAITING, Signal.TTFT_P95)]
    known = [one.value for one in values if isinstance(one, Known)]
    supply = workload.supply
    if len(known) < len(values) or supply.ready < 1 or supply.warming or workload.rollout:
        return None
    running, waiting, ttft = known
    return Sight(now, (running + waiting) / supply.ready, supply.ready, ttft)
