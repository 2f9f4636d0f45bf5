"""What the load of this moment asks for: the fast loop's plan."""

import dataclasses

from models.capacity import sizing
from models.policy.context import Supply
from models.policy.planning import Objectives


def react(
    objectives: Objectives,
    load: sizing.Load,
    *,
    waiting: float | None,
    supply: Supply,
    tokens: sizing.Tokens | None = None,
) -> sizing.Planned:
    """The plan for the present load; None marks what is not known.

    A backlog of `waiting` requests is spread over the drain time: it asks for waiting / drain requests per second on
    top of the arrivals. Where arrivals make no need, it counts as in flight. While replicas are warming the backlog is
    not counted: it waits for them, and counting it again at every tick is how an autoscaler on queue depth asks for 30
    where 10 suffice.
    """
    backlog = waiting if waiting is not None and supply.warming == 0 else 0.0
    if load.arrivals is not None and sizing.arrivals_need(objectives.profile, load):
        load = dataclasses.replace(load, arrivals=load.arrivals + backlog / objectives.drain)
    elif load.in_flight is not None:
        load = dataclasses.replace(load, in_flight=load.in_flight + backlog)
    need = sizing.kv_need(objectives.profile, tokens) if tokens else None
    return sizing.plan(objectives.profile, load, need)
