"""A warm start: the days before, generated. Everything after midnight is measured on the replicas' pages."""

from collections.abc import Mapping, Sequence

import numpy as np

from models.series import Floats, Series
from models.signals import Cause, Signal, Unknown
from predictor.demo import scenario
from predictor.demo.traffic import DAY, Days
from predictor.ports import Readings, SignalSource
from predictor.targets import Target


class WarmStart:
    """A source with a past: readings come from the source behind it, history is generated from the days before."""

    def __init__(self, source: SignalSource, traffic: Days, *, seed: int, days: int) -> None:
        self._source = source
        self._traffic = traffic
        self._seed = seed
        self._begins = scenario.MIDNIGHT - days * DAY

    def read(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Readings]:
        """What the source behind reads."""
        return self._source.read(targets, now=now)

    def history(
        self, targets: Sequence[Target], signal: Signal, *, since: float, until: float, step: float
    ) -> Mapping[str, Series | Unknown]:
        """The generated days up to midnight; nothing from before them."""
        first = max(since, self._begins)
        last = min(until, scenario.MIDNIGHT)
        start = np.ceil(first / step) * step
        times = np.arange(start, last + step / 2, step)
        values = self._values(signal, times - scenario.MIDNIGHT, step=step)
        answer: Series | Unknown = Unknown(Cause.EMPTY)
        if values is not None and self._begins < scenario.MIDNIGHT:
            answer = Series(float(start), step, values)
        return {target.key: answer for target in targets}

    def _values(self, signal: Signal, times: Floats, *, step: float) -> Floats | None:
        """Poisson noise around the rate; in flight by Little's law."""
        rng = np.random.default_rng([self._seed, list(Signal).index(signal)])
        rates = self._traffic.rate(np.minimum(times, 0) - step / 2)
        if signal is Signal.ARRIVALS:
            return rng.poisson(rates * step) / step
        if signal is Signal.IN_FLIGHT:
            return rng.poisson(rates * scenario.DURATION).astype(np.float64)
        if signal is Signal.DURATION_MEAN:
            return np.full(len(times), scenario.DURATION)
        return None
