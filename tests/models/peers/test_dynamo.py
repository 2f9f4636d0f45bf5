import dataclasses

import pytest

from models.peers import engine
from models.peers.dynamo import DynamoSettings, Mode, Planner, Target
from models.peers.engine import Engine
from models.policy.context import Supply
from models.policy.protocol import Observation, Pod
from models.signals import Cause, Signal
from tests.fakes.observations import Value, at, observe


@dataclasses.dataclass(frozen=True)
class Linear:
    """10 ms a step, .1 ms a decoding sequence, .05 ms a prefill token; contexts cost nothing."""

    def step(self, *, decoding: float = 0, prefill: float = 0, context: float = 0, square: float = 0) -> float:
        assert context >= 0
        assert square >= 0
        return 10 + 0.1 * decoding + 0.05 * prefill


ENGINE = Engine(Linear(), kv_tokens=100_000, token_budget=2048, max_seqs=256)
PROMPT, OUTPUT = 1000.0, 200.0


def settings(mode: Mode = Mode.THROUGHPUT, **other: object) -> DynamoSettings:
    found = DynamoSettings(ENGINE, mode, predictor="constant")
    return dataclasses.replace(found, **other)


def traffic(rate: Value, *, replicas: int = 4, now: float = 0, ready: int | None = None) -> Observation:
    lengths: dict[Signal, Value] = {Signal.TOKENS_IN: None, Signal.TOKENS_OUT: None}
    if isinstance(rate, float):
        lengths = {Signal.TOKENS_IN: rate * PROMPT, Signal.TOKENS_OUT: rate * OUTPUT}
    return at(observe({Signal.ARRIVALS: rate, **lengths}, replicas=replicas, ready=ready), now)


def loaded(*pods: tuple[float, float, float], now: float = 0, warming: int = 0, rate: float = 10.0) -> Observation:
    """Pods by running, waiting and KV usage."""
    found = tuple(Pod(f"pod-{k}", running=run, waiting=wait, kv_usage=kv) for k, (run, wait, kv) in enumerate(pods))
    seen = traffic(rate, replicas=len(pods) + warming, now=now)
    return dataclasses.replace(seen, pods=found, supply=Supply(len(pods), warming))


def run(planner: Planner, rates: list[Value], *, replicas: int, every: float = 60.0) -> list[int]:
    course = []
    for k, rate in enumerate(rates):
        replicas = planner.decide(traffic(rate, replicas=replicas, now=every * k)).replicas
        course.append(replicas)
    return course


# ------------------------------------------------------------------------------------------------------------ capacity
def test_capacity_is_the_best_batch_within_the_objectives() -> None:
    """Context 1100, so b <= 90; prefill 5 a sequence: itl = 10 + .1 b + .25 b = 41.5 ms at 90, 90 / (200 x .0415)."""
    found = engine.capacity(ENGINE, prompt=1000, output=200, ttft=0.5, itl=0.05)
    assert found == pytest.approx(90 / (200 * 0.0415))


def test_a_tighter_objective_takes_a_smaller_batch() -> None:
    """itl <= 24 ms: b <= 40."""
    found = engine.capacity(ENGINE, prompt=1000, output=200, ttft=0.5, itl=0.024)
    assert found == pytest.approx(40 / (200 * 0.024))


def test_the_prefill_of_a_batch_has_to_fit_the_budget_beside_it() -> None:
    """ceil(b x 4000 / 10) <= 2048 - b: b = 5, with 2000 tokens: itl 110.5 ms."""
    found = engine.capacity(ENGINE, prompt=4000, output=10, ttft=9.0, itl=1.0)
    assert found == pytest.approx(5 / (10 * 0.1105))


def test_what_cannot_meet_its_objectives_is_taken_one_request_at_a_time() -> None:
    assert engine.capacity(ENGINE, prompt=1000, output=200, ttft=0.5, itl=0.001) == pytest.approx(1 / (200 * 0.01035))


def test_no_more_than_128_batches_are_tried_and_the_ends_are_among_them() -> None:
    roomy = Engine(Linear(), kv_tokens=1e9, max_seqs=1000)
    found = engine.capacity(roomy, prompt=10, output=1000, ttft=9.0, itl=9.0)
    assert found == pytest.approx(1000 / (1000 * 0.1105))


def test_an_engine_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="token budget above max_seqs"):
        Engine(Linear(), kv_tokens=1000, token_budget=100)


# ----------------------------------------------------------------------------------------------------------- slow loop
def test_defaults() -> None:
    found = DynamoSettings(ENGINE)
    assert (found.slow, found.fast, found.ttft, found.itl) == (180, 5, 0.5, 0.05)
    assert (found.predictor, found.minimum, found.slow_change) == ("arima", 1, 8)


def test_each_three_minutes_the_forecast_over_the_capacity_decides() -> None:
    """50 requests a second at 10.84 a replica: 5."""
    assert run(Planner(settings()), [50.0] * 7, replicas=2) == [2, 2, 2, 5, 5, 5, 5]


def test_a_change_is_capped_at_eight() -> None:
    assert run(Planner(settings()), [500.0] * 7, replicas=2) == [2, 2, 2, 10, 10, 10, 18]
    assert run(Planner(settings()), [1.0] * 4, replicas=20) == [20, 20, 20, 12]


def test_a_failed_query_reads_as_no_demand() -> None:
    """4 -> 1 replicas."""
    assert run(Planner(settings()), [40.0] * 4 + [None] * 3, replicas=4) == [4] * 6 + [1]


def test_the_floor_never_expires_when_metrics_stop() -> None:
    assert run(Planner(settings()), [40.0] * 4 + [Cause.EMPTY] * 30, replicas=2) == [2, 2, 2, *[4] * 31]


def test_with_the_kalman_filter_a_ramp_is_met_one_interval_ahead() -> None:
    """10 requests a second more each interval."""
    planner = Planner(settings(predictor="kalman"))
    course = run(planner, [10.0 * (1 + k // 3) for k in range(28)], replicas=1)
    assert course[-1] == 10  # 100 a second expected in the tenth interval, at 10.84 a replica


def test_caution_multiplies_the_forecast() -> None:
    assert run(Planner(settings(caution=2.0)), [50.0] * 4, replicas=5)[-1] == 10


# ----------------------------------------------------------------------------------------------------------- fast loop
def test_with_static_thresholds_one_full_engine_is_enough_to_add_one() -> None:
    rule = settings(Mode.LOAD, target=Target.THROUGHPUT)
    # 10 waiting x (1000 + 100) tokens = .11 of the cache
    assert Planner(rule).decide(loaded((90, 10, 0.95), (9, 0, 0.1))).replicas == 3
    assert Planner(rule).decide(loaded((90, 0, 0.95), (9, 0, 0.1))).replicas == 2


def test_with_static_thresholds_all_must_be_idle_to_take_one_away() -> None:
    rule = settings(Mode.LOAD, target=Target.THROUGHPUT)
    assert Planner(rule).decide(loaded((9, 0, 0.3), (9, 0, 0.3))).replicas == 1
    assert Planner(rule).decide(loaded((9, 0, 0.3), (9, 0, 0.65))).replicas == 2
    assert Planner(rule).decide(loaded((9, 0, 0.55), (9, 0, 0.55))).replicas == 2  # .55 x 2 >= 1: vetoed


def test_the_latency_target_has_lower_thresholds() -> None:
    rule = settings(Mode.LOAD, target=Target.LATENCY)
    assert Planner(rule).decide(loaded((40, 0, 0.45), (9, 0, 0.0))).replicas == 3
    assert Planner(rule).decide(loaded((9, 0, 0.05), (9, 0, 0.05))).replicas == 1


def test_by_objectives_one_is_added_only_when_all_engines_exceed_them() -> None:
    """20 waiting prompts of 1000 take 11 steps of over .1 s each: TTFT above .5 s."""
    rule = settings(Mode.LOAD)
    assert Planner(rule).decide(loaded((90, 20, 0.9), (90, 20, 0.9))).replicas == 3
    assert Planner(rule).decide(loaded((90, 20, 0.9), (5, 0, 0.1))).replicas == 2


def test_by_objectives_one_goes_when_the_others_stay_well_inside_with_its_load() -> None:
    rule = settings(Mode.LOAD)
    assert Planner(rule).decide(loaded((10, 0, 0.1), (10, 0, 0.1))).replicas == 1
    # 60 more each: itl 10 + .35 x 120 = 52 ms, above .8 x 50
    assert Planner(rule).decide(loaded((60, 0, 0.4), (60, 0, 0.4))).replicas == 2
    assert Planner(rule).decide(loaded((10, 0, 0.6), (10, 0, 0.6))).replicas == 2  # the KV would not fit
    assert Planner(rule).decide(loaded((1, 0, 0.0))).replicas == 1  # the last one stays


def test_while_pods_start_nothing_is_added_and_a_reduction_has_to_be_said_twice() -> None:
    planner = Planner(settings(Mode.LOAD))
    full = ((90.0, 20.0, 0.9),) * 2
    assert planner.decide(loaded(*full, warming=1)).replicas == 3
    idle = ((5.0, 0.0, 0.1),) * 2
    assert planner.decide(loaded(*idle, warming=1, now=5)).replicas == 3
    assert planner.decide(loaded(*idle, warming=1, now=10)).replicas == 2


def test_between_two_fast_loops_nothing_changes() -> None:
    planner = Planner(settings(Mode.LOAD))
    full = ((90.0, 20.0, 0.9),) * 2
    assert [planner.decide(loaded(*full, now=now)).replicas for now in (0.0, 2.0, 4.0, 5.0)] == [3, 2, 2, 3]


def test_load_mode_without_pods_or_pages_changes_nothing() -> None:
    assert Planner(settings(Mode.LOAD)).decide(traffic(10.0)).replicas == 4
    blind = dataclasses.replace(traffic(10.0), pods=(Pod("a"), Pod("b")))
    assert Planner(settings(Mode.LOAD)).decide(blind).replicas == 4


def test_in_the_hybrid_the_forecast_is_a_floor_under_the_load() -> None:
    planner = Planner(settings(Mode.BOTH))
    idle = ((1.0, 0.0, 0.0),) * 6
    course, count = [], 6
    for k in range(6):
        seen = loaded(*idle[:count], now=60.0 * k, rate=50.0)
        count = planner.decide(seen).replicas
        course.append(count)
    assert course == [5, 4, 3, 5, 5, 5]  # the floor of 5 stands from 180 s on


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="predictor is 'prophet'"):
        DynamoSettings(ENGINE, predictor="prophet")
    with pytest.raises(ValueError, match="caution is 0"):
        DynamoSettings(ENGINE, caution=0)
