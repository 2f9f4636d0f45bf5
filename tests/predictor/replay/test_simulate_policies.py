"""One's own autoscaler in `floorcast simulate`: a policy with the value of its target, between one's own bounds."""

import csv
from pathlib import Path

import pytest

from models.fleet import profiles
from predictor import cli
from predictor.errors import ConfigurationError
from predictor.replay import simulate, simulateload, simulatepolicies, simulateruns
from predictor.replay.simulate import Asked
from predictor.replay.simulatepolicies import Chosen
from predictor.replay.simulateruns import Found, Question

SMALL = "rate=5,days=0.2,day=0,surge=20m:2:10m"
CHOSEN = (Chosen("hpa-in-flight", 4.0), Chosen("hpa-in-flight", 40.0), Chosen("static", 3.0), Chosen("hpa-queue"))


@pytest.fixture(scope="module")
def found() -> Found:
    load = simulateload.generated(SMALL, hours=0.5, seed=1)
    question = Question(
        profile=profiles.LLAMA_8B_RTX4090,
        warm_up=(120.0, 120.0),
        objective=2.0,
        policies=(*CHOSEN, CHOSEN[0]),
        minimum=2,
        maximum=7,
        sweep=1,
    )
    return simulateruns.run(load, question, tell=lambda *_: None)


def test_a_name_alone_is_the_usual_setting_and_a_value_one_s_own() -> None:
    assert simulatepolicies.parse("keda-load") == Chosen("keda-load")
    assert simulatepolicies.parse("hpa-in-flight=20") == Chosen("hpa-in-flight", 20.0)
    assert simulatepolicies.parse("floorcast=-0.1") == Chosen("floorcast", -0.1)
    labels = [simulatepolicies.parse(text).label for text in ("keda-load", "hpa-in-flight=20.0", "hpa-kv=.65")]
    assert labels == ["keda-load", "hpa-in-flight=20", "hpa-kv=0.65"]


def test_the_same_policy_runs_once_with_each_value_and_only_what_has_none_is_swept(found: Found) -> None:
    assert [one.name for one in found.raced] == ["hpa-in-flight=4", "hpa-in-flight=40", "static=3", "hpa-queue"]
    assert [len(one.points) for one in found.raced] == [1, 1, 1, 2]
    assert [one.given for one in found.raced] == [True, True, True, False]
    assert [one.default for one in found.raced][:3] == [4.0, 40.0, 3.0]


def test_a_lower_target_takes_more_replicas(found: Found) -> None:
    careful, careless = (one.outcome.replica_hours for one in found.raced[:2])
    assert careful > 1.2 * careless


def test_the_bounds_are_one_s_own(found: Found) -> None:
    assert (found.course.minimum, found.course.maximum) == (2, 7)
    for one in found.raced:
        there = one.timeline.ready[1:] + one.timeline.warming[1:]
        assert there.min() >= 2
        assert there.max() <= 7
    assert found.raced[0].timeline.ready.max() == 7  # 10/s that stay for seconds at 4 a replica: more than there may be


def test_a_minimum_above_what_the_peak_needs_is_the_maximum_too() -> None:
    load = simulateload.generated(SMALL, hours=0.3, seed=1)
    question = Question(
        profile=profiles.LLAMA_8B_RTX4090, objective=2.0, policies=(Chosen("hpa-queue", 5.0),), minimum=50
    )
    course = simulateruns.run(load, question, tell=lambda *_: None).course
    assert (course.minimum, course.initial, course.maximum) == (50, 50, 50)


def test_a_fixed_number_outside_the_bounds_is_refused_and_not_cut_to_them() -> None:
    load = simulateload.generated(SMALL, hours=0.3, seed=1)
    question = Question(profile=profiles.LLAMA_8B_RTX4090, objective=2.0, policies=(Chosen("static", 9.0),), maximum=8)
    with pytest.raises(ConfigurationError, match=r"static=9: must lie in 1\.\.8, between --minimum and --maximum"):
        simulateruns.run(load, question, tell=lambda *_: None)


def test_the_command_compares_one_s_own_with_the_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [
        "floorcast", "simulate", "--generate", SMALL, "--hours", "0.3", "--profile", "llama-8b-rtx4090", "--warm-up",
        "2m", "--policy", "hpa-queue=3", "--policy", "static=4", "--minimum", "3", "--maximum", "6",
        "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert "hpa-queue=3" in told
    assert "--sweep" not in told  # would not run the given settings at others
    rows = list(csv.DictReader((tmp_path / "out" / "simulation.csv").read_text().splitlines()))
    assert [(row["policy"], row["value"]) for row in rows] == [("hpa-queue=3", "3"), ("static=4", "4")]
    assert "3 to 6 replicas" in (tmp_path / "out" / "simulation.html").read_text()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policies": ("hpa-in-flight=many",)}, "--policy: 'hpa-in-flight=many': 'many' must be a number, as hpa-"),
        ({"policies": ("hpa-in-flight=",)}, "'' must be a number"),
        ({"policies": ("hpa-in-flight=0",)}, "hpa-in-flight=0: must be finite, and above 0; hpa-in-flight alone is as"),
        ({"policies": ("keda-arrivals=inf",)}, "keda-arrivals=inf: must be finite"),
        ({"policies": ("keda-arrivals=nan",)}, "keda-arrivals=nan: must be finite"),
        ({"policies": ("hpa-kv=80",)}, "hpa-kv=80: must lie above 0, and at 1 at most"),
        ({"policies": ("wva-v1=0.1",)}, r"wva-v1=0.1: must lie above 0.1, and at 1 at most"),
        ({"policies": ("floorcast=-1",)}, "floorcast=-1: must be finite, and above -1"),
        ({"policies": ("static=2.5",)}, "static=2.5: must be a whole number of replicas, as 3"),
        ({"minimum": 0}, "--minimum: 0 must be a positive number"),
        ({"minimum": 9, "maximum": 8}, "--minimum: 9 must not be above --maximum, 8"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_remedy(wrong: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        simulate.run(Asked(**{"generate": SMALL, "hours": 0.3, "out": tmp_path, **wrong}))  # type: ignore[arg-type]
