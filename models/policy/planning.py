"""From forecasts to the two plans of the floor."""

import dataclasses
import math
from collections.abc import Collection, Mapping

from models.capacity import sizing
from models.capacity.profile import Profile
from models.forecasting.forecast import Forecast, Outlook
from models.policy.context import FloorSettings
from models.signals import Signal

SOURCES = {
    sizing.NeedKind.IN_FLIGHT: Signal.IN_FLIGHT,
    sizing.NeedKind.ARRIVALS: Signal.ARRIVALS,
    sizing.NeedKind.PREFILL_TOKENS: Signal.TOKENS_IN,
    sizing.NeedKind.DECODE_TOKENS: Signal.TOKENS_OUT,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Objectives:
    """How one target is planned for.

    Attributes:
        profile: what one replica sustains.
        raise_quantile: probability with which the load over the warm-up stays under what the floor is raised for.
        lower_quantile: the same for the longer horizon that must agree before the floor is lowered.
        drain: seconds over which a backlog may be worked off.
        floor: the numbers of the rules.
    """

    profile: Profile
    raise_quantile: float = 0.975
    lower_quantile: float = 0.5
    drain: float = 60.0
    floor: FloorSettings = dataclasses.field(default_factory=FloorSettings)

    def __post_init__(self) -> None:
        for name in ("raise_quantile", "lower_quantile"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must lie in (0, 1)")
        if self.drain <= 0:
            raise ValueError(f"drain is {self.drain!r} s: must be positive")


def token_signals(profile: Profile) -> tuple[Signal, ...]:
    """The token rates that are planned for: those of which the profile says what a replica sustains."""
    figures = ((Signal.TOKENS_IN, profile.tokens_in), (Signal.TOKENS_OUT, profile.tokens_out))
    return tuple(signal for signal, figure in figures if figure is not None)


def plan_for(
    outlooks: Mapping[Signal, Outlook], *, profile: Profile, probability: float, duration: float | None
) -> sizing.Planned:
    """The plan for what is forecast, at one probability; what has no forecast is left out.

    Token rates alone make no plan: a saturated fleet cuts them off at what it can do.
    """
    forecasts = {signal: outlook for signal, outlook in outlooks.items() if isinstance(outlook, Forecast)}
    values = {signal: outlook.room(probability) for signal, outlook in forecasts.items()}
    if not values.keys() & {Signal.IN_FLIGHT, Signal.ARRIVALS}:
        missing = {signal: outlook for signal, outlook in outlooks.items() if signal not in values}
        return sizing.NoPlan("; ".join(f"{signal}: {outlook}" for signal, outlook in missing.items()) or "no forecast")
    load = sizing.Load(
        in_flight=values.get(Signal.IN_FLIGHT),
        arrivals=values.get(Signal.ARRIVALS),
        duration=duration,
        tokens_in=values.get(Signal.TOKENS_IN),
        tokens_out=values.get(Signal.TOKENS_OUT),
    )
    kept = {signal for signal, outlook in forecasts.items() if keeps_room(outlook, probability)}
    return _told(sizing.plan(profile, load), kept)


def keeps_room(outlook: Forecast, probability: float) -> bool:
    """Whether something else than the forecast is planned for; where load has outgrown the room, it is the forecast."""
    return bool(outlook.steady) and not math.isclose(outlook.room(probability), outlook.at(probability))


def _told(planned: sizing.Planned, kept: Collection[Signal]) -> sizing.Planned:
    """The plan, whose needs say where they are for room."""
    if isinstance(planned, sizing.NoPlan) or not kept:
        return planned
    needs = (dataclasses.replace(need, room=SOURCES[need.kind] in kept) for need in planned.needs)
    return sizing.Plan(tuple(needs))
