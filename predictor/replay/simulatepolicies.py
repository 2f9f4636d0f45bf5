"""Which policies are simulated: each as it is usually set up, or with the value that one's own has."""

import dataclasses
import math

from predictor.errors import ConfigurationError

STATIC = "static"
POSITIVE = (0.0, math.inf)
# What a value must be above, and at most; shares of a cache, of a supply and of a history end at 1.
BOUNDS = {
    "hpa-kv": (0.0, 1.0),
    "wva-v1": (0.1, 1.0),  # kvSpareTrigger, which stays at its default, must lie below
    "wva-v2": (0.0, 1.0),
    "keda-cron-day": (0.0, 1.0),
    "keda-cron-week": (0.0, 1.0),
    "floorcast": (-1.0, math.inf),  # burst headroom: at -1 a replica would be planned for without end
    "floorcast-reactive": (-1.0, math.inf),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """A policy by its name; `value` of its one knob, None for the usual one and a sweep around it."""

    name: str
    value: float | None = None

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return self.name if self.value is None else f"{self.name}={self.value:.12g}"


def parse(text: str) -> Chosen:
    """NAME or NAME=VALUE.

    Raises ConfigurationError for a value outside the policy's bounds; which names are known
    depends on the workload.
    """
    name, sign, value = text.partition("=")
    if not sign:
        return Chosen(name)
    try:
        number = float(value)
    except ValueError:
        raise ConfigurationError(f"--policy: {text!r}: {value!r} must be a number, as hpa-in-flight=20") from None
    above, most = BOUNDS.get(name, POSITIVE)
    if not (above < number <= most and math.isfinite(number)):
        bound = (
            f"lie above {above:g}, and at {most:g} at most" if most < math.inf else f"be finite, and above {above:g}"
        )
        raise ConfigurationError(f"--policy: {name}={value}: must {bound}; {name} alone is as usually set up")
    if name == STATIC and number % 1:
        raise ConfigurationError(
            f"--policy: {name}={value}: must be a whole number of replicas, as {math.ceil(number)}"
        )
    return Chosen(name, number)


def check(chosen: Chosen, *, minimum: int, maximum: int) -> None:
    """Raises ConfigurationError where a fixed number of replicas lies outside what the fleet may have."""
    if chosen.name == STATIC and chosen.value is not None and not minimum <= chosen.value <= maximum:
        raise ConfigurationError(
            f"--policy: {chosen.label}: must lie in {minimum}..{maximum}, between --minimum and --maximum; change those"
        )
