"""One target and what the loops tell of it."""

import dataclasses

from models.capacity import warmup
from models.capacity.limits import Limit
from models.capacity.observing import Observer, Sight
from models.capacity.profile import Profile
from models.capacity.sizing import Need, NeedKind, Plan
from models.capacity.trusting import Chosen, Source
from models.capacity.warmup import Horizons, Start
from models.forecasting.forecast import Forecast, Quality
from models.policy.context import Supply
from models.policy.decision import Decision, Reason
from models.policy.planning import Objectives
from models.signals import Known, Signal
from predictor import deciding
from predictor.board import Entry, Plans
from predictor.grading import Grade
from predictor.outlooks import Pace
from predictor.ports import Owner, Stuck, Workload
from predictor.targets import Kind, Mode, Target


def target(name: str = "chat") -> Target:
    return Target(
        namespace="llm",
        name=name,
        kind=Kind.DEPLOYMENT,
        engine="vllm",
        model="m",
        mode=Mode.SHADOW,
        objectives=Objectives(profile=Profile(concurrency=40)),
    )


def forecast(horizon: float) -> Forecast:
    return Forecast(
        issued_at=1000.0, horizon=horizon, level=100.0, quantiles={0.5: 110.0, 0.95: 150.0}, quality=Quality.YOUNG
    )


PLANS = Plans(
    made_at=1000.0,
    horizons=Horizons(raising=345.0, lowering=645.0),
    outlooks={Signal.IN_FLIGHT: (forecast(345.0), forecast(645.0))},
    raising=Plan((Need(NeedKind.IN_FLIGHT, 150.0, 40.0), Need(NeedKind.ARRIVALS, 100.0, 40.0))),
    lowering=Plan((Need(NeedKind.IN_FLIGHT, 150.0, 40.0),)),
    duration=12.0,
    grades={Signal.IN_FLIGHT: Grade(fresh=3, scored=40, coverage={0.95: 0.925}, pinball={0.95: 1.5})},
)
WORKLOAD = Workload(
    owner=Owner.HPA,
    standing=3,
    base=2,
    maximum=10,
    replicas=4,
    supply=Supply(ready=3, warming=1),
    warm_up=warmup.usual([*(Start(0.0, 5.0, 20.0, 80.0),) * 3, Start(1000.0, gpu="H100")], now=1010.0, default=100.0),
)

STUCK = dataclasses.replace(
    WORKLOAD,
    stuck=(Stuck("chat-x", 400.0, "Unschedulable", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."),),
)


def decision(reason: Reason = Reason.RAISED_FOR_FORECAST, *, replicas: int = 4, wanted: int | None = 4) -> Decision:
    return Decision(at=1000.0, before=3, replicas=replicas, wanted=wanted, reason=reason, note="because")


def entry() -> Entry:
    """A row after a decision."""
    row = Entry(target(), readings={Signal.WAITING: Known(3.0, 990.0)}, workload=WORKLOAD, plans=PLANS)
    row.observers = {"H100": observer()}
    row.limits = (Limit("maximum", 10), Limit("GPU budget", 8))
    row.capacity = Chosen(row.target.objectives.profile, Source.CONFIGURED, "the objective was met at 60, 30 windows")
    made = deciding.decide(row, WORKLOAD, now=1000.0, loading=False, pace=Pace(slow=30))
    row.remember(made)
    row.limits = (Limit("maximum", 10), Limit("GPU budget", 8))
    return row


def observer() -> Observer:
    """Has seen the objective met at 40 in flight a replica, and missed at 60."""
    seen = Observer(objective=2.0)
    for number in range(400):
        seen.see(Sight(number * 15.0, 40.0 if number < 200 else 60.0, 3, 1.0 if number < 200 else 5.0))
    return seen
