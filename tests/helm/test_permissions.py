"""What the chart lets Floorcast do: no more rights than its switches say, and it looks for no more than it may."""

import pytest
import yaml

from predictor.chart import rules
from predictor.cluster import permissions
from predictor.cluster.permissions import Purpose
from predictor.ports import Owner
from tests.helm.conftest import Chart
from tests.helm.matrix import EVERYTHING, IN_LLM, MATRIX, TARGET
from tests.helm.objects import Json, of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120, func_only=True)]


def granted(objects: list[Json], account: str, *, kinds: tuple[str, ...] = ("Role", "ClusterRole")) -> set[str]:
    """ "verb resource" that the roles bound to a service account grant."""
    bound = {
        one["roleRef"]["name"]
        for kind in kinds
        for one in of(objects, f"{kind}Binding")
        if one["subjects"][0]["name"] == account
    }
    return {
        f"{verb} {resource}"
        for kind in kinds
        for role in of(objects, kind)
        if role["metadata"]["name"] in bound
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def in_table(*purposes: Purpose, without: tuple[str, ...] = ()) -> set[str]:
    return {
        f"{one.verb} {one.resource.rule_name}"
        for one in permissions.PERMISSIONS
        if one.purpose in purposes and one.resource.group not in without
    }


def sets_a_count(verb: str) -> bool:
    """Whether it is what a release never does: a count without a floor under it stays as it is."""
    return verb.startswith("patch") and verb.endswith("/scale")


def kubernetes(objects: list[Json]) -> Json:
    """The section of the configuration file that says what is looked for."""
    told: Json = yaml.safe_load(of(objects, "ConfigMap")[0]["data"]["floorcast.yaml"])
    return dict(told.get("kubernetes", {}))


# ---------------------------------------------------------------------------------------------------------------- roles


def test_shadow_mode_is_granted_to_look_and_nothing_else(rendered: Chart) -> None:
    found = granted(rendered({"config": {"targets": [TARGET]}, "rbac": IN_LLM}), "floorcast")
    optional = ("leaderworkerset.x-k8s.io", "argoproj.io")
    assert found == in_table(Purpose.OBSERVE, without=optional)


def test_control_is_granted_what_its_switches_say(rendered: Chart) -> None:
    grant = {"keda": False, "kserve": False, "scale": False, "events": False}
    found = granted(rendered({"config": {"mode": "control"}, "rbac": {"grant": grant}}), "floorcast")
    optional = ("leaderworkerset.x-k8s.io", "argoproj.io", "keda.sh", "serving.kserve.io")
    assert found == in_table(Purpose.OBSERVE, Purpose.WRITE_HPA, without=optional)


def test_everything_switched_on_is_the_whole_table(rendered: Chart) -> None:
    found = granted(rendered(EVERYTHING), "floorcast")
    assert found == in_table(*(set(Purpose) - {Purpose.LEAD}))


def test_the_lease_is_granted_in_floorcasts_own_namespace_when_it_elects(rendered: Chart) -> None:
    objects = rendered(MATRIX["two replicas"])
    leases = [one for one in of(objects, "Role") if one["rules"][0]["resources"] == ["leases"]]
    assert [one["metadata"]["namespace"] for one in leases] == ["floorcast"]


def test_one_role_has_one_purpose(rendered: Chart) -> None:
    objects = rendered({"config": {"mode": "control"}})
    names = {one["metadata"]["name"].removeprefix("floorcast-") for one in of(objects, "Role")}
    assert names == {"observe", "hpa", "keda", "kserve", "scale", "events", "release"}
    for name in names - {"observe", "release"}:
        (role,) = (one for one in of(objects, "Role") if one["metadata"]["name"] == f"floorcast-{name}")
        purpose = next(one for one in Purpose if rules.value_of(one) == name)
        assert role["rules"] == permissions.rules([purpose])


def test_roles_stand_in_the_namespaces_of_the_targets_or_for_the_whole_cluster(rendered: Chart) -> None:
    values: Json = {"rbac": {"namespaces": ["llm", "search"]}}
    assert {one["metadata"]["namespace"] for one in of(rendered(values), "Role")} == {"llm", "search"}
    wide = rendered({"rbac": {"clusterWide": True}})
    assert of(wide, "Role") == []
    assert {one["metadata"]["name"] for one in of(wide, "ClusterRole")} == {
        "floorcast-floorcast-observe",
        "floorcast-floorcast-release",
    }


def test_the_release_may_give_back_whatever_the_mode_and_neither_tells_nor_leads(rendered: Chart) -> None:
    found = granted(rendered({"config": {"mode": "shadow"}}), "floorcast-release")
    optional = ("leaderworkerset.x-k8s.io", "argoproj.io")
    writing = (Purpose.WRITE_HPA, Purpose.WRITE_KEDA, Purpose.WRITE_KSERVE, Purpose.WRITE_SCALE)
    looked = {one for one in in_table(Purpose.OBSERVE, without=optional) if not one.startswith("watch")}
    assert found == looked | {one for one in in_table(*writing, without=optional) if not sets_a_count(one)}


def test_nothing_is_made_where_somebody_else_grants(rendered: Chart) -> None:
    objects = rendered(MATRIX["next to nothing"])
    assert {one["kind"] for one in objects} == {"ConfigMap", "Service", "Deployment", "Pod"}
    assert of(objects, "Deployment")[0]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


# --------------------------------------------------------------------------------------------------- what is looked for


def test_what_no_role_allows_is_not_looked_for(rendered: Chart) -> None:
    def owners(grant: Json) -> object:
        return kubernetes(rendered({"rbac": {"grant": grant}})).get("owners")

    assert owners({}) is None
    assert owners({"keda": False}) == ["hpa", "kserve", "scale"]
    assert owners({"scale": False, "hpa": False}) == ["keda", "kserve"]
    assert owners({"scale": False, "rollouts": True, "hpa": False}) == ["keda", "kserve", "scale"]
    nothing = dict.fromkeys(("hpa", "keda", "kserve", "scale"), False)
    assert owners(nothing) == ["hpa"]  # shadow mode: looked at, and nothing else


def test_one_watch_covers_the_whole_cluster_where_the_roles_do_unless_it_is_told_not_to(rendered: Chart) -> None:
    assert kubernetes(rendered({})).get("cluster_wide") is None
    assert kubernetes(rendered({"rbac": {"clusterWide": True}}))["cluster_wide"] is True
    told = {"rbac": {"clusterWide": True}, "config": {"kubernetes": {"cluster_wide": False}}}
    assert kubernetes(rendered(told))["cluster_wide"] is False
    elsewhere = {"rbac": {"clusterWide": True, "create": False}, "serviceAccount": {"create": False, "name": "mine"}}
    assert kubernetes(rendered(elsewhere)).get("cluster_wide") is None


@pytest.mark.parametrize("owner", Owner, ids=str)
def test_an_owner_that_is_left_out_gets_no_role(rendered: Chart, owner: Owner) -> None:
    config = {"mode": "control", "kubernetes": {"owners": [str(owner), "hpa"]}}
    grant = {"leaderWorkerSets": True, "rollouts": True}
    objects = rendered({"config": config, "rbac": {"grant": grant}})
    assert kubernetes(objects) == config["kubernetes"]
    written = {one for one in granted(objects, "floorcast") if one.startswith("patch")}
    of_owner = {
        Owner.HPA: {"patch horizontalpodautoscalers"},
        Owner.KEDA: {"patch scaledobjects"},
        Owner.KSERVE: {"patch inferenceservices"},
        Owner.SCALE: {
            f"patch {kind}/scale" for kind in ("deployments", "statefulsets", "leaderworkersets", "rollouts")
        },
    }
    assert written == of_owner[owner] | of_owner[Owner.HPA]
    given_back = {one for one in granted(objects, "floorcast-release") if one.startswith("patch")}
    assert given_back == {one for one in written if not sets_a_count(one)}


def test_a_kind_of_the_targets_is_looked_at_where_its_replicas_are_not_ours_to_write(rendered: Chart) -> None:
    target = {**TARGET, "kind": "LeaderWorkerSet"}
    config = {"mode": "control", "kubernetes": {"owners": ["hpa"]}, "targets": [target]}
    found = granted(rendered({"config": config, "rbac": {**IN_LLM, "grant": {"leaderWorkerSets": True}}}), "floorcast")
    assert {one for one in found if "leaderworkersets" in one} == {"list leaderworkersets", "watch leaderworkersets"}


def test_events_are_not_sent_where_no_role_allows_them_and_none_is_made_where_none_are_sent(rendered: Chart) -> None:
    assert kubernetes(rendered({"config": {"kubernetes": {"watch": False}}})) == {"watch": False}
    silent = rendered({"rbac": {"grant": {"events": False}}, "config": {"kubernetes": {"watch": False}}})
    assert kubernetes(silent) == {"events": False, "watch": False}
    config = {"mode": "control", "kubernetes": {"events": False}}
    assert "create events" not in granted(rendered({"config": config}), "floorcast")


def test_what_somebody_else_grants_is_looked_for_as_the_configuration_says(rendered: Chart) -> None:
    own = {"create": False, "grant": {"keda": False, "events": False}}
    assert kubernetes(rendered({"rbac": own})) == {}
    told = {"owners": ["keda"], "events": True, "cluster_wide": True}
    assert kubernetes(rendered({"rbac": own, "config": {"kubernetes": told, "targets": [TARGET]}})) == told
