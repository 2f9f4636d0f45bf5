"""What the README says of the demo's day is what the demo comes to."""

import re
from pathlib import Path

import pytest

from predictor.demo.options import DemoOptions, Rival
from tests.predictor.demo.played import played

README = Path(__file__).resolve().parents[3] / "README.md"
QUEUE = (
    r"Of the (?P<requests>[\d,]+) requests of seed 1's day, (?P<late>[\d.]+) % get their first token later than a"
    r" second with a floor under the HPA, for (?P<hours>[\d.]+) replica-hours; of the same HPA on waiting requests"
    r" alone (?P<hpa_late>[\d.]+) % are late and as many get no answer within a minute, for (?P<hpa_hours>[\d.]+)\."
)
LOAD = (
    r"`--rival load`\) gains little from a floor on that day: alone it has (?P<hpa_late>[\d.]+) % late in"
    r" (?P<hpa_hours>[\d.]+) replica-hours, with the floor (?P<late>[\d.]+) % in (?P<hours>[\d.]+)\."
)


@pytest.mark.timeout(900)  # a whole day: half a minute of one core
@pytest.mark.parametrize(("rival", "sentence"), [(Rival.QUEUE, QUEUE), (Rival.LOAD, LOAD)])
def test_the_figures_of_the_readme_are_those_of_the_day(rival: Rival, sentence: str) -> None:
    found = re.search(sentence, " ".join(README.read_text(encoding="utf-8").split()))
    assert found is not None, "the sentence is worded differently; change it here as well"
    said = {name: float(value.replace(",", "")) for name, value in found.groupdict().items()}
    outcome = played(DemoOptions(rival=rival))
    floor, hpa = outcome["floorcast"], outcome["hpa"]
    requests = floor["requests"]
    assert said.get("requests", requests) == requests == hpa["requests"]
    # A hair's breadth of a forecast moves a few hundred requests: a tenth of the share.
    assert said["late"] == pytest.approx(100 * floor["missed_ttft"] / requests, rel=0.1)
    assert said["hpa_late"] == pytest.approx(100 * hpa["missed_ttft"] / requests, rel=0.1)
    if rival is Rival.QUEUE:
        assert said["hpa_late"] == pytest.approx(100 * hpa["rejected"] / requests, rel=0.1)
    assert said["hours"] == pytest.approx(floor["replica_hours"], rel=0.01)
    assert said["hpa_hours"] == pytest.approx(hpa["replica_hours"], rel=0.01)
