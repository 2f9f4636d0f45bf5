"""Pages as engines write them, version by version, and as they come over HTTP."""

import time
from pathlib import Path

import pytest

from models.signals import Cause, Known, Reading, Signal, Unknown
from predictor.signals import scrape
from tests.fakes import cluster_objects, exposition, prometheus_api
from tests.fakes.exposition import MODEL
from tests.fakes.scraped import CATALOG, SERIAL, cause, vllm

SAMPLES = Path(__file__).parents[4] / "shared" / "samples" / "metrics"


def engine_of(sample: Path) -> str:
    return sample.name.split("_")[0]


def read_sample(sample: Path) -> dict[Signal, float]:
    """Signals of a page and, ten seconds later, of the same with all counters doubled."""
    engine = CATALOG[engine_of(sample)]
    page = sample.read_text()
    models = [
        line.split(f'{engine.model}="')[1].split('"')[0] for line in page.splitlines() if f'{engine.model}="' in line
    ]
    target = cluster_objects.target(engine=engine.name, model=models[0] if engine.model else "")
    shown = [page]
    source = scrape.ScrapeSource(SERIAL, CATALOG, pages=lambda _: [scrape.Page("a", "a")], fetch=lambda _: shown[0])
    source.read([target], now=0)
    shown[0] = doubled(page)
    readings = source.read([target], now=10)[target.key]
    return {signal: reading.value for signal, reading in readings.items() if isinstance(reading, Known)}


def doubled(page: str) -> str:
    ends = ("_total", "_count", "_sum", "_bucket", "_success", "_failure")
    lines = []
    for line in page.splitlines():
        series, _, shown = line.rpartition(" ")
        counter = not line.startswith("#") and series.split("{")[0].endswith(ends)
        lines.append(f"{series} {2 * float(shown)}" if counter else line)
    return "\n".join([*lines, ""])


SAMPLE_FILES = sorted(
    path
    for pattern in ("vllm_*", "sglang_*", "tgi_*", "lmdeploy_*", "trtllm_*")
    for path in SAMPLES.glob(f"{pattern}.prom")
)


@pytest.mark.skipif(not SAMPLE_FILES, reason=f"no sample pages of the engines in {SAMPLES}")
@pytest.mark.parametrize("sample", SAMPLE_FILES, ids=lambda path: path.stem)
def test_the_page_of_every_version_yields_every_signal(sample: Path) -> None:
    signals = read_sample(sample)
    live = {Signal.COMPLETIONS} if sample.name.startswith("vllm") else set()
    assert set(signals) == {*Signal} - {Signal.REPORTING, Signal.COMPLETIONS} | live  # a missing page tells itself
    assert signals[Signal.ARRIVALS] > 0
    assert 0 <= signals[Signal.KV_USAGE] <= 1
    if "real" not in sample.name:
        ranks = 2 if sample.stem.startswith("vllm_0.33.0_dp2") else 1
        assert signals[Signal.IN_FLIGHT] == (13 if ranks == 2 else 7)


def over_http(answer: prometheus_api.Answer, *, workers: int) -> Reading:
    """In flight, with one page as given and one that is healthy."""
    healthy = prometheus_api.Answer(exposition.page(vllm(0, running=7)).encode())
    with prometheus_api.PrometheusApi(lambda request: answer if request.path == "/b" else healthy) as pods:
        addresses = [scrape.Page(name, f"{pods.url}/{name}") for name in ("a", "b")]
        settings = scrape.ScrapeSettings(timeout=1.0, workers=workers)
        source = scrape.ScrapeSource(settings, CATALOG, pages=lambda _: addresses)
        target = cluster_objects.target(model=MODEL)
        reading = source.read([target], now=0)[target.key][Signal.IN_FLIGHT]
        source.close()
        return reading


@pytest.mark.parametrize("workers", [1, 4])
def test_pages_are_read_over_http(workers: int) -> None:
    answer = prometheus_api.Answer(exposition.page(vllm(0, running=5)).encode())
    assert over_http(answer, workers=workers) == Known(12.0, 0)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (prometheus_api.Answer(b"gone", status=404), "404 Client Error"),
        (prometheus_api.Answer(exposition.page(vllm(0)).encode(), cut=300), "IncompleteRead"),
        (prometheus_api.Answer(exposition.page(vllm(0)).encode(), status=500), "500 Server Error"),
        (prometheus_api.Answer(b"{}\n", headers={"Content-Type": "application/json"}), "none of the engine's series"),
    ],
)
def test_a_page_that_is_refused_or_cut_off_counts_as_missing(answer: prometheus_api.Answer, told: str) -> None:
    reading = over_http(answer, workers=4)
    assert isinstance(reading, Unknown)
    assert reading.cause is Cause.PARTIAL
    assert told in reading.detail


def test_a_pod_that_drips_its_page_is_given_up() -> None:
    slow = prometheus_api.Answer(exposition.page(vllm(0)).encode(), dripping=True)  # some 50 s in all
    start = time.monotonic()
    assert cause(over_http(slow, workers=4)) is Cause.PARTIAL
    assert time.monotonic() - start < 5.0
