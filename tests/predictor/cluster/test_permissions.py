import pytest

from predictor.cluster import errors, permissions
from predictor.cluster.client import Api
from predictor.cluster.permissions import Permission, Purpose
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Workload
from predictor.targets import Kind, Mode, Target
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.fakes.cluster_objects import NOW, target


def granted(*purposes: Purpose) -> set[str]:
    return {
        f"{verb} {resource}"
        for rule in permissions.rules(purposes)
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def for_purposes(*purposes: Purpose) -> list[Permission]:
    return [one for one in permissions.PERMISSIONS if one.purpose in purposes]


def test_what_is_not_granted_is_named(server: FakeApiServer, api: Api) -> None:
    server.denied |= {"patch deployments/scale", "list pods"}
    missing = permissions.check_permissions(api, {"llm": for_purposes(Purpose.OBSERVE, Purpose.WRITE_SCALE)})
    assert [str(one) for one in missing] == [
        "may not list pods in namespace llm: supply and warm-up",
        "may not patch deployments/scale.apps in namespace llm: sets the replicas where there is no autoscaler",
    ]


def test_what_is_not_wanted_is_not_asked_for(server: FakeApiServer, api: Api) -> None:
    server.denied |= {"patch horizontalpodautoscalers"}
    needed = {"llm": for_purposes(Purpose.OBSERVE), "staging": for_purposes(Purpose.EVENTS)}
    assert permissions.check_permissions(api, needed) == []
    asked = [request.body["spec"]["resourceAttributes"] for request in server.requests]
    assert {one["namespace"] for one in asked if one["verb"] == "list"} == {"llm"}
    assert [one["resource"] for one in asked if one["namespace"] == "staging"] == ["events"]


def test_a_server_that_does_not_answer_the_question_is_an_error(server: FakeApiServer, api: Api) -> None:
    server.answer("create selfsubjectaccessreviews", 500)
    with pytest.raises(errors.ServerError):
        permissions.check_permissions(api, {"llm": for_purposes(Purpose.OBSERVE)})


def wanted(aim: Target, *owners: Owner, events: bool = True) -> set[str]:
    """What is needed besides the watches, which go with the lists."""
    needed = {f"{one.verb} {one.resource.rule_name}" for one in permissions.wanted([aim], owners, events=events)["llm"]}
    watches = {what for what in needed if what.startswith("watch ")}
    assert watches == {what.replace("list ", "watch ") for what in needed if what.startswith("list ")}
    return needed - watches


def test_what_is_looked_for_and_written_decides_what_is_wanted() -> None:
    everywhere = {f"list {kind}" for kind in ("horizontalpodautoscalers", "pods", "replicasets")}
    workloads = {"list deployments", "list statefulsets"}
    shadow = target(mode=Mode.SHADOW)
    assert wanted(shadow, Owner.HPA) == everywhere | workloads
    assert wanted(shadow, Owner.HPA, Owner.KEDA) == everywhere | workloads | {"list scaledobjects"}
    floor = {f"{verb} horizontalpodautoscalers" for verb in ("get", "patch")} | {"create events"}
    assert wanted(target(), Owner.HPA) == everywhere | workloads | floor
    assert wanted(target(), Owner.HPA, events=False) == wanted(target(), Owner.HPA) - {"create events"}
    leaders = wanted(target(kind=Kind.LEADER_WORKER_SET), Owner.SCALE)
    assert {"list leaderworkersets", "patch leaderworkersets/scale"} < leaders
    assert "patch deployments/scale" not in leaders


def test_observing_never_writes() -> None:
    assert {what.split()[0] for what in granted(Purpose.OBSERVE)} == {"list", "watch"}


def test_workload_objects_themselves_are_never_written() -> None:
    writable = {what.split()[1] for what in granted(*Purpose) if what.split()[0] not in ("list", "watch")}
    kinds = ("deployments", "statefulsets", "leaderworkersets", "rollouts")
    owners = {"horizontalpodautoscalers", "scaledobjects", "inferenceservices"}
    assert writable == {*owners, *(f"{kind}/scale" for kind in kinds), "events", "leases"}


def test_everything_that_is_asked_of_the_server_is_in_the_table(
    server: FakeApiServer, workloads: ClusterWorkloads
) -> None:
    server.put("deployments", objects.deployment())
    server.put("deployments", objects.deployment("plain"))
    server.put("horizontalpodautoscalers", objects.hpa())
    targets = [target(), target("plain")]
    for key, state in workloads.observe(targets, now=NOW).items():
        assert isinstance(state, Workload)
        aim = next(one for one in targets if one.key == key)
        workloads.write(aim, 5, seen=state, now=NOW)
        workloads.release(aim)
    assert {request.what for request in server.requests} <= granted(*Purpose)
