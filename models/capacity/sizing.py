"""From demand to replicas. The plan is the largest need and keeps which one it was; caps come later, in the policy."""

import dataclasses
import enum
import math
from typing import TypeAlias

from models.capacity.profile import Profile


class NeedKind(enum.StrEnum):
    """What a need was computed from. The value is also the metric label."""

    IN_FLIGHT = "in_flight"
    ARRIVALS = "arrivals"
    KV_TOKENS = "kv_tokens"
    PREFILL_TOKENS = "prefill_tokens"
    DECODE_TOKENS = "decode_tokens"


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """Replicas one kind of demand asks for: demand / per_replica, rounded up; both in the unit of the kind.

    `room` says that the demand is what came lately, for which room is kept, instead of what is forecast.
    """

    kind: NeedKind
    demand: float
    per_replica: float
    room: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.demand) and self.demand >= 0):
            raise ValueError(f"demand is {self.demand!r}: must be finite and >= 0")
        if not (math.isfinite(self.per_replica) and self.per_replica > 0):
            raise ValueError(f"per_replica is {self.per_replica!r}: must be a positive number")

    @property
    def replicas(self) -> int:
        """Smallest number of replicas that carries the demand; demand above zero needs at least one."""
        return replicas_for(self.demand, per_replica=self.per_replica)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The replicas the maths wants, uncapped: the largest of the needs."""

    needs: tuple[Need, ...]

    def __post_init__(self) -> None:
        if not self.needs:
            raise ValueError("needs are empty: without any need there is NoPlan, not a plan for zero")

    @property
    def binding(self) -> Need:
        """The need that decides; the first of equals."""
        return max(self.needs, key=lambda need: need.replicas)

    @property
    def replicas(self) -> int:
        """Replicas the binding need asks for."""
        return self.binding.replicas


@dataclasses.dataclass(frozen=True, slots=True)
class NoPlan:
    """Nothing can be planned, and why (signals unknown, history too short)."""

    why: str


Planned: TypeAlias = Plan | NoPlan


def replicas_for(demand: float, *, per_replica: float) -> int:
    """ceil(demand / per_replica), forgiving 1e-9 of rounding so that 120 / 40 is 3 and not 4."""
    return math.ceil(demand / per_replica - 1e-9)


def in_flight_by_little(*, arrivals: float, duration: float) -> float:
    """Little's law, L = arrival rate (1/s) x duration (s)."""
    return arrivals * duration


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """A demand; None marks what is not known.

    Attributes:
        in_flight: requests in flight.
        arrivals: requests per second.
        duration: seconds a request takes without queueing; a profile's own is preferred.
        growth: requests per second by which there are more inside, negative while a backlog is worked off.
        tokens_in: prompt tokens per second.
        tokens_out: generated tokens per second.
    """

    in_flight: float | None = None
    arrivals: float | None = None
    duration: float | None = None
    growth: float = 0.0
    tokens_in: float | None = None
    tokens_out: float | None = None


def plan(profile: Profile, load: Load, *others: Need | None) -> Planned:
    """The plan for a demand, and for `others` (None for one that cannot be told).

    With a duration, or with the profile's throughput, arrivals become a need of their own: in flight is cut off at
    what the fleet can hold, arrivals are not. Tokens a second are a need where the profile says what a replica
    sustains; they, too, are cut off at what the fleet can do, so they only ever add to the plan.
    """
    told = (_in_flight_need(profile, load), arrivals_need(profile, load), *token_needs(profile, load), *others)
    needs = tuple(need for need in told if need)
    if not needs:
        return NoPlan("neither in-flight load nor arrivals with a duration are known")
    return Plan(needs)


def _in_flight_need(profile: Profile, load: Load) -> Need | None:
    if load.in_flight is None:
        return None
    return Need(NeedKind.IN_FLIGHT, load.in_flight, profile.concurrency)


def throughput(profile: Profile, duration: float | None = None) -> float | None:
    """Requests per second that one replica serves at what it is planned for; None where that cannot be told.

    `duration`, seconds, is that of a request without queueing; the profile's own is preferred.
    """
    seconds = profile.duration or duration
    return profile.throughput or (profile.concurrency / seconds if seconds else None)


def arrivals_need(profile: Profile, load: Load) -> Need | None:
    """Replicas for the arrivals; None where they, or both throughput and duration, are not known."""
    if load.arrivals is None:
        return None
    if profile.throughput is not None:
        return Need(NeedKind.ARRIVALS, load.arrivals, profile.throughput)
    seconds = profile.duration or load.duration
    if not seconds:
        return None
    demand = in_flight_by_little(arrivals=load.arrivals, duration=seconds)
    return Need(NeedKind.ARRIVALS, demand, profile.concurrency)


def token_needs(profile: Profile, load: Load) -> tuple[Need, ...]:
    """Replicas for prompt and for generated tokens a second; of those only whose rate and figure are both known."""
    rates = (
        (NeedKind.PREFILL_TOKENS, load.tokens_in, profile.tokens_in),
        (NeedKind.DECODE_TOKENS, load.tokens_out, profile.tokens_out),
    )
    return tuple(Need(kind, rate, each) for kind, rate, each in rates if rate is not None and each is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class Tokens:
    """KV-cache demand in tokens.

    Attributes:
        used: tokens in the caches of all replicas.
        waiting: requests that wait for a place.
        prompt: mean prompt of a request.
        output: mean output of a request.
    """

    used: float
    waiting: float = 0.0
    prompt: float = 0.0
    output: float = 0.0


def kv_need(profile: Profile, tokens: Tokens) -> Need | None:
    """Replicas for KV tokens: in use, plus what the waiting requests will take; None without a known capacity.

    Demand = used + waiting x (mean prompt + half the mean output); usage is a bounded ratio, so a rule on it adds at
    most a quarter a step, tokens do not.
    """
    if profile.kv_tokens is None:
        return None
    demand = tokens.used + tokens.waiting * (tokens.prompt + tokens.output / 2)
    return Need(NeedKind.KV_TOKENS, demand, profile.kv_target * profile.kv_tokens)
