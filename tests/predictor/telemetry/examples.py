"""One target and what the loops tell of it."""

import dataclasses

from models.capacity import warmup
from models.capacity.profile import Profile
from models.capacity.sizing import Need, NeedKind, Plan
from models.capacity.warmup import Horizons, Start
from models.forecasting.forecast import Forecast, Quality
from models.policy.context import Supply
from models.policy.decision import Decision, Reason
from models.policy.planning import Objectives
from models.signals import Signal
from predictor.board import Plans
from predictor.grading import Grade
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
