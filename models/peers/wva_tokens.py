"""The second analyser of llm-d's WVA (V2): capacity in KV tokens, learnt from what saturated replicas held."""

import dataclasses
import statistics
from collections import deque
from collections.abc import Mapping, Sequence

from models.peers import answer, wva
from models.peers.windows import Window
from models.peers.wva import Variant
from models.policy.decision import Decision
from models.policy.protocol import Observation

SAMPLES = 10
LENGTH_WINDOW = 300.0  # seconds over which prompt and output lengths are averaged
SATURATED_QUEUE = 5.0
KV_SHARE = 0.80


@dataclasses.dataclass(frozen=True, slots=True)
class TokenSettings:
    """V2's thresholds and what it knows of an engine.

    Attributes:
        kv_tokens: KV cache of one replica, tokens.
        up: share of the supply at which it adds.
        down: share at which it takes away.
        token_budget: max_num_batched_tokens.
        max_seqs: max_num_seqs.
        prefill: the variant only prefills.
    """

    kv_tokens: float
    up: float = 0.85
    down: float = 0.70
    token_budget: float = 2048.0
    max_seqs: float = 256.0
    prefill: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.down < self.up:
            raise ValueError(f"down {self.down!r} and up {self.up!r}: must be 0 < down < up")
        if not self.kv_tokens > 0:
            raise ValueError(f"kv_tokens is {self.kv_tokens!r}: must be positive")


@dataclasses.dataclass(frozen=True, slots=True)
class Lengths:
    """Mean prompt and output tokens of a request; 0 where nothing is known."""

    prompt: float = 0.0
    output: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Analysed:
    """Demand of a variant and the capacity of one of its replicas, tokens."""

    demand: float
    each: float


def analyse(variant: Variant, lengths: Lengths, history: deque[float], settings: TokenSettings) -> Analysed:
    """One variant; saturated replicas add what they hold to `history`."""
    demand, effective = 0.0, []
    per_waiting = lengths.prompt + (0 if settings.prefill else lengths.output)
    bound = KV_SHARE * settings.kv_tokens
    for one in variant.replicas:
        use = round(one.kv * settings.kv_tokens)
        demand += use + one.queue * per_waiting
        effective.append(min(bound, _compute_bound(use, one.queue, lengths, history, settings)))
    return Analysed(demand, statistics.median(effective) if effective else 0.0)


def _compute_bound(use: float, queue: float, lengths: Lengths, history: deque[float], settings: TokenSettings) -> float:
    """k2: what it holds when saturated; the mean of such samples; an estimate; the KV bound."""
    if queue >= SATURATED_QUEUE and use > 0:
        history.append(use)
        return use
    if history:
        return sum(history) / len(history)
    tokens = lengths.prompt + lengths.output
    if tokens > 0 and lengths.output > 0:
        batch = min(settings.token_budget * lengths.output / tokens, settings.max_seqs)
        return batch * (lengths.prompt + lengths.output / 2)
    return KV_SHARE * settings.kv_tokens


def balance(variants: Sequence[Variant], analysed: Mapping[str, Analysed], settings: TokenSettings) -> dict[str, int]:
    """Replicas by variant: added where a token is cheapest, taken away where a replica is dearest."""
    wanted = {variant.name: variant.current for variant in variants}
    each = {name: one.each for name, one in analysed.items()}
    demand = sum(one.demand for one in analysed.values())
    coming = sum((len(v.replicas) + v.pending) * each[v.name] for v in variants)
    serving = sum(len(v.replicas) * each[v.name] for v in variants)
    missing, spare = max(0.0, demand / settings.up - coming), max(0.0, serving - demand / settings.down)
    if missing > 0:
        _add(variants, each, wanted, missing)
    else:
        _take(variants, each, wanted, spare)
    return wanted


def _add(variants: Sequence[Variant], each: Mapping[str, float], wanted: dict[str, int], missing: float) -> None:
    while missing > 1e-9:  # noqa: PLR2004  (rounding)
        able = [v for v in variants if each[v.name] > 0 and wanted[v.name] < v.maximum]
        if not able:
            return
        best = min(able, key=lambda v: v.cost / each[v.name])
        k = min(answer.ceil(missing / each[best.name]), best.maximum - wanted[best.name])
        wanted[best.name] += k
        missing -= k * each[best.name]


def _take(variants: Sequence[Variant], each: Mapping[str, float], wanted: dict[str, int], spare: float) -> None:
    falling = sorted(variants, key=lambda v: v.cost, reverse=True)
    for place, variant in enumerate(falling):
        if each[variant.name] <= 0:
            continue
        fewest = max(variant.minimum, 1) if place == len(falling) - 1 else variant.minimum
        k = max(min(int((spare + 1e-9) // each[variant.name]), wanted[variant.name] - fewest), 0)
        wanted[variant.name] -= k
        spare -= k * each[variant.name]


class Tokens:
    """V2 on a target that is a model's only variant."""

    def __init__(self, settings: TokenSettings) -> None:
        self.settings = settings
        self._reports = wva.Reports()
        self._history: deque[float] = deque(maxlen=SAMPLES)
        self._rates = {name: Window(LENGTH_WINDOW) for name in ("prompt", "output", "requests")}

    def decide(self, observation: Observation) -> Decision:
        """One tick."""
        for name, value in (wva.lengths(observation) or {}).items():
            self._rates[name].add(observation.now, value)
        replicas = self._reports.look(observation)
        if not replicas:
            return answer.held(observation, "no replica reports")
        one = wva.alone(observation, replicas)
        found = analyse(one, self._lengths(observation.now), self._history, self.settings)
        wanted = balance([one], {one.name: found}, self.settings)[one.name]
        return answer.decision(observation, wanted, f"{found.demand:.0f} tokens at {found.each:.0f} a replica")

    def _lengths(self, now: float) -> Lengths:
        means = {name: window.mean(now) or 0.0 for name, window in self._rates.items()}
        requests = means["requests"]
        return Lengths(means["prompt"] / requests, means["output"] / requests) if requests > 0 else Lengths()
