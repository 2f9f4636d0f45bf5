"""A load test on the fleet itself: what one replica sustains on a workload."""

import dataclasses

import numpy as np

from models.capacity import sizes
from models.capacity.sizes import BySize, LoadTest, Sizes
from models.fleet import scorecard
from models.fleet.cluster import Cluster
from models.fleet.deployment import Deployment
from models.fleet.jit import Ints
from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.profiles import Profile
from models.fleet.requests import Requests
from models.fleet.scorecard import Scorecard
from models.fleet.warmup import FixedWarmUp
from models.series import Floats

FLEET = 4  # replicas of a load test
LASTS = 1800.0  # seconds
WITHIN = 0.995  # of the requests within the objective, so that a fleet at the knee can reach .99
STEPS = 9  # bisections: the knee to 1 %
LEAST_OBJECTIVE = 1.0  # seconds
MINUTE, AROUND = 60.0, 5  # seconds; minutes
OTHERS = ((0.7, 1.0), (1.2, 1.0), (1.0, 0.7), (1.0, 1.2))  # further tests: times the prompts, times the outputs


@dataclasses.dataclass(frozen=True, slots=True)
class Knee:
    """The highest load of one replica that meets the objective.

    Attributes:
        rate: requests a second.
        concurrency: requests in flight.
        itl: p99 of the time between tokens there, seconds.
        objective: seconds to the first token.
        by_size: how rate and concurrency change with the size of requests; None where only one size was tested.
    """

    rate: float
    concurrency: float
    itl: float
    objective: float
    by_size: BySize | None = None


def knee(profile: Profile, lengths: Requests, *, objective: float | None = None, seed: int = 1) -> Knee:
    """By load tests of Poisson arrivals with lengths drawn from those given.

    Without an objective (seconds to the first token) it is twice what 99.9 % of the requests take on a replica that
    does nothing else, and a second at least.
    """
    if objective is None:
        alone = _tested(profile, lengths, rate=0.02, objective=60.0, seed=seed)
        objective = max(2 * (alone.ttft.quantile(0.999) or 0.0), LEAST_OBJECTIVE)
    low, high = 0.02, 64.0
    for _ in range(STEPS + 3):
        middle = float(np.sqrt(low * high))
        if (_tested(profile, lengths, rate=middle, objective=objective, seed=seed).attainment or 0.0) >= WITHIN:
            low = middle
        else:
            high = middle
    at = _tested(profile, lengths, rate=low, objective=objective, seed=seed)
    return Knee(low, low * (at.e2e.mean or 1.0), at.itl.quantile(0.99) or 0.05, objective)


def by_size(profile: Profile, lengths: Requests, found: Knee, *, seed: int = 1) -> BySize:
    """How what `found` says changes with the size of requests: four more load tests, at the same objective."""
    tests = [LoadTest(mean(lengths), found.rate, found.concurrency)]
    for prompts, outputs in OTHERS:
        other = longer(lengths, prompts=prompts, outputs=outputs)
        at = knee(profile, other, objective=found.objective, seed=seed)
        tests.append(LoadTest(mean(other), at.rate, at.concurrency))
    return sizes.fitted(tests)


def mean(lengths: Requests) -> Sizes:
    """Mean tokens of the requests."""
    return Sizes(float(np.mean(lengths.prompts)), float(np.mean(lengths.outputs)))


def weights(requests: Requests, by_size: BySize, *, start: float, steps: int) -> Floats:
    """For each minute from `start` on, how many requests of the load test one of its requests weighs as.

    From the mean tokens of the `AROUND` minutes around it; shape (steps,), 1 where none came.
    """
    places = ((requests.times - start) // MINUTE).astype(np.int64)
    window = np.ones(min(AROUND, steps))
    prompts, outputs, counts = (
        np.convolve(np.bincount(places, tokens, minlength=steps)[:steps], window, "same")
        for tokens in (requests.prompts, requests.outputs, None)
    )
    found = [
        1 / by_size.relative(Sizes(float(p / n), float(o / n)))[0] if n else 1.0
        for p, o, n in zip(prompts, outputs, counts, strict=True)
    ]
    return np.array(found)


def longer(given: Requests, *, prompts: float, outputs: float) -> Requests:
    """The requests with so many times the tokens, one at least; longer ones by one at least."""
    return dataclasses.replace(given, prompts=_times(given.prompts, prompts), outputs=_times(given.outputs, outputs))


def _times(tokens: Ints, factor: float) -> Ints:
    scaled = np.ceil(tokens * factor - 1e-9) if factor > 1 else np.maximum(np.rint(tokens * factor), 1)
    return np.asarray(scaled, dtype=np.int64)


def _tested(profile: Profile, lengths: Requests, *, rate: float, objective: float, seed: int) -> Scorecard:
    rng = np.random.default_rng([seed, 7])
    count = max(int(rate * FLEET * LASTS), 2000)
    lasts = count / (rate * FLEET)
    times = np.sort(rng.uniform(0, lasts, count))
    which = rng.integers(0, len(lengths), count)
    pool = Pool(profile, PoolSettings(ttft_objective=objective, scrape_interval=None))
    target = Deployment(pool, FixedWarmUp(0.0), seed=(seed,))
    cluster = Cluster({"test": target})
    cluster.scale("test", FLEET)
    pool.offer(Requests(times, lengths.prompts[which], lengths.outputs[which]))
    cluster.advance(lasts)
    return scorecard.of(target)
