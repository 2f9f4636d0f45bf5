"""What the load of this moment asks for: the fast loop's plan."""

from models.capacity import sizing
from models.capacity.profile import Profile
from models.policy.context import Supply


def react(
    profile: Profile,
    *,
    arrivals: float | None,
    in_flight: float | None,
    waiting: float | None,
    supply: Supply,
    drain: float,
    duration: float | None = None,
) -> sizing.Planned:
    """The plan for the present load; None marks what is not known.

    A backlog is spread over the `drain` time (seconds): it asks for waiting / drain requests per second on top of the
    arrivals. While replicas are warming the backlog is not counted: it waits for them, and counting it again at every
    tick is how an autoscaler on queue depth asks for 30 where 10 suffice.
    """
    backlog = waiting if waiting is not None and supply.warming == 0 else 0.0
    if arrivals is not None:
        arrivals += backlog / drain
    elif in_flight is not None:
        in_flight += backlog
    return sizing.plan(profile, in_flight=in_flight, arrivals=arrivals, duration=duration)
