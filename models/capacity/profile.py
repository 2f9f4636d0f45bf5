"""What one replica of a target sustains."""

import dataclasses
import math

from models.capacity.sizes import BySize, Sizes


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """What one replica sustains while it meets the objectives.

    Attributes:
        concurrency: requests in flight one replica is planned for (T = K / (1 + burst headroom), K the knee).
        throughput: requests per second one replica sustains; None where not known.
        duration: seconds a request takes on an unloaded replica; None where not known.
        kv_tokens: KV-cache capacity in tokens; None where not known.
        kv_target: share of the KV cache that is planned for, 0..1.
        source: where these figures come from, for people ("configured", "measured", "default").
        tokens_in: prompt tokens per second one replica prefills; None where not known.
        tokens_out: tokens per second one replica generates; None where not known.
        by_size: how concurrency, throughput and duration change with the size of requests; None where not known.
    """

    concurrency: float
    throughput: float | None = None
    duration: float | None = None
    kv_tokens: float | None = None
    kv_target: float = 0.8
    source: str = "configured"
    tokens_in: float | None = None
    tokens_out: float | None = None
    by_size: BySize | None = None

    def __post_init__(self) -> None:
        for name in ("concurrency", "throughput", "duration", "kv_tokens", "tokens_in", "tokens_out"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value!r}: must be a positive number")
        if not 0 < self.kv_target <= 1:
            raise ValueError(f"kv_target is {self.kv_target!r}: must lie in (0, 1]")

    def sized(self, sizes: Sizes) -> "Profile":
        """The profile for requests of these sizes; as it is where it is not known how they matter.

        Tokens a second stay as they are: they count the size of requests already.
        """
        if self.by_size is None:
            return self
        throughput, concurrency = self.by_size.relative(sizes)
        return dataclasses.replace(
            self,
            concurrency=self.concurrency * concurrency,
            throughput=None if self.throughput is None else self.throughput * throughput,
            duration=None if self.duration is None else self.duration * concurrency / throughput,
        )


def concurrency_target(*, knee: float, headroom: float) -> float:
    """T = K / (1 + h): the load to plan for so that a step of share `headroom` still stays under the knee K.

    A replica planned at T absorbs a step of K / T - 1: T 40 under K 48 absorbs 20 %, 60 % needs T 30.
    """
    return knee / (1 + headroom)
