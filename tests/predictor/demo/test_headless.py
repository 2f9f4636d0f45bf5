import json

import pytest

from predictor import demo
from predictor.demo import pages, summary
from predictor.demo.options import DemoOptions, Output
from predictor.demo.stage import Stage
from predictor.ports import Owner
from tests.predictor.demo.played import played

MEASURED = ("requests", "missed_ttft", "rejected", "replica_hours", "starts")


def test_json_is_one_object_with_both_fleets_and_nothing_else_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.run(DemoOptions(hours=0.25, days=0, seed=3, output=Output.JSON)) == 0
    out, err = capsys.readouterr()
    outcome = json.loads(out)
    assert (outcome["seed"], outcome["simulated_seconds"]) == (3, 900)
    assert all(isinstance(outcome[side][name], int | float) for side in ("floorcast", "hpa") for name in MEASURED)
    assert outcome["floorcast"]["requests"] == outcome["hpa"]["requests"] > 100
    assert outcome["forecast"]["arrivals"]["scored"] > 0
    assert "Simulating" in err


def test_the_table_shows_both_fleets_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.run(DemoOptions(hours=0.1, days=1, output=Output.TABLE)) == 0
    out = capsys.readouterr().out
    for words in ("Floorcast", "HPA on queue", "replica-hours", "first token later than", "No difference on no answer"):
        assert words in " ".join(out.split())


@pytest.mark.parametrize("owner", list(Owner))
def test_the_same_seed_gives_the_same_day(owner: Owner) -> None:
    first, again, other = (played(DemoOptions(hours=0.3, days=1, seed=seed, owner=owner)) for seed in (4, 4, 5))
    assert first == again
    assert first["floorcast"] != other["floorcast"]


def test_a_cold_start_decides_from_its_first_readings_on() -> None:
    stage = Stage(DemoOptions(hours=0.2, days=0))
    source = pages.in_process(stage)
    stage.begin(source)
    assert stage.entry.decision is not None
    while not stage.over:
        stage.step()
    source.close()
    assert stage.frames[0].band == {}
    assert stage.frames[-1].band


def test_a_step_before_the_beginning_is_refused() -> None:
    with pytest.raises(RuntimeError, match="begin"):
        Stage(DemoOptions()).step()


def test_each_fleet_accounts_for_every_request() -> None:
    outcome = played(DemoOptions(hours=0.5, days=1, seed=6))
    for name in ("floorcast", "hpa"):
        side = outcome[name]
        assert isinstance(side, dict)
        assert side["requests"] == side["finished"] + side["in_flight"] + side["rejected"]


def side(**values: float) -> dict[str, float]:
    return {"missed_ttft": 10, "rejected": 0, "replica_hours": 5.0, "starts": 3} | values


def test_the_verdict_says_where_floorcast_is_worse() -> None:
    said = summary.verdict(side(missed_ttft=4, replica_hours=6.0), side())
    assert "Floorcast did better on first token later than 1 s (4 against 10)" in said
    assert "The HPA did better on replica-hours, warming included (6.0 against 5.0)" in said
    assert "No difference on no answer (0 against 0), replicas started (3 against 3)" in said


def test_the_verdict_does_not_claim_what_is_not_so() -> None:
    said = summary.verdict(side(missed_ttft=40), side())
    assert "Floorcast did better" not in said
    assert "The HPA did better on first token later" in said


def test_the_promise_is_fewer_misses_at_no_more_hours() -> None:
    assert summary.promise_kept(side(missed_ttft=9), side())
    assert not summary.promise_kept(side(missed_ttft=9, replica_hours=5.1), side())
    assert not summary.promise_kept(side(), side())
    assert not summary.promise_kept(side(missed_ttft=9, rejected=1), side())
