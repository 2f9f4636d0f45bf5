"""Floorcast in a race: the service's own functions, driven through the rivals' protocol.

    Forecaster.update (through `foresight`) -> planning.plan_for -> reactive.react -> floor.decide

What differs from the service: only arrivals are forecast, since what is in flight depends on the policy. Its need
follows from the arrivals and the profile's duration by Little's law; the in-flight load of the moment is still looked
at by the reactive side.
"""

import dataclasses
import math

from models.capacity import mix, sizing
from models.capacity.mix import Flow, Mix
from models.capacity.profile import Profile, concurrency_target
from models.forecasting.forecast import Outlook
from models.policy import floor, planning, reactive, rules
from models.policy.context import Context, Memory
from models.policy.decision import Decision
from models.policy.planning import Objectives
from models.policy.protocol import Autoscaler, Observation
from models.race.foresight import SLOW, Foresight
from models.race.loadtest import Knee
from models.signals import Cause, Known, Signal, Unknown

DEMAND = (Signal.ARRIVALS, Signal.IN_FLIGHT, Signal.WAITING)
SIZES = (Signal.TOKENS_IN, Signal.TOKENS_OUT, Signal.COMPLETIONS)
NOT_YET = sizing.NoPlan("no forecast has been made yet")

HEADROOM = 0.2  # the configuration's default: what a fleet absorbs between two decisions
# The one knob of a sweep: burst headroom, negative where a replica is planned for more than the load test found well,
# at the raise quantile of the configuration; beyond the default headroom the quantile rises as well.
CAUTION = {
    -0.4: 0.975, -0.3: 0.975, -0.2: 0.975, -0.1: 0.975, 0.0: 0.975, HEADROOM: 0.975, 0.35: 0.99, 0.5: 0.995, 0.8: 0.995,
}  # fmt: skip
CAUTION_ALONE = (-0.4, -0.2, 0.0, HEADROOM, 0.5, 1.0, 1.5, 2.5)  # of the reactive rule without a forecast
KNOB = "burst headroom"


def objectives(knee: Knee, headroom: float) -> Objectives:
    """The configuration's defaults with what a load test says; the duration is that at the knee, by Little's law."""
    target = concurrency_target(knee=knee.concurrency, headroom=headroom)
    duration = knee.concurrency / knee.rate
    profile = Profile(concurrency=target, duration=duration, source="measured", by_size=knee.by_size)
    return Objectives(profile, raise_quantile=CAUTION.get(headroom, CAUTION[HEADROOM]))


class Floorcast:
    """Owns the replica count: raises for the forecast and for the load of the moment, lowers by steps."""

    def __init__(
        self,
        objectives: Objectives,
        foresight: Foresight | None,
        *,
        lead: float = 0.0,
        ttft: float = math.inf,
        without: str = "",
    ) -> None:
        """Without a foresight the forecast is switched off and the reactive rule is left alone.

        `lead`: seconds from asking for a replica until it serves, where no foresight tells; `ttft`: objective,
        p95 of the seconds to the first token; `without`: name of a rule that is left out, to see what it is good for.
        """
        self.objectives = objectives
        self._foresight = foresight
        self._lead, self._ttft = foresight.horizons.raising if foresight else lead, ttft
        self._active = tuple(rule for rule in rules.RULES if rule.__name__ != without)
        self._memory: Memory | None = None
        self._mix: Mix | None = None
        self._sized = objectives
        self._planned_at = float("-inf")
        self._index: int | None = None
        self._plans: tuple[sizing.Planned, sizing.Planned] = (NOT_YET, NOT_YET)

    def decide(self, observation: Observation) -> Decision:
        """One tick of the fast loop, and of the slow one when its time has come."""
        return self.decide_from(observation, standing=observation.replicas)

    def decide_from(self, observation: Observation, *, standing: int) -> Decision:
        """The same where another number than the replica count stands: a floor."""
        raising, lowering = self._planned(observation.now)  # with the sizes of the look before, as in the service
        self._sized = self._for_sizes(observation)
        reacting = self._reacting(observation)
        if self._foresight is None:
            raising = lowering = reacting
        context = Context(
            now=observation.now,
            standing=standing,
            base=observation.minimum,
            maximum=observation.maximum,
            raising=raising,
            lowering=lowering,
            reacting=reacting,
            supply=observation.supply,
            unknown=_unknown(observation, (*DEMAND, *(SIZES if self._mix else ()))),
            breach=self._breach(observation),
        )
        memory = self._memory or Memory(needed_at=observation.now)
        decision, self._memory = floor.decide(context, self.objectives.floor, memory, active=self._active)
        return decision

    def _for_sizes(self, seen: Observation) -> Objectives:
        """The objectives for requests as large as they are now."""
        profile = self.objectives.profile
        if profile.by_size is None:
            return self.objectives
        values = [value for signal in (*SIZES, Signal.IN_FLIGHT) if (value := _value(seen, signal)) is not None]
        if len(values) > len(SIZES):
            self._mix = mix.after(self._mix, Flow(*values), at=seen.now)
        sized = profile.sized(mix.sizes(self._mix, profile.by_size.tested))
        return dataclasses.replace(self.objectives, profile=sized)

    def _breach(self, seen: Observation) -> str:
        ttft = _value(seen, Signal.TTFT_P95)
        return f"TTFT p95 {ttft:.1f} s over {self._ttft:g} s" if ttft is not None and ttft > self._ttft else ""

    def _planned(self, now: float) -> tuple[sizing.Planned, sizing.Planned]:
        if self._foresight is None or now - self._planned_at < SLOW:
            return self._plans
        self._planned_at = now
        index = self._foresight.index(now)
        if index != self._index or self._sized is not self.objectives:
            self._index = index
            raising, lowering = self._foresight.at(index)
            self._plans = (
                self._plan(raising, self.objectives.raise_quantile),
                self._plan(lowering, self.objectives.lower_quantile),
            )
        return self._plans

    def _plan(self, outlook: Outlook, probability: float) -> sizing.Planned:
        outlooks = {Signal.ARRIVALS: outlook}
        return planning.plan_for(
            outlooks,
            profile=self._sized.profile,
            probability=probability,
            duration=self._sized.profile.duration,
        )

    def _reacting(self, seen: Observation) -> sizing.Planned:
        load = sizing.Load(
            in_flight=_value(seen, Signal.IN_FLIGHT),
            arrivals=_value(seen, Signal.ARRIVALS),
            duration=self._sized.profile.duration,
        )
        return reactive.react(
            self._sized,
            load,
            waiting=_value(seen, Signal.WAITING),
            supply=seen.supply,
            lead=self._lead,
        )


class Floor:
    """The other way of owning: a floor under an autoscaler that somebody else has set up."""

    def __init__(self, floorcast: Floorcast, owner: Autoscaler) -> None:
        self._floorcast, self._owner = floorcast, owner
        self._standing: int | None = None

    def decide(self, observation: Observation) -> Decision:
        """The owner's decision above the floor."""
        standing = observation.minimum if self._standing is None else self._standing
        self._standing = self._floorcast.decide_from(observation, standing=standing).replicas
        return self._owner.decide(dataclasses.replace(observation, minimum=self._standing))


def _unknown(seen: Observation, signals: tuple[Signal, ...]) -> tuple[tuple[Signal, Cause], ...]:
    readings = ((signal, seen.readings.get(signal, Unknown(Cause.EMPTY))) for signal in signals)
    return tuple(
        (signal, reading.cause)
        for signal, reading in readings
        if isinstance(reading, Unknown) and reading.cause is not Cause.NOT_ASKED
    )


def _value(seen: Observation, signal: Signal) -> float | None:
    reading = seen.readings.get(signal)
    return reading.value if isinstance(reading, Known) else None
