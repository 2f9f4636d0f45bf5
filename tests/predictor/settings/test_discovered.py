"""Targets found by label beside the ones of the file."""

import pytest

from predictor.settings import convert, discovered
from predictor.settings.discovered import Labelled
from predictor.settings.root import Settings
from predictor.targets import Mode

NAMED = {"namespace": "llm", "name": "chat", "capacity": {"concurrency": 10}}
DEFAULTS = {"capacity": {"knee": 30}, "warm_up": "4m", "floor": {"hold": "10m"}}


def settings(**more: object) -> Settings:
    return Settings.model_validate({"mode": "control", "targets": [NAMED], "defaults": DEFAULTS, **more})


def labelled(name: str, **annotations: str) -> Labelled:
    named = tuple(sorted((key.replace("_", "-"), value) for key, value in annotations.items()))
    return Labelled("llm", name, "Deployment", named)


def test_what_annotations_leave_out_comes_from_the_defaults() -> None:
    joined = discovered.join(settings(), [labelled("code", maximum="20", warm_up="7m", model="m2")])
    _, code = convert.targets(joined.settings)
    assert (code.key, code.maximum, code.warm_up, code.model) == ("llm/code", 20, 420.0, "m2")
    assert code.objectives.profile.concurrency == 25.0  # knee 30 with a headroom of 0.2
    assert code.objectives.floor.hold == 600.0


def test_an_annotation_for_concurrency_takes_the_place_of_the_defaults_knee() -> None:
    joined = discovered.join(settings(), [labelled("code", concurrency="12", model="m2")])
    assert convert.targets(joined.settings)[1].objectives.profile.concurrency == 12.0


def test_a_workload_that_is_named_in_the_file_is_left_to_the_file() -> None:
    joined = discovered.join(settings(), [labelled("chat", concurrency="99")])
    assert joined.settings.targets == settings().targets
    assert joined.refused == {}


def test_no_annotation_outweighs_shadow_at_the_top() -> None:
    joined = discovered.join(settings(mode="shadow"), [labelled("code", mode="shadow", model="m2")])
    assert [target.mode for target in convert.targets(joined.settings)] == [Mode.SHADOW] * 2


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({"concurrency": "many"}, "annotation floorcast.dev/concurrency: 'many' is no number"),
        ({"minimum": "9", "maximum": "3"}, "minimum: 9 is above maximum, 3"),
        ({"engine": "vlm"}, "engine: 'vlm' is no engine of the signal catalogue; did you mean vllm?"),
        ({"warm_up": "soon"}, "warm_up: is no duration"),
    ],
)
def test_one_that_cannot_be_used_is_left_out_with_the_reason_and_the_others_stay(
    annotations: dict[str, str], why: str
) -> None:
    joined = discovered.join(settings(), [labelled("broken", **annotations), labelled("code", model="m2")])
    assert [target.key for target in joined.settings.targets] == ["llm/chat", "llm/code"]
    assert joined.refused["llm/broken"].startswith(why)


def test_one_that_cannot_be_used_any_more_is_taken_as_it_was_and_named_all_the_same() -> None:
    good = discovered.join(settings(), [labelled("code", maximum="20", model="m2")])
    mistyped = [labelled("code", maximum="2o", model="m2")]
    joined = discovered.join(settings(), mistyped, before=good.used)
    assert joined.settings.targets == good.settings.targets
    assert joined.refused == {"llm/code": "annotation floorcast.dev/maximum: '2o' is no number"}
    again = discovered.join(settings(), mistyped, before=joined.used)  # however long it lasts
    assert again.settings.targets == good.settings.targets


def test_one_that_is_labelled_no_more_is_no_target_whatever_it_was() -> None:
    good = discovered.join(settings(), [labelled("code", model="m2")])
    assert discovered.join(settings(), [], before=good.used).settings.targets == settings().targets
