"""The day that the demo plays: which fleet, which traffic, which objectives. Everything follows from the seed."""

import dataclasses

from models.capacity.profile import Profile, concurrency_target
from models.fleet import engine, workload
from models.fleet.deployment import Deployment
from models.fleet.fleet import Fleet
from models.fleet.lifecycle import Lifecycle, WarmUp
from models.peers.hpa import HpaSettings
from models.policy.context import FloorSettings
from models.policy.planning import Objectives
from models.signals import Signal
from predictor.demo.options import Rival
from predictor.outlooks import Pace
from predictor.targets import Kind, Mode, Target

MIDNIGHT = 1_772_496_000.0  # 3 March 2026, a Tuesday, 00:00 UTC: where the simulated clock starts
TUESDAY = 1
PACE = Pace(slow=60.0, fast=15.0, signal_age=15.0)

# 32 sequences a replica: an engine tuned for latency, so that the knee is where the batch is full.
ENGINE = dataclasses.replace(engine.QWEN_32B_H100_TP2, max_num_seqs=32)
KNEE = 32.0
HEADROOM = 0.25
WARM_UP = WarmUp(weights_bytes=ENGINE.weights_bytes)
TYPICAL_WARM_UP = 250.0  # s: what is configured until warm-ups have been measured
TTFT_OBJECTIVE = 1.0  # s
ROUTER_TIMEOUT = 60.0  # s
GPU_PRICE = 3.5  # dollars an hour

FIRST = 2  # replicas at midnight
MINIMUM = 1
MAXIMUM = 16
TRAFFIC = workload.Traffic(
    peak=16.0,
    prompt=workload.Lengths(median=750.0, spread=0.8, longest=6000),
    output=workload.Lengths(median=450.0, spread=0.7, longest=3000),
    surge=workload.Surge(day=0),
    day_zero=TUESDAY,
)
RIVALS = {
    Rival.QUEUE: HpaSettings(signal=Signal.WAITING, target=2.0),
    Rival.LOAD: HpaSettings(signal=Signal.IN_FLIGHT, target=20.0),
}

TARGET = Target(
    namespace="demo",
    name="chat",
    kind=Kind.DEPLOYMENT,
    engine="vllm",
    model=ENGINE.model,
    mode=Mode.CONTROL,
    objectives=Objectives(
        profile=Profile(
            concurrency=concurrency_target(knee=KNEE, headroom=HEADROOM),
            kv_tokens=ENGINE.kv_tokens,
            source="configured",
        ),
        floor=FloorSettings(hold=300.0, step_period=60.0),
    ),
    warm_up=TYPICAL_WARM_UP,
    minimum=MINIMUM,
    maximum=MAXIMUM,
)


def traffic(seed: int) -> workload.Workload:
    """The traffic of the day and of the days before it; time is seconds from the day's midnight."""
    return workload.Workload(TRAFFIC, seed=seed)


def deployment(seed: int) -> Deployment:
    """One of the two fleets: the same engine, the same warm-ups drawn for the n-th start."""
    fleet = Fleet(ENGINE, ttft_objective=TTFT_OBJECTIVE, router_timeout=ROUTER_TIMEOUT)
    return Deployment(fleet, Lifecycle(WARM_UP, seed=seed, slots=MAXIMUM), replicas=FIRST)
