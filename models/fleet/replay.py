"""One replica serves a list of requests: the figures by which a real run is compared."""

import dataclasses

import numpy as np

from models.fleet.memory import PoolSettings
from models.fleet.pool import Pool
from models.fleet.profiles import Profile
from models.fleet.requests import Requests

FAR = 1e9  # seconds after the last arrival by which everything is served


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """Seconds, but for the counts; quantiles are exact.

    Attributes:
        requests: asked for.
        finished: served; the others can never fit.
        ttft_mean: from arrival to the first token.
        ttft_p50: likewise.
        ttft_p90: likewise.
        ttft_p99: likewise.
        tpot_mean: mean over the requests of the mean time between their tokens.
        itl_p50: between two tokens, over all tokens (to half a per cent).
        itl_p99: likewise.
        e2e_mean: from arrival to the last token.
        e2e_p99: likewise.
        makespan: from the first arrival to the last token.
        peak_running: sequences in the batch at most.
        peak_waiting: requests in the queue at most.
        preemptions: times a sequence was preempted.
    """

    requests: int
    finished: int
    ttft_mean: float
    ttft_p50: float
    ttft_p90: float
    ttft_p99: float
    tpot_mean: float
    itl_p50: float
    itl_p99: float
    e2e_mean: float
    e2e_p99: float
    makespan: float
    peak_running: int
    peak_waiting: int
    preemptions: int


def serve(profile: Profile, given: Requests) -> Pool:
    """A pool of one replica, ready at the first arrival, that has served all of them."""
    start = float(given.times[0])
    pool = Pool(profile, PoolSettings(timeout=None, scrape_interval=None), start=start, logged=len(given))
    pool.start(ready_at=start)
    pool.offer(given)
    end = float(given.times[-1]) + FAR
    while pool.advance(end):
        pass  # the replica becoming ready is the only thing that happens to it
    return pool


def replay(profile: Profile, given: Requests) -> Figures:
    """Figures of one replica that serves these requests. Raises ValueError when there are none it can serve."""
    if len(given) == 0:
        raise ValueError("there are no requests to replay")
    pool = serve(profile, given)
    done = np.isfinite(pool.log["end"])
    if not done.any():
        raise ValueError(f"none of the {len(given)} requests fits {profile.kv_tokens} KV tokens")
    first, end, sent = pool.log["first"][done], pool.log["end"][done], given.times[done]
    gaps = given.outputs[done] - 1
    tpot = ((end - first)[gaps > 0]) / gaps[gaps > 0]
    itl = pool.latencies()[1]
    return Figures(
        requests=len(given),
        finished=int(done.sum()),
        ttft_mean=float((first - sent).mean()),
        ttft_p50=float(np.quantile(first - sent, 0.5)),
        ttft_p90=float(np.quantile(first - sent, 0.9)),
        ttft_p99=float(np.quantile(first - sent, 0.99)),
        tpot_mean=float(tpot.mean()) if len(tpot) else 0.0,
        itl_p50=itl.quantile(0.5) or 0.0,
        itl_p99=itl.quantile(0.99) or 0.0,
        e2e_mean=float((end - sent).mean()),
        e2e_p99=float(np.quantile(end - sent, 0.99)),
        makespan=float(end.max() - given.times[0]),
        peak_running=int(pool.state["peak_running"]),
        peak_waiting=int(pool.state["peak_waiting"]),
        preemptions=int(pool.state["preempted"]),
    )
