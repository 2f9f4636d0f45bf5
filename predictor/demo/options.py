"""What `floorcast demo` can be told."""

import dataclasses
import enum
import math

from predictor.errors import ConfigurationError
from predictor.ports import Owner

DAY_HOURS = 24.0
MOST_DAYS = 8  # as far as a forecast looks back


class Output(enum.StrEnum):
    """Where the demo tells what happened."""

    PAGE = "page"  # live, in the browser; the clock runs
    TABLE = "table"  # no page, no waiting: a summary for people
    JSON = "json"  # the same as one JSON object


class Rival(enum.StrEnum):
    """What the HPA of the fleet beside follows (and the one above Floorcast's floor)."""

    QUEUE = "queue"  # waiting requests, 2 a replica: the usual recipe
    LOAD = "load"  # requests running and waiting, 20 a replica: the careful one


@dataclasses.dataclass(frozen=True, slots=True)
class DemoOptions:
    """The demo's options, checked.

    Attributes:
        seed: of traffic and warm-ups; the same seed gives the same day.
        hours: simulated hours, from midnight.
        minutes: real minutes a simulated day takes on the page.
        output: page, table or JSON.
        owner: who owns the replica count of Floorcast's fleet: an HPA above a floor, or Floorcast itself.
        days: earlier days of generated history at the start; 0 for a cold start.
        rival: what the HPAs follow.
        host: address to serve the page on.
        port: port of the page; None for 8080, or a free one where that is taken.
        stay: keep serving the page when the day is over, until interrupted.
    """

    seed: int = 1
    hours: float = DAY_HOURS
    minutes: float = 10.0
    output: Output = Output.PAGE
    owner: Owner = Owner.HPA
    days: int = MOST_DAYS
    rival: Rival = Rival.QUEUE
    host: str = "127.0.0.1"
    port: int | None = None
    stay: bool = True

    def __post_init__(self) -> None:
        problems = [
            f"{flag} is {value:g}: must be {bound}; {remedy}"
            for flag, value, good, bound, remedy in (
                ("--seed", self.seed, self.seed >= 0, "0 or more", "any whole number names a day"),
                ("--hours", self.hours, 0 < self.hours <= DAY_HOURS * 7, "above 0 and at most 168", "24 is a day"),
                ("--minutes", self.minutes, 0 < self.minutes <= DAY_HOURS * 60, "above 0 and at most 1440",
                 "10 shows a day in ten minutes"),
                ("--days", self.days, 0 <= self.days <= MOST_DAYS, f"0 to {MOST_DAYS}", "0 is a cold start"),
                ("--port", self.port or 0, 0 <= (self.port or 0) < 2**16, "0 to 65535", "0 takes a free one"),
            )
            if not (math.isfinite(value) and good)
        ]  # fmt: skip
        if problems:
            raise ConfigurationError(problems)

    @property
    def speed(self) -> float:
        """Simulated seconds a real second."""
        return DAY_HOURS * 60 / self.minutes
