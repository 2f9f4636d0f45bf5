"""What the tests of the compiled fleet share."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from models.fleet import workload
from models.fleet.memory import PoolSettings
from models.fleet.pool import LifeEvent, Pool
from models.fleet.profiles import Profile, StepLaw
from models.fleet.requests import Requests

SHARED = Path(__file__).resolve().parents[4] / "shared"

# A step takes 10 ms, whatever is in it, and 1 ms more for 100 prefill tokens: times that one can add up by head.
PLAIN = Profile("plain", "plain", StepLaw(a=10, w=0, d=0.01, b=0, c=0, q=0), 1000, "made up", max_num_seqs=8)


def data(*parts: str) -> Path:
    """A file of measured data; the test is skipped where the data is not there."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"measured data not found: {'/'.join(parts)} is expected in a folder shared/ next to the checkout")
    return path


def rows(*parts: str) -> list[dict[str, str]]:
    with data(*parts).open() as file:
        return list(csv.DictReader(file))


def trace(name: str) -> Requests:
    return workload.read_requests(gzip.decompress(data("traces", f"{name}.csv.gz").read_bytes()).decode())


def requests(*each: tuple[float, int, int]) -> Requests:
    """Requests as (arrival, prompt, output)."""
    times, prompts, outputs = zip(*each, strict=True)
    return Requests(np.array(times, dtype=float), np.array(prompts), np.array(outputs))


def drawn(rate: float, count: int, *, seed: int = 0, prompt: float = 500, output: float = 100) -> Requests:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(1 / rate, count))
    lengths = [np.maximum(rng.lognormal(np.log(mean) - 0.32, 0.8, count).astype(int), 1) for mean in (prompt, output)]
    return Requests(times, *lengths)


def pool_of(replicas: int, profile: Profile = PLAIN, *, logged: int = 0, **settings: object) -> Pool:
    """A pool whose replicas are ready at 0."""
    pool = Pool(profile, PoolSettings(**({"timeout": None, "scrape_interval": None} | settings)), logged=logged)
    for _ in range(replicas):
        pool.start(ready_at=0.0)
    advance(pool, 0.0)
    return pool


def advance(pool: Pool, to: float) -> list[LifeEvent]:
    events: list[LifeEvent] = []
    while more := pool.advance(to):
        events += more
    return events


def fate(pool: Pool) -> tuple[int, int]:
    """Requests that arrived, and the sum of what became of them."""
    p = pool.state
    return int(p["arrived"]), int(sum(p[k] for k in ("finished", "rejected", "timed_out", "failed", "in_system")))
