"""The day that the demo plays: which fleet, which traffic, which objectives. Everything follows from the seed."""

import dataclasses

from models.capacity.profile import Profile, concurrency_target
from models.fleet import profiles
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.warmup import WarmUp
from models.peers import registry
from models.peers.engine import Engine
from models.policy.context import FloorSettings
from models.policy.planning import Objectives
from models.policy.protocol import Autoscaler
from predictor.demo import traffic
from predictor.demo.options import Rival
from predictor.outlooks import Pace
from predictor.targets import Kind, Mode, Target

MIDNIGHT = 1_772_496_000.0  # 3 March 2026, a Tuesday, 00:00 UTC: where the simulated clock starts
TUESDAY = 1
PACE = Pace(slow=60.0, fast=15.0, signal_age=15.0)

# 32 sequences a replica: an engine tuned for latency, so that the knee is where the batch is full.
REPLICA = dataclasses.replace(profiles.QWEN_32B_H100_TP2, max_num_seqs=32)
KNEE = 32.0
DURATION = 10.5  # s a request takes on a replica that is not crowded, on average
HEADROOM = 0.25
WARM_UP = WarmUp(image=(60.0, 180.0), engine=90.0)  # the image is not on the node, nothing is compiled yet
TYPICAL_WARM_UP = 250.0  # s: what is configured until warm-ups have been measured
TTFT_OBJECTIVE = 1.0  # s
PATIENCE = 60.0  # s without a first token after which a client gives up
GPU_PRICE = 3.5  # dollars an hour

NAME = "chat"
FIRST = 2  # replicas at midnight
MINIMUM = 1
MAXIMUM = 16
TRAFFIC = traffic.Traffic(
    peak=16.0,
    prompt=traffic.Lengths(median=750.0, spread=0.8, longest=6000),
    output=traffic.Lengths(median=450.0, spread=0.7, longest=3000),
    surge=traffic.Surge(day=0),
    day_zero=TUESDAY,
)
RIVALS = {Rival.QUEUE: ("hpa-queue", 2.0), Rival.LOAD: ("hpa-in-flight", 20.0)}  # policy and its target a replica

TARGET = Target(
    namespace="demo",
    name=NAME,
    kind=Kind.DEPLOYMENT,
    engine="vllm",
    model=REPLICA.model,
    mode=Mode.CONTROL,
    objectives=Objectives(
        profile=Profile(
            concurrency=concurrency_target(knee=KNEE, headroom=HEADROOM),
            kv_tokens=REPLICA.kv_tokens,
            source="configured",
        ),
        floor=FloorSettings(hold=300.0, step_period=60.0),
    ),
    warm_up=TYPICAL_WARM_UP,
    minimum=MINIMUM,
    maximum=MAXIMUM,
)


def days(seed: int) -> traffic.Days:
    """The traffic of the day and of the days before it; time is seconds from the day's midnight."""
    return traffic.Days(TRAFFIC, seed=seed)


def cluster(seed: int) -> Cluster:
    """One of the two fleets: the same replicas, the same warm-up for each place (`Deployment`)."""
    pool = Pool(REPLICA, PoolSettings(ttft_objective=TTFT_OBJECTIVE, timeout=PATIENCE, scrape_interval=None))
    fleet = Deployment(pool, WARM_UP, seed=(seed,))
    fleet.stand(FIRST)
    return Cluster({NAME: fleet}, gpus={REPLICA.gpu: MAXIMUM * REPLICA.gpus})


def rival(which: Rival) -> Autoscaler:
    """The HPA: the race's policy of that name, at the demo's target."""
    name, target = RIVALS[which]
    law = REPLICA.law
    engine = Engine(law, REPLICA.kv_tokens, REPLICA.token_budget, REPLICA.max_num_seqs, law.alpha0 / 1e3)
    terms = registry.Terms(rate=KNEE / DURATION, concurrency=KNEE, engine=engine, ttft=TTFT_OBJECTIVE)
    return registry.named(name, terms).make(target)
