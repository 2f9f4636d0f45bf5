"""Kinds of workload in the configuration."""

import pytest

from predictor.cluster import resources
from predictor.settings import checks, convert
from predictor.settings.root import Settings
from predictor.targets import Kind


def settings(**target: object) -> Settings:
    given = {"namespace": "llm", "name": "chat", "capacity": {"concurrency": 10}, **target}
    return Settings.model_validate({"targets": [given]})


@pytest.mark.parametrize("kind", list(Kind))
def test_known_kinds_need_no_resource(kind: Kind) -> None:
    (target,) = convert.targets(settings(kind=str(kind)))
    assert resources.of(target) == resources.KNOWN[kind]


def test_any_other_kind_is_named_by_its_resource() -> None:
    (target,) = convert.targets(settings(kind="ModelServer", resource="modelservers.v1alpha1.example.com"))
    assert resources.of(target) == resources.Resource("example.com", "v1alpha1", "modelservers")


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ({"kind": "Deploymnet"}, "'Deploymnet' is none of Deployment, StatefulSet"),
        ({"resource": "rollouts.v1alpha1.argoproj.io"}, "whose resource is known; leave it out"),
        ({"kind": "ModelServer", "resource": "modelservers"}, "resource"),
    ],
)
def test_a_kind_that_cannot_be_addressed_is_refused(target: dict[str, object], what: str) -> None:
    with pytest.raises(ValueError, match=what) as refused:
        settings(**target)
    assert isinstance(refused.value, ValueError)
    assert checks.CHECKS
