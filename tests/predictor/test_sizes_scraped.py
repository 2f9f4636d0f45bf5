"""Sizes of requests end to end: pages of vLLM over HTTP -> counters -> sizes -> needs -> the floor that is written."""

import dataclasses
from collections import deque
from collections.abc import Iterator

import pytest

from models.capacity import sizes
from models.capacity.profile import Profile
from models.capacity.sizes import LoadTest, Sizes
from models.capacity.sizing import NeedKind, Plan
from models.policy.context import Supply
from models.policy.decision import Reason
from predictor import explaining
from predictor.signals import scrape, shelf
from predictor.targets import Target
from tests.fakes import exposition
from tests.fakes.exposition import MODEL, Line, level
from tests.fakes.stage import TARGET, Stage
from tests.fakes.world import CALM
from tests.servers import http

STEP = 1.0  # seconds between two requests that a pod begins, at one a second
SERVES = 20.0  # seconds that a request takes
TESTS = [LoadTest(Sizes(1000, output), 4 * 100 / output, 80) for output in (100, 200)]
PROFILE = Profile(80, throughput=4, by_size=sizes.fitted([*TESTS, LoadTest(Sizes(2000, 100), 2, 80)]))
SIZED = dataclasses.replace(
    TARGET, model=MODEL, objectives=dataclasses.replace(TARGET.objectives, profile=PROFILE, raise_quantile=0.5)
)
FIVE = dataclasses.replace(CALM, standing=5, replicas=5, supply=Supply(ready=2))


@dataclasses.dataclass
class Pod:
    """A vLLM pod: prompts count when a request begins, outputs token by token, requests when they end.

    `rate` is of requests a second, `of` the sizes of those that begin now.
    """

    rate: float = 5.0
    of: Sizes = Sizes(1000, 100)  # noqa: RUF009  (frozen)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Counters begin at zero, and what ran is lost."""
        self.prompts = self.outputs = self.began = self.ended = 0.0
        self.runs: deque[tuple[float, float, float]] = deque()  # when it ends, how many, their tokens a second

    def advance(self, to: float) -> None:
        while self.now < to:
            self.now += STEP
            count = self.rate * STEP
            self.began += count
            self.prompts += count * self.of.prompt
            self.runs.append((self.now + SERVES, count, count * self.of.output / SERVES))
            while self.runs[0][0] <= self.now:
                self.ended += self.runs.popleft()[1]
            self.outputs += sum(tokens for _, _, tokens in self.runs) * STEP

    def lines(self) -> list[Line]:
        own = {"model_name": MODEL, "engine": "0"}
        return [
            level("vllm:num_requests_running", sum(count for _, count, _ in self.runs), **own),
            level("vllm:num_requests_waiting", 0.0, **own),
            level("vllm:prompt_tokens_total", self.prompts, **own),
            level("vllm:generation_tokens_total", self.outputs, **own),
            level("vllm:request_success_total", self.ended * 0.9, **own, finished_reason="stop"),
            level("vllm:request_success_total", self.ended * 0.1, **own, finished_reason="length"),
            level("vllm:time_to_first_token_seconds_bucket", self.began, **own, le="+Inf"),
            level("vllm:time_to_first_token_seconds_count", self.began, **own),
            level("vllm:time_to_first_token_seconds_sum", self.began * 0.1, **own),
        ]


class Scene:
    """Two pods that serve ten requests a second, and the loops over their pages."""

    def __init__(self) -> None:
        self.pods = {"a": Pod(), "b": Pod()}
        self.server = http.Server("127.0.0.1", 0, self._page)
        self.source = scrape.ScrapeSource(scrape.ScrapeSettings(workers=1), shelf.load(), pages=self._pages)
        self.stage = Stage(self.source, target=SIZED, workload=FIVE)  # type: ignore[arg-type]
        for pod in self.pods.values():
            pod.now = self.stage.clock.time - 600
            pod.advance(self.stage.clock.time)

    def serve(self, minutes: float, *, rate: float = 10.0, of: Sizes = TESTS[0].sizes) -> "Scene":
        for pod in self.pods.values():
            pod.rate, pod.of = rate / len(self.pods), of
        self.stage.pass_time(60 * minutes)
        return self

    @property
    def reacting(self) -> Plan:
        planned = self.stage.entry.basis.context.reacting
        assert isinstance(planned, Plan)
        return planned

    def told(self) -> tuple[float, float]:
        found = self.stage.entry.sizes
        return found.prompt, found.output

    def _pages(self, _target: Target) -> list[scrape.Page]:
        return [scrape.Page(name, f"http://127.0.0.1:{self.server.port}/{name}") for name in self.pods]

    def _page(self, path: str) -> http.Answer:
        pod = self.pods[path[1:]]
        pod.advance(self.stage.clock.time)
        return http.Answer(exposition.page(pod.lines()), content_type="text/plain; version=0.0.4")


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    with made.server:
        yield made
    made.source.close()


def test_requests_that_grow_are_seen_on_the_pages_and_planned_for(scene: Scene) -> None:
    scene.serve(20)
    assert scene.told() == pytest.approx((1000, 100), rel=0.02)
    need = scene.reacting.binding
    assert (need.kind, need.replicas) == (NeedKind.ARRIVALS, 3)  # 10 a second at 4 a replica
    assert need.per_replica == pytest.approx(4, rel=0.02)
    assert scene.stage.standing() == 3  # from five, by steps

    scene.serve(45, of=Sizes(1000, 200))
    assert scene.told() == pytest.approx((1000, 200), rel=0.05)
    need = scene.reacting.binding
    assert need.demand == pytest.approx(10, rel=0.1)
    assert need.per_replica == pytest.approx(2, rel=0.05)
    assert scene.stage.standing() in (5, 6)  # at a little more or less than 2

    scene.serve(45, of=Sizes(2000, 200))
    assert scene.told() == pytest.approx((2000, 200), rel=0.05)
    assert scene.reacting.binding.per_replica == pytest.approx(1, rel=0.08)
    assert scene.stage.standing() in (10, CALM.maximum)
    told = explaining.capacity(scene.stage.entry)
    assert told is not None
    assert told["sizes"]["throughput"] == pytest.approx(1, rel=0.08)


def test_nothing_comes_down_in_the_first_looks_and_then_sizes_are_known(scene: Scene) -> None:
    scene.stage.pass_time(20)
    assert scene.stage.entry.decision.reason in (Reason.HELD_UNKNOWN, Reason.HELD_NO_FORECAST)
    assert explaining.capacity(scene.stage.entry)["sizes"]["unknown"].startswith("sizes of requests are not known")  # type: ignore[index]
    scene.serve(2)
    assert explaining.capacity(scene.stage.entry)["sizes"]["unknown"] == ""  # type: ignore[index]


@pytest.mark.parametrize("times", [5.0, 0.2])
def test_a_load_that_jumps_is_no_other_requests(scene: Scene, times: float) -> None:
    scene.serve(20, of=Sizes(2000, 200))
    least, most = [], []
    for _ in range(20):
        scene.serve(0.5, rate=10 * times, of=Sizes(2000, 200))
        least.append(min(scene.told()[0] / 2000, scene.told()[1] / 200))
        most.append(max(scene.told()[0] / 2000, scene.told()[1] / 200))
    assert min(least) > 0.85
    assert max(most) < 1.15


def test_a_pod_that_starts_anew_is_no_other_requests(scene: Scene) -> None:
    scene.serve(20, of=Sizes(2000, 200))
    scene.pods["b"].restart()
    scene.serve(3, of=Sizes(2000, 200))
    assert scene.told() == pytest.approx((2000, 200), rel=0.1)


def test_through_an_hour_without_requests_sizes_stand_and_the_floor_comes_down(scene: Scene) -> None:
    scene.serve(30, of=Sizes(2000, 200))
    high = scene.stage.standing()
    scene.serve(60, rate=0.0)
    assert scene.told() == pytest.approx((2000, 200), rel=0.1)
    assert high >= 9
    assert scene.stage.standing() == CALM.base
