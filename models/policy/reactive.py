"""What the load of this moment asks for: the fast loop's plan."""

import dataclasses

from models.capacity import crowd, sizing
from models.policy.context import Supply
from models.policy.planning import Objectives


def react(
    objectives: Objectives,
    load: sizing.Load,
    *,
    waiting: float | None,
    supply: Supply,
    lead: float = 0.0,
    tokens: sizing.Tokens | None = None,
) -> sizing.Planned:
    """The plan for the present load; None marks what is not known.

    Arrivals and the visible backlog, spread over the drain time: (arrivals + backlog / drain) requests per second.
    Where the profile says what a replica serves, how many run at this instant makes no need beside them: it scatters
    around arrivals x duration with the square root of itself, and the largest of many such looks is a replica or two
    too many (docs/decisions/0004). Where all there is is the measured duration of requests that nobody slowed down,
    what runs stays a need of its own: at the load that is planned for requests take longer. While a backlog is worked
    off it is a need as far as it is demand (`crowd.demanded`).

    The backlog is what waits, and what runs beyond what the Ready replicas are planned to hold (engines that admit
    every request have no queue to show), less what the warming replicas will have worked off when one asked for now
    would be Ready: counting a queue again at every tick while its remedy warms is how an autoscaler on queue depth
    asks for 30 where 10 suffice. It is spread over `lead` at least: before that, a replica asked for now cannot help.

    Where arrivals make no need, what runs and what waits count as in flight.

    Args:
        objectives: of the target.
        load: of this moment.
        waiting: requests accepted and not yet in a batch.
        supply: replicas by what they can do.
        lead: seconds from asking for a replica until it serves; 0 where not known.
        tokens: KV-cache demand.
    """
    need = sizing.kv_need(objectives.profile, tokens) if tokens else None
    if load.arrivals is not None and sizing.arrivals_need(objectives.profile, load):
        backlog = _backlog(objectives, load, waiting, supply)
        left = max(backlog - _worked_off(objectives, load, supply, lead), 0.0)
        arrivals = load.arrivals + left / max(objectives.drain, lead)
        told = sizing.throughput(objectives.profile) is not None
        running = None if told else crowd.demanded(objectives.profile, load, ready=supply.ready)
        load = dataclasses.replace(load, arrivals=arrivals, in_flight=running)
        return sizing.plan(objectives.profile, load, need)
    if load.in_flight is not None and waiting is not None and supply.warming == 0:
        load = dataclasses.replace(load, in_flight=load.in_flight + waiting)
    return sizing.plan(objectives.profile, load, need)


def _backlog(objectives: Objectives, load: sizing.Load, waiting: float | None, supply: Supply) -> float:
    held = supply.ready * objectives.profile.concurrency
    return (waiting or 0.0) + max((load.in_flight or 0.0) - held, 0.0)


def _worked_off(objectives: Objectives, load: sizing.Load, supply: Supply, lead: float) -> float:
    """Requests that warming replicas will have served `lead` seconds from now; all where nobody can tell when."""
    if len(supply.ready_in) < supply.warming or lead == 0:
        return float("inf") if supply.warming else 0.0
    each = sizing.throughput(objectives.profile, load.duration)
    return sum(each * max(lead - seconds, 0.0) for seconds in supply.ready_in) if each else 0.0
