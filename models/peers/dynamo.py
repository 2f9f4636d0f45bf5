"""NVIDIA's Dynamo Planner (1.6.1): a slow loop that forecasts throughput, a fast one that looks at each engine's load.

Both known failures are kept: a query that failed reads as no demand, and a floor never expires when metrics stop.
"""

import dataclasses
import enum
import math

from models.peers import answer, predictors, sight
from models.peers.engine import Engine, capacity
from models.policy.decision import Decision
from models.policy.protocol import Observation, Pod
from models.signals import Cause, Signal, Unknown


class Mode(enum.StrEnum):
    """Which loops run."""

    THROUGHPUT = "throughput"
    LOAD = "load"
    BOTH = "both"


class Target(enum.StrEnum):
    """What the fast loop goes by: the objectives, or static thresholds of KV utilisation."""

    SLA = "sla"
    THROUGHPUT = "throughput"
    LATENCY = "latency"


THRESHOLDS = {Target.THROUGHPUT: (1.0, 0.6), Target.LATENCY: (0.4, 0.1)}
DOWN_SHARE = 0.8  # of an objective, which the others must keep after one replica left


@dataclasses.dataclass(frozen=True, slots=True)
class DynamoSettings:
    """The planner's arguments.

    Attributes:
        engine: what one replica can do, from its profile.
        mode: which loops run.
        target: what the fast loop goes by.
        predictor: constant, arima or kalman.
        slow: throughput_adjustment_interval, seconds.
        fast: load_adjustment_interval, seconds.
        ttft: objective, seconds.
        itl: objective, seconds.
        slow_change: replicas by which the slow loop changes at most.
        minimum: min_endpoint.
        caution: forecasts are multiplied by it and the fast loop's objectives and thresholds divided; 1 is the
            planner's own. Not an argument of the planner: its users tune the objectives instead.
    """

    engine: Engine
    mode: Mode = Mode.BOTH
    target: Target = Target.SLA
    predictor: str = "arima"
    slow: float = 180.0
    fast: float = 5.0
    ttft: float = 0.5
    itl: float = 0.05
    slow_change: int = 8
    minimum: int = 1
    caution: float = 1.0

    def __post_init__(self) -> None:
        if self.predictor not in predictors.PREDICTORS:
            raise ValueError(f"predictor is {self.predictor!r}: must be one of {', '.join(predictors.PREDICTORS)}")
        for name in ("slow", "fast", "ttft", "itl", "caution"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must be positive")


class Demand:
    """Requests and their lengths, by interval of the slow loop, and what comes next."""

    def __init__(self, predictor: str, *, interval: float) -> None:
        """`interval` in seconds."""
        self._interval = interval
        self._series = [predictors.PREDICTORS[predictor]() for _ in range(3)]
        self._readings = 0
        self._arrivals = self._sized = self._prompt = self._output = 0.0

    def look(self, seen: Observation) -> None:
        """One reading inside an interval."""
        arrivals = sight.value(seen, Signal.ARRIVALS)
        if arrivals is None:
            reading = seen.readings.get(Signal.ARRIVALS)
            if not (isinstance(reading, Unknown) and reading.cause is Cause.SOURCE_DOWN):
                return
            arrivals = 0.0  # a failed query reads as no demand
        self._readings, self._arrivals = self._readings + 1, self._arrivals + arrivals
        prompt, output = sight.value(seen, Signal.TOKENS_IN), sight.value(seen, Signal.TOKENS_OUT)
        if prompt is not None and output is not None:
            self._sized, self._prompt, self._output = (
                self._sized + arrivals, self._prompt + prompt, self._output + output,
            )  # fmt: skip

    def close(self) -> tuple[float, float, float] | None:
        """Ends an interval: requests a second, prompt and output tokens expected in the next; None without metrics."""
        if not self._readings:
            return None
        self._series[0].add(self._arrivals / self._readings * self._interval)
        if self._sized > 0:
            self._series[1].add(self._prompt / self._sized)
            self._series[2].add(self._output / self._sized)
        self._reset()
        requests, prompt, output = (one.ahead() for one in self._series)
        return requests / self._interval, prompt, output

    def _reset(self) -> None:
        self._readings = 0
        self._arrivals = self._sized = self._prompt = self._output = 0.0


class Planner:
    """Both loops; called every 5 s, or as often as one likes."""

    def __init__(self, settings: DynamoSettings) -> None:
        self.settings = settings
        self._demand = Demand(settings.predictor, interval=settings.slow)
        self._slow_at: float | None = None
        self._fast_at = -math.inf
        self._floor = 0
        self._lower_since: float | None = None
        self._lengths = (0.0, 0.0)

    def decide(self, observation: Observation) -> Decision:
        """What is due by now: Final = max(load, floor, min)."""
        settings, wanted = self.settings, observation.replicas
        slow = settings.mode is not Mode.LOAD and self._plan(observation)
        if settings.mode is Mode.THROUGHPUT and slow:
            wanted = self._floor
        elif settings.mode is not Mode.THROUGHPUT and observation.now - self._fast_at >= settings.fast - 1e-9:
            self._fast_at = observation.now
            wanted = max(self._load(observation), self._floor)
        else:
            wanted = max(wanted, self._floor)
        return answer.decision(observation, max(wanted, settings.minimum), f"floor {self._floor}, load {wanted}")

    # ----------------------------------------------------------------------------------------------------- slow loop
    def _plan(self, seen: Observation) -> bool:
        """A new floor when an interval has ended; the old one stays where there are no metrics."""
        self._demand.look(seen)
        if self._slow_at is None:
            self._slow_at = seen.now
        if seen.now - self._slow_at < self.settings.slow - 1e-9:
            return False
        self._slow_at = seen.now
        expected = self._demand.close()
        if expected is None:
            return False
        rate, prompt, output = expected
        self._lengths = (prompt, output)
        self._floor = self._needed(rate, max(round(prompt), 1), max(round(output), 1), seen.replicas)
        return True

    def _needed(self, rate: float, prompt: int, output: int, current: int) -> int:
        settings = self.settings
        each = capacity(settings.engine, prompt=prompt, output=output, ttft=settings.ttft, itl=settings.itl)
        want = max(answer.ceil(rate * settings.caution / each), settings.minimum)
        return min(max(want, current - settings.slow_change), current + settings.slow_change)

    # ----------------------------------------------------------------------------------------------------- fast loop
    def _load(self, seen: Observation) -> int:
        """One more, one fewer, or as many; while pods start, only fewer, and only if said again after 5 s."""
        way = self._way(seen)
        if way >= 0:
            self._lower_since = None
        if seen.supply.warming == 0:
            return seen.replicas + way
        if way < 0 and self._lower_since is None:
            self._lower_since = seen.now
        repeated = self._lower_since is not None and seen.now - self._lower_since >= self.settings.fast - 1e-9
        return seen.replicas - 1 if way < 0 and repeated else seen.replicas

    def _way(self, seen: Observation) -> int:
        """1, -1 or 0 by the engines that report."""
        self._remember_lengths(seen)
        # Pods that are alike are one object: each kind is estimated once.
        kinds = {id(pod): pod for pod in sight.pods(seen) if pod.ready and not pod.deleting}
        known = [pod for pod in kinds.values() if None not in (pod.running, pod.waiting, pod.kv_usage)]
        if not known:
            return 0
        n = seen.supply.ready
        spread = n / (n - 1) if n > 1 else math.inf
        return self._by_objectives(known, spread) if self.settings.target is Target.SLA else self._static(known, spread)

    def _remember_lengths(self, seen: Observation) -> None:
        rates = [sight.value(seen, signal) for signal in (Signal.ARRIVALS, Signal.TOKENS_IN, Signal.TOKENS_OUT)]
        arrivals, prompt, output = rates
        if arrivals and prompt is not None and output is not None:
            self._lengths = (prompt / arrivals, output / arrivals)

    def _static(self, pods: list[Pod], spread: float) -> int:
        up, down = (limit / self.settings.caution for limit in THRESHOLDS[self.settings.target])
        uses = [self._use(pod) for pod in pods]
        if any(use > up for use in uses):
            return 1
        return -1 if all(use < down for use in uses) and max(uses) * spread < up else 0

    def _use(self, pod: Pod) -> float:
        """Share of the KV cache in use, with what waits; above 1 when not all fits."""
        prompt, output = self._lengths
        return (pod.kv_usage or 0) + (pod.waiting or 0) * (prompt + output / 2) / self.settings.engine.kv_tokens

    def _by_objectives(self, pods: list[Pod], spread: float) -> int:
        ttft, itl = self.settings.ttft / self.settings.caution, self.settings.itl / self.settings.caution
        now = (self._estimates(pod, 1.0) for pod in pods)
        if all(own + queueing > ttft or step > itl for own, queueing, step in now):
            return 1
        if math.isinf(spread) or any(self._use(pod) * spread > 1 for pod in pods):
            return 0
        fewer = (self._estimates(pod, spread) for pod in pods)
        fits = all(queueing < DOWN_SHARE * (ttft - own) and step < DOWN_SHARE * itl for own, queueing, step in fewer)
        return -1 if fits else 0

    def _estimates(self, pod: Pod, times: float) -> tuple[float, float, float]:
        """A request's own time to the first token, its queueing, and the step of an engine under `times` its load."""
        engine, (prompt, output) = self.settings.engine, self._lengths
        running, waiting = (pod.running or 0.0) * times, (pod.waiting or 0.0) * times
        context = (pod.kv_usage or 0) * times * engine.kv_tokens / running if running else prompt + output / 2
        own = engine.ttft(max(prompt, 1.0), batch=running, context=context)
        queued = engine.ttft(waiting * prompt, batch=running, context=context) if waiting * prompt >= 1 else 0.0
        prefill = min(running * prompt / output, engine.token_budget) if output else 0.0
        return own, queued, engine.itl(running, context=context, prefill=prefill, prompt=prompt)
