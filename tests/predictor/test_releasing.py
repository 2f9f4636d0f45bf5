"""What `floorcast release` makes of the answers, target by target."""

import pytest

from predictor import releasing
from predictor.ports import Refused, Written
from predictor.targets import Target
from tests.fakes import cluster_objects as objects


class Answering:
    """Workloads that answer a release as they are told, by the target's name."""

    def __init__(self, **answers: Written | Refused) -> None:
        self._answers = answers

    def release(self, target: Target, *, note: str = "") -> Written | Refused:  # noqa: ARG002
        return self._answers[target.name]


def give_back(**answers: Written | Refused) -> bool:
    targets = [objects.target(name) for name in answers]
    return releasing.give_back(Answering(**answers), targets)  # type: ignore[arg-type]


def test_all_that_could_be_given_back_is_success() -> None:
    assert give_back(a=Written(2), b=Written(3))


def test_one_refusal_is_failure_and_the_others_are_still_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert not give_back(a=Refused("Forbidden", "may not patch"), b=Written(3))
    assert capsys.readouterr().out.splitlines() == [
        "llm/a: not released: Forbidden: may not patch",
        "llm/b: released, 3 stands",
    ]


def test_a_workload_that_is_gone_has_nothing_to_give_back_and_stops_no_uninstall(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert give_back(a=Refused("NotFound", "404"), b=Written(3))
    assert capsys.readouterr().out.startswith("llm/a: nothing to release: 404")
