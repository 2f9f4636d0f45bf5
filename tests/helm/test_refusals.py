"""Values that cannot work are refused by name before anything is made, and what the service runs with is not."""

import itertools
from typing import Any

import pydantic
import pytest

from predictor.settings.root import Settings
from tests.cluster import chart
from tests.helm.conftest import Chart
from tests.helm.matrix import IN_LLM, MATRIX, TARGET

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120, func_only=True)]

Json = dict[str, Any]
BARE = {"namespace": "llm", "name": "chat"}  # a target without capacity
MODES = ("shadow", "control")


def control(*targets: Json, **config: object) -> Json:
    return {"config": {"mode": "control", "targets": list(targets), **config}, "rbac": IN_LLM}


def refusal(rendered: Chart, values: Json) -> str:
    """The lines of the refusal; empty where the values are taken."""
    try:
        rendered(values)
    except chart.HelmError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"replicaCount": 2}, "replicaCount"),
        ({"config": {"targets": [{**TARGET, "warmup": "5m"}]}}, "warmup"),
        ({"config": {"mode": "shadowy"}}, "/config/mode"),
        ({"replicas": 2}, "replicas is 2: two writers would fight; set config.leader_election.enabled"),
        ({"prometheusRule": {"enabled": True, "leaveOut": ["Absent"]}}, "Absent is no alert"),
        ({**MATRIX["two replicas"], "persistence": {"enabled": True}}, "persistence.accessMode is ReadWriteOnce"),
        (
            control({**TARGET, "kind": "Rollout"}),
            "config.targets[0] is a Rollout, and rbac.grant.rollouts is false; set it to true",
        ),
        (
            {"config": {"discovery": {"enabled": True, "namespaces": ["llm"], "kinds": ["Rollout"]}}, "rbac": IN_LLM},
            "config.discovery.kinds[0] is a Rollout, and rbac.grant.rollouts is false",
        ),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(rendered: Chart, values: Json, problem: str) -> None:
    assert problem in refusal(rendered, values)


@pytest.mark.parametrize(
    ("kubernetes", "grant", "problem"),
    [
        (
            {"owners": ["hpa", "keda"]},
            {"keda": False},
            "config.kubernetes.owners has keda, and rbac.grant.keda is false; set one to true, or leave keda out",
        ),
        (
            {"owners": ["scale"]},
            {"scale": False},
            "has scale, and rbac.grant.scale and rbac.grant.leaderWorkerSets and rbac.grant.rollouts are false",
        ),
        ({"events": True}, {"events": False}, "config.kubernetes.events is true, and rbac.grant.events is false"),
        (
            {},
            {"hpa": False, "keda": False, "kserve": False, "scale": False},
            "config.mode is control, and rbac.grant lets nothing be written; set one of rbac.grant.hpa",
        ),
    ],
)
def test_what_the_configuration_asks_for_and_no_role_allows_is_refused(
    rendered: Chart, kubernetes: Json, grant: Json, problem: str
) -> None:
    values = control(kubernetes=kubernetes)
    assert problem in refusal(rendered, {**values, "rbac": {"grant": grant}})
    assert refusal(rendered, {**values, "rbac": {"create": False, "grant": grant}}) == ""


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"targets": [{**TARGET, "namespace": "other"}]},
            "config.targets[0].namespace is other, which is not among rbac.namespaces ([llm]): no role",
        ),
        (
            {"discovery": {"enabled": True, "namespaces": ["llm", "other"]}},
            "config.discovery.namespaces[1] is other, which is not among rbac.namespaces ([llm])",
        ),
        ({"discovery": {"enabled": True}}, "config.discovery.namespaces is empty, which is the whole cluster"),
        (
            {"kubernetes": {"cluster_wide": True}},
            "config.kubernetes.cluster_wide is true, and rbac.clusterWide is false",
        ),
    ],
)
def test_what_lies_where_no_role_stands_is_refused(rendered: Chart, config: Json, problem: str) -> None:
    assert problem in refusal(rendered, {"config": config, "rbac": IN_LLM})
    for elsewhere in ({"clusterWide": True}, {"create": False}):
        assert refusal(rendered, {"config": config, "rbac": elsewhere}) == ""


def test_without_namespaces_roles_stand_in_the_releases_own(rendered: Chart) -> None:
    assert refusal(rendered, {"config": {"targets": [{**TARGET, "namespace": "floorcast"}]}}) == ""
    assert "([floorcast], the release's own)" in refusal(rendered, {"config": {"targets": [TARGET]}})


@pytest.mark.parametrize(
    ("scaler", "tls", "problem"),
    [
        (
            {},
            {"secretName": "tls"},
            "externalScaler.tls.secretName is tls, and config.external_scaler.enabled is false",
        ),
        (
            {"enabled": True, "cert_file": "/a", "key_file": "/b"},
            {"secretName": "tls"},
            "config.external_scaler.cert_file is /a, and externalScaler.tls.secretName, tls, says another",
        ),
        (
            {"enabled": True},
            {"verifyClient": True},
            "externalScaler.tls.verifyClient is true, and externalScaler.tls.secretName is empty; name the Secret",
        ),
    ],
)
def test_a_certificate_that_nobody_would_see_or_that_is_said_twice_is_refused(
    rendered: Chart, scaler: Json, tls: Json, problem: str
) -> None:
    assert problem in refusal(rendered, {"config": {"external_scaler": scaler}, "externalScaler": {"tls": tls}})


def test_every_problem_is_told_at_once(rendered: Chart) -> None:
    values = {**control({**TARGET, "namespace": "other"}, BARE), "replicas": 2}
    lines = refusal(rendered, values).splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("replicas", "config."))] == [
        "replicas",
        "config.targets[0].namespace",
        "config.targets[1].capacity,",
    ]


@pytest.mark.parametrize("top", MODES)
def test_a_target_without_capacity_is_refused_where_the_service_refuses_it(rendered: Chart, top: str) -> None:
    """In control mode; in shadow mode it is planned for by a guess."""
    given: tuple[Json, ...] = ({}, {"capacity": {"knee": 5}}, {"capacity": {"headroom": 0.3}})
    own = [{**capacity, **_mode(mode)} for capacity, mode in itertools.product(given, (None, *MODES))]
    targets = [{"namespace": "llm", "name": f"chat-{number}", **one} for number, one in enumerate(own)]
    for capacity, mode in itertools.product(given, (None, *MODES)):
        config = {"mode": top, "defaults": {**capacity, **_mode(mode)}}
        said = refusal(rendered, {"config": {**config, "targets": targets}, "rbac": IN_LLM})
        refused = {number for number in range(len(targets)) if f"config.targets[{number}].capacity, of llm" in said}
        assert refused == {number for number, one in enumerate(targets) if not is_valid({**config, "targets": [one]})}
        assert bool(said) == bool(refused)
        assert not refused or top == "control"


def test_a_missing_capacity_is_refused_with_the_remedy(rendered: Chart) -> None:
    said = refusal(rendered, control(BARE))
    assert "config.targets[0].capacity, of llm/chat in control mode, has neither knee nor concurrency; set one" in said


def _mode(mode: str | None) -> Json:
    return {"mode": mode} if mode else {}


def is_valid(config: Json) -> bool:
    try:
        Settings.model_validate(config)
    except pydantic.ValidationError:
        return False
    return True
