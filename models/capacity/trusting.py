"""Which profile is planned with: by trust, and never silently above what was configured."""

import dataclasses
import enum

from models.capacity.observing import Observed
from models.capacity.profile import Profile, concurrency_target

LOWEST = 0.5  # share of the configured concurrency below which observation alone does not go: it only warns
CAUTIOUS = 8.0  # requests in flight where nobody said anything: every engine on any GPU carries that


class Source(enum.StrEnum):
    """Where a profile comes from, in order of trust. The value is also the metric label."""

    LOAD_TEST = "load_test"
    OBSERVED = "observed"
    CONFIGURED = "configured"
    DEFAULT = "default"


class Learn(enum.StrEnum):
    """What observation may do to a configured profile."""

    OFF = "off"  # nothing is observed
    WARN = "warn"  # say it, and plan as configured
    LOWER = "lower"  # plan for less where the objective was missed
    BOTH = "both"  # plan for more, too, where the objective was met


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """A profile to plan with, where it comes from, and what is to be said about it (empty: nothing)."""

    profile: Profile
    source: Source
    note: str = ""


def choose(given: Profile, observed: Observed | None, *, learn: Learn, headroom: float) -> Chosen:
    """The profile to plan with.

    Observation lowers the configured concurrency where enough was seen of the objective being missed at what is planned
    for, by half at most; it raises it only under `Learn.BOTH`. Throughput and tokens a second move with concurrency.

    Args:
        given: from a load test, the configuration, or `default`; its `source` says which.
        observed: what was seen on the GPUs in use; None without.
        learn: what that may do.
        headroom: share by which load may step up and still stay under what was observed.
    """
    source = Source(given.source) if given.source in tuple(Source) else Source.CONFIGURED
    if observed is None or learn is Learn.OFF or not observed.sure:
        return Chosen(given, source, _says_so(given, source))
    if (too_high := _lowered(given, observed, headroom=headroom)) is not None:
        told = f"the objective was missed at {observed.missed:.3g} in flight a replica, {_figures(observed)}"
        if learn is Learn.WARN:
            return Chosen(
                given,
                source,
                f"{told}; {_advised(given, 'lower capacity.concurrency to', too_high)}, or set learn: lower",
            )
        least = given.concurrency * LOWEST
        short = "" if too_high >= least else f"; as low as observation goes, {too_high:.3g} would be right"
        wanted = max(too_high, least)
        return Chosen(_scaled(given, wanted), Source.OBSERVED, f"{told}; planned for {wanted:.3g}{short}")
    if (more := _raised(given, observed, headroom=headroom)) is not None:
        told = f"the objective was met at {observed.met:.3g} in flight a replica, {_figures(observed)}"
        if learn is not Learn.BOTH:
            return Chosen(given, source, f"{told}; {_advised(given, 'capacity.concurrency could be', more)}")
        return Chosen(_scaled(given, more), Source.OBSERVED, f"{told}; planned for {more:.3g}")
    return Chosen(given, source, _says_so(given, source))


def default() -> Profile:
    """Where nobody said what a replica sustains: so little that any does, which asks for too many replicas."""
    return Profile(concurrency=CAUTIOUS, source=Source.DEFAULT)


def _says_so(given: Profile, source: Source) -> str:
    if source is not Source.DEFAULT:
        return ""
    return f"capacity is not known: planned for a cautious {given.concurrency:g} in flight; set capacity.concurrency"


def _advised(given: Profile, said: str, concurrency: float) -> str:
    """What the configuration should say."""
    if given.by_size is not None:
        return f"repeat the tests of capacity.load_tests, {concurrency:.3g} would be right at the sizes of the first"
    return f"{said} {concurrency:.3g}"


def _lowered(given: Profile, observed: Observed, *, headroom: float) -> float | None:
    """The concurrency under what was missed, where that is less than what is given."""
    if observed.missed is None:
        return None
    knee = observed.met if observed.met is not None else observed.missed * LOWEST
    target = concurrency_target(knee=knee, headroom=headroom)
    return target if observed.missed <= given.concurrency and target < given.concurrency else None


def _raised(given: Profile, observed: Observed, *, headroom: float) -> float | None:
    if observed.met is None:
        return None
    target = concurrency_target(knee=observed.met, headroom=headroom)
    return target if target > given.concurrency else None


def _figures(observed: Observed) -> str:
    return f"{observed.windows:.0f} windows of 5 min, {observed.confidence:.0%} agree"


def _scaled(given: Profile, concurrency: float) -> Profile:
    share = concurrency / given.concurrency
    rates = {name: getattr(given, name) for name in ("throughput", "tokens_in", "tokens_out")}
    scaled = {name: rate * share for name, rate in rates.items() if rate is not None}
    return dataclasses.replace(given, concurrency=concurrency, source=Source.OBSERVED, **scaled)
