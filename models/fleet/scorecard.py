"""How well a pool served and what that took, in a size that does not grow with the number of requests."""

import dataclasses

import numpy as np

from models.fleet.deployment import Costs, Deployment
from models.fleet.latency import Latency
from models.fleet.layout import FREE

HOUR = 3600.0


@dataclasses.dataclass(frozen=True, slots=True)
class Scorecard:
    """What came of all requests so far. A request counts once, however often its client sent it.

    Attributes:
        requests: arrived.
        finished: got their last token.
        met: got their first token within the objective (and were not cut off later).
        late: got it later.
        overdue: have waited for it for longer than the objective already.
        rejected: too long for any replica, or turned away by a full router.
        timed_out: their clients gave up.
        failed: were cut off by a replica that ended, and not tried again.
        resent: tries after the first.
        in_system: being served, waiting, or about to come back.
        preempted: times a sequence was preempted.
        seconds_below: in which no ready replica had room for its next request, or none was ready and requests waited.
        ttft: time to the first token, seconds.
        itl: time between tokens.
        e2e: time to the last token.
        costs: what it took.
    """

    requests: int
    finished: int
    met: int
    late: int
    overdue: int
    rejected: int
    timed_out: int
    failed: int
    resent: int
    in_system: int
    preempted: int
    seconds_below: float
    ttft: Latency
    itl: Latency
    e2e: Latency
    costs: Costs

    @property
    def missed(self) -> int:
        """Requests that did not get their first token in time."""
        return self.late + self.overdue + self.rejected + self.timed_out + self.failed

    @property
    def attainment(self) -> float | None:
        """Share of the judged requests that met the objective; None before the first."""
        judged = self.met + self.missed
        return self.met / judged if judged else None

    @property
    def replica_hours(self) -> float:
        """Warming and draining counted."""
        return self.costs.replica_seconds / HOUR

    def cost(self, price: float) -> float:
        """Money, at a price for one GPU and hour."""
        return self.costs.gpu_seconds / HOUR * price


def of(deployment: Deployment) -> Scorecard:
    """The scorecard of a deployment as of now."""
    pool = deployment.pool
    p, now = pool.state, pool.now
    counts = {
        name: int(p[name])
        for name in ("finished", "met", "late", "rejected", "timed_out", "failed", "resent", "in_system", "preempted")
    }
    ttft, itl, e2e = pool.latencies()
    return Scorecard(
        requests=int(p["arrived"]),
        overdue=_overdue(deployment, now - pool.settings.ttft_objective),
        seconds_below=float(p["below"] + (now - p["below_at"] if p["is_below"] else 0.0)),
        ttft=ttft,
        itl=itl,
        e2e=e2e,
        costs=deployment.costs(),
        **counts,
    )


def _overdue(deployment: Deployment, latest: float) -> int:
    """Requests in the system that arrived before `latest` and have not been judged."""
    m = deployment.pool.memory
    used = m.requests[: int(m.pool[0]["requests_used"])]
    return int(np.count_nonzero((used["state"] != FREE) & (used["met"] < 0) & (used["arrived"] < latest)))
