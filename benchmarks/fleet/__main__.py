"""python -m benchmarks.fleet [--requests N] [--json]: simulated requests per second and core, and memory per replica.

CPU time of this process, best of three, compilation apart. The targets: 1 M requests/s for one replica, 0.5 M for 32
with life cycle, router and scrape view.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable

import numpy as np

from models.fleet import profiles
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.replay import serve
from models.fleet.requests import Requests
from models.fleet.warmup import WarmUp

PER_REPLICA = 12.0  # requests per second: an 8B model on an H100 at half of what it can do


def drawn(count: int, rate: float) -> Requests:
    """Poisson arrivals with lengths like those of a chat."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(1 / rate, count))
    prompts, outputs = (np.maximum(rng.lognormal(np.log(mean), 0.8, count).astype(int), 1) for mean in (450, 180))
    return Requests(times, prompts, outputs)


def best_of(runs: int, work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of several runs."""
    seconds = []
    for _ in range(runs):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def one_replica(given: Requests) -> None:
    """One replica serves all of them."""
    serve(profiles.LLAMA_8B_H100, given)


def whole_fleet(given: Requests, replicas: int) -> Cluster:
    """A fleet that starts, is scaled each half minute between 15/16 and all of it, crashes at times, and is scraped."""
    settings = PoolSettings(timeout=60.0, retries=2, scrape_interval=15.0, scrape_loss=0.01)
    target = Deployment(Pool(profiles.LLAMA_8B_H100, settings), WarmUp(mean_life=4 * 3600), seed=(0,))
    cluster = Cluster({"a": target}, gpus={"H100": replicas})
    end, step = float(given.times[-1]), 30.0
    for k in range(int(end / step) + 1):
        target.pool.offer(given.between(k * step, (k + 1) * step))
        cluster.scale("a", replicas - k % 2 * (replicas // 16))
        cluster.advance((k + 1) * step)
    return cluster


def measure(count: int) -> dict[str, float]:
    """Requests per CPU second, and bytes."""
    alone, fleet = drawn(count, PER_REPLICA), drawn(count, 32 * PER_REPLICA)
    one_replica(drawn(1000, PER_REPLICA))
    memory = {n: sum(a.nbytes for a in whole_fleet(drawn(20_000 * n, n * PER_REPLICA), n).deployments["a"].pool.memory)
              for n in (8, 32)}  # fmt: skip
    return {
        "one_replica_requests_per_second": count / best_of(3, lambda: one_replica(alone)),
        "fleet_of_32_requests_per_second": count / best_of(3, lambda: whole_fleet(fleet, 32)),
        "bytes_per_replica_and_its_load": (memory[32] - memory[8]) / 24,
    }


def main(arguments: list[str]) -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description="How fast the fleet simulates.")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    found = measure(options.requests)
    print(
        json.dumps(found) if options.json else "\n".join(f"{name:34s} {value:14,.0f}" for name, value in found.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
