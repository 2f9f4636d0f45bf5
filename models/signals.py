"""What can be known of a target at one moment, and how it is said that something is not known."""

import dataclasses
import enum
import math
from typing import TypeAlias


class Signal(enum.StrEnum):
    """One measured series of a target. The value is also the metric label and the key in the catalogue."""

    ARRIVALS = "arrivals"  # requests per second that arrive, served or not
    IN_FLIGHT = "in_flight"  # requests in running batches, over all replicas
    WAITING = "waiting"  # requests accepted and not yet in a batch, over all replicas
    KV_USAGE = "kv_usage"  # mean share of KV-cache tokens in use over the replicas, 0 to 1
    TTFT_P95 = "ttft_p95"  # seconds to the first token, 95th percentile
    ITL_P95 = "itl_p95"  # seconds between tokens, 95th percentile
    DURATION_MEAN = "duration_mean"  # seconds from arrival to the last token, mean
    TOKENS_IN = "tokens_in"  # prompt tokens per second
    TOKENS_OUT = "tokens_out"  # generated tokens per second
    COMPLETIONS = "completions"  # requests per second that end
    REPORTING = "reporting"  # pods whose series arrive; fewer than are Ready means that sums are too low


class Cause(enum.StrEnum):
    """Why a value is not known. The value is also the metric label."""

    SOURCE_DOWN = "source_down"  # the source did not answer, or answered with an error
    EMPTY = "empty"  # the source answered and had no series
    NOT_FINITE = "not_finite"  # NaN or infinity came back
    STALE = "stale"  # the newest sample is too old
    PARTIAL = "partial"  # some of the replicas that should report did not
    NEGATIVE = "negative"  # a quantity that cannot be negative was
    STALLED = "stalled"  # requests run and none of them ends: what is in flight is no demand
    NOT_ASKED = "not_asked"  # no query is configured for this signal


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """A value and the Unix time (seconds) of the sample it came from."""

    value: float
    at: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"value is {self.value!r}: a reading that is not finite is Unknown(NOT_FINITE)")


@dataclasses.dataclass(frozen=True, slots=True)
class Unknown:
    """No value, and why. It never stands for zero and never lowers anything."""

    cause: Cause
    detail: str = ""


Reading: TypeAlias = Known | Unknown
