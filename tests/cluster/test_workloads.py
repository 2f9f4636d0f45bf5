"""The cluster adapters against a real API server, with no more than the permissions of their own table."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models.policy.decision import Decision, Reason
from predictor import clock
from predictor.cluster import client, errors, marks, permissions, resources
from predictor.cluster.access import Access
from predictor.cluster.client import Api
from predictor.cluster.permissions import Purpose
from predictor.cluster.workloads import ClusterWorkloads
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Kind, Target
from tests.cluster import accounts, manifests, plane
from tests.cluster import audit as audit_log
from tests.cluster import kubectl as kubectl_tool
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer
from tests.servers import waiting

HPAS = "horizontalpodautoscalers"
QUICK = manifests.Workload(name="vllm", replicas=2, max_replicas=6, image_delay_s=0, model_delay_s=1)
Login = Callable[..., Api]


@pytest.fixture
def login(cluster: plane.ControlPlane, namespace: str) -> Iterator[Login]:
    """Logs in as a service account that may do what is named, here and nowhere else."""
    opened: list[Api] = []

    def as_account(*purposes: Purpose) -> Api:
        opened.append(Api(accounts.login(cluster, namespace, f"account-{len(opened)}", purposes)))
        return opened[-1]

    yield as_account
    for api in opened:
        api.close()


@pytest.fixture
def target(namespace: str) -> Target:
    return objects.target(namespace=namespace, warm_up=20.0)


@pytest.fixture
def workloads(login: Login) -> ClusterWorkloads:
    return ClusterWorkloads(login(*Purpose))


@pytest.fixture
def with_hpa(kubectl: kubectl_tool.Kubectl, namespace: str) -> None:
    placed = dataclasses.replace(QUICK, namespace=namespace)
    kubectl.apply([manifests.deployment(placed), manifests.hpa(placed)])


@pytest.fixture
def without_hpa(kubectl: kubectl_tool.Kubectl, namespace: str) -> None:
    kubectl.apply([manifests.deployment(dataclasses.replace(QUICK, namespace=namespace))])


def observed(workloads: ClusterWorkloads, target: Target) -> Workload:
    state = workloads.observe([target], now=clock.SystemClock().now())[target.key]
    assert isinstance(state, Workload), state
    return state


def write(workloads: ClusterWorkloads, target: Target, replicas: int) -> Written | Refused:
    return workloads.write(target, replicas, seen=observed(workloads, target), now=0.0)


def settled(workloads: ClusterWorkloads, target: Target, *, ready: int) -> Workload:
    """The state once that many replicas are ready and nothing moves any more."""

    def there() -> Workload | None:
        state = observed(workloads, target)
        return state if (state.supply.ready, state.supply.warming, state.rollout) == (ready, 0, False) else None

    return waiting.until(there, within_s=60, what=f"{ready} replicas ready")


def hpa(kubectl: kubectl_tool.Kubectl, target: Target) -> dict[str, Any]:
    return kubectl.json("get", HPAS, target.name, f"--namespace={target.namespace}", "--show-managed-fields")


def edit(kubectl: kubectl_tool.Kubectl, target: Target, patch: str) -> None:
    """Somebody else changes the HPA."""
    place = f"--namespace={target.namespace}"
    kubectl("patch", HPAS, target.name, place, "--type=merge", "--field-manager=somebody", f"--patch={patch}")


class Interrupted(Api):
    """Something happens right after each of the next reads of an object."""

    def __init__(self, access: Access, *happenings: Callable[[], None]) -> None:
        super().__init__(access)
        self._happenings = list(happenings)

    def interrupt(self, *happenings: Callable[[], None]) -> None:
        """The same, from now on."""
        self._happenings += happenings

    def get(self, resource: resources.Resource, *, namespace: str, name: str) -> dict[str, Any]:
        found = super().get(resource, namespace=namespace, name=name)
        if self._happenings:
            self._happenings.pop(0)()
        return found


@pytest.mark.usefixtures("with_hpa")
def test_a_floor_moves_the_deployment_through_the_hpa_and_not_through_us(
    kubectl: kubectl_tool.Kubectl, audit: audit_log.AuditLog, workloads: ClusterWorkloads, target: Target
) -> None:
    settled(workloads, target, ready=2)
    since = audit.mark()
    assert write(workloads, target, 4) == Written(4)
    state = settled(workloads, target, ready=4)
    assert (state.owner, state.standing, state.base, state.replicas) == (Owner.HPA, 4, 2, 4)
    assert (state.adopted, state.maximum) == (True, 6)
    ours = [entry for entry in audit.writes(since=since) if entry.user.startswith("system:serviceaccount:test-")]
    assert [(entry.resource, entry.field_manager, entry.code) for entry in ours] == [(HPAS, "floorcast", 200)]
    scaled = [entry.user for entry in audit.writes(since=since, resource="deployments/scale")]
    assert set(scaled) == {"system:serviceaccount:kube-system:horizontal-pod-autoscaler"}
    annotations = hpa(kubectl, target)["metadata"]["annotations"]
    told = json.loads(annotations.pop(marks.STATUS))
    assert (told["status"], told["reason"], told["floor"]) == ("True", "Active", 4)
    assert told["message"].endswith("minReplicas 2 -> 4 by Floorcast; own minimum 2, at most 6")
    assert annotations == {marks.ORIGINAL: "2", marks.LAST_WRITTEN: "4"}


@pytest.mark.usefixtures("with_hpa")
def test_the_patch_changes_the_minimum_and_nothing_else(
    kubectl: kubectl_tool.Kubectl, workloads: ClusterWorkloads, target: Target
) -> None:
    before = hpa(kubectl, target)["spec"]
    write(workloads, target, 4)
    assert hpa(kubectl, target)["spec"] == {**before, "minReplicas": 4}


@pytest.mark.usefixtures("with_hpa")
def test_an_hpa_without_metrics_is_reported_as_a_problem(workloads: ClusterWorkloads, target: Target) -> None:
    def problem() -> str:
        return observed(workloads, target).owner_problem

    reported = waiting.until(problem, within_s=60, what="the HPA's complaint")
    assert "ScalingActive is False, FailedGetExternalMetric" in reported


@pytest.mark.usefixtures("with_hpa")
def test_what_somebody_else_sets_is_adopted_as_the_base(
    kubectl: kubectl_tool.Kubectl, workloads: ClusterWorkloads, target: Target
) -> None:
    write(workloads, target, 5)
    edit(kubectl, target, '{"spec": {"minReplicas": 3}}')
    state = observed(workloads, target)
    assert (state.standing, state.base, state.adopted) == (3, 3, False)
    write(workloads, target, 4)
    assert workloads.release(target) == Written(3)


@pytest.mark.usefixtures("with_hpa")
def test_a_minimum_changed_while_we_write_is_a_conflict_and_stays(
    cluster: plane.ControlPlane, kubectl: kubectl_tool.Kubectl, target: Target
) -> None:
    api = Interrupted(
        Access(kubeconfig=cluster.kubeconfig), lambda: edit(kubectl, target, '{"spec": {"minReplicas": 3}}')
    )
    outcome = write(ClusterWorkloads(api), target, 5)
    assert isinstance(outcome, Refused)
    assert (outcome.reason, hpa(kubectl, target)["spec"]["minReplicas"]) == ("Conflict", 3)
    assert "set by somebody; 2 stood" in outcome.detail
    api.close()


@pytest.mark.usefixtures("with_hpa")
def test_a_change_beside_the_minimum_while_we_write_is_retried(
    cluster: plane.ControlPlane, kubectl: kubectl_tool.Kubectl, audit: audit_log.AuditLog, target: Target
) -> None:
    changes = [f'{{"metadata": {{"labels": {{"edited": "{number}"}}}}}}' for number in (1, 2)]
    api = Interrupted(Access(kubeconfig=cluster.kubeconfig))
    workloads = ClusterWorkloads(api)
    assert write(workloads, target, 3) == Written(3)  # the first write is tried out before; from here on it is not
    since = audit.mark()
    api.interrupt(*(lambda one=one: edit(kubectl, target, one) for one in changes))
    assert write(workloads, target, 5) == Written(5)
    codes = [entry.code for entry in audit.writes(since=since, resource=HPAS) if entry.field_manager == "floorcast"]
    assert codes[-1] == 200
    assert codes[:-1] == [409] * (len(codes) - 1)
    assert codes[:-1], "the label changed the version"
    assert hpa(kubectl, target)["metadata"]["labels"] == {"edited": "2"}
    api.close()


@pytest.mark.usefixtures("with_hpa")
def test_a_floor_above_the_maximum_is_cut_to_it(workloads: ClusterWorkloads, target: Target) -> None:
    assert write(workloads, target, 99) == Written(6)
    assert write(workloads, target, 0) == Written(1)


@pytest.mark.usefixtures("with_hpa")
def test_a_release_leaves_no_trace_but_the_original(
    kubectl: kubectl_tool.Kubectl, workloads: ClusterWorkloads, target: Target
) -> None:
    write(workloads, target, 5)
    assert [workloads.release(target) for _ in range(2)] == [Written(2), Written(2)]
    found = hpa(kubectl, target)
    assert found["spec"]["minReplicas"] == 2
    assert "annotations" not in found["metadata"]


@pytest.mark.usefixtures("with_hpa")
def test_everything_in_a_namespace_is_released_by_its_marks(login: Login, target: Target) -> None:
    write(ClusterWorkloads(login(*Purpose)), target, 5)
    later = ClusterWorkloads(login(Purpose.OBSERVE, Purpose.WRITE_HPA))
    assert later.release_all(target.namespace) == {f"HorizontalPodAutoscaler {target.key}": Written(2)}


@pytest.mark.usefixtures("without_hpa")
def test_without_an_hpa_the_replicas_are_set_and_our_hand_is_recognised(
    kubectl: kubectl_tool.Kubectl, audit: audit_log.AuditLog, workloads: ClusterWorkloads, target: Target
) -> None:
    state = settled(workloads, target, ready=2)
    assert (state.owner, state.base, state.maximum, state.adopted) == (Owner.SCALE, 2, 10, False)
    since = audit.mark()
    assert write(workloads, target, 3) == Written(3)
    state = settled(workloads, target, ready=3)
    assert (state.standing, state.adopted) == (3, True)
    (entry,) = [entry for entry in audit.writes(since=since) if entry.field_manager == "floorcast"]
    assert (entry.resource, entry.code) == ("deployments/scale", 200)
    kubectl("scale", "deployment", target.name, f"--namespace={target.namespace}", "--replicas=4")
    state = observed(workloads, target)
    assert (state.standing, state.adopted) == (4, False)
    assert workloads.release(target) == Written(4)


@pytest.mark.usefixtures("without_hpa")
def test_a_count_changed_while_we_write_is_a_conflict(
    cluster: plane.ControlPlane, kubectl: kubectl_tool.Kubectl, target: Target
) -> None:
    scale = ("scale", "deployment", target.name, f"--namespace={target.namespace}", "--replicas=4")
    api = Interrupted(Access(kubeconfig=cluster.kubeconfig), lambda: kubectl(*scale) and None)
    outcome = write(ClusterWorkloads(api), target, 5)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Conflict"
    assert "has 4 replicas; 2 stood" in outcome.detail
    api.close()


def test_a_stateful_set_is_scaled_and_its_pods_are_counted(
    kubectl: kubectl_tool.Kubectl, workloads: ClusterWorkloads, target: Target
) -> None:
    placed = dataclasses.replace(QUICK, namespace=target.namespace, gpus=0)
    manifest = manifests.deployment(placed)
    manifest |= {"kind": "StatefulSet", "spec": {**manifest["spec"], "podManagementPolicy": "Parallel"}}
    kubectl.apply([manifest])
    aim = dataclasses.replace(target, kind=Kind.STATEFUL_SET)
    settled(workloads, aim, ready=2)
    assert write(workloads, aim, 3) == Written(3)
    assert settled(workloads, aim, ready=3).adopted


@pytest.mark.usefixtures("without_hpa")
def test_warm_ups_are_measured_from_the_pods(workloads: ClusterWorkloads, target: Target) -> None:
    usual = settled(workloads, target, ready=2).warm_up
    assert usual is not None
    assert usual.measured == 2
    assert sum(wait.over and 1 <= wait.seconds <= 30 for wait in usual.waits) >= 2


@pytest.mark.usefixtures("without_hpa")
def test_a_rollout_shows_until_the_last_old_pod_is_gone(
    kubectl: kubectl_tool.Kubectl, workloads: ClusterWorkloads, target: Target
) -> None:
    settled(workloads, target, ready=2)
    kubectl("rollout", "restart", "deployment", target.name, f"--namespace={target.namespace}")
    waiting.until(lambda: observed(workloads, target).rollout, within_s=10, what="the rollout")
    settled(workloads, target, ready=2)


@pytest.mark.usefixtures("with_hpa")
def test_who_may_only_observe_is_told_the_rule_that_is_missing(login: Login, target: Target) -> None:
    outcome = write(ClusterWorkloads(login(Purpose.OBSERVE)), target, 4)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "Forbidden"
    rule = 'apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"], verbs: ["get"]'
    assert f"Role in namespace {target.namespace} with {rule}" in outcome.detail


def test_who_may_do_nothing_is_told_so_for_every_target(login: Login, target: Target) -> None:
    state = ClusterWorkloads(login()).observe([target], now=0.0)[target.key]
    assert isinstance(state, Refused)
    assert state.reason == "Forbidden"
    assert 'resources: ["deployments"], verbs: ["list"]' in state.detail


def test_the_check_names_what_a_role_lacks_and_nothing_it_has(login: Login, namespace: str) -> None:
    api = login(Purpose.OBSERVE, Purpose.EVENTS)
    missing = permissions.check_permissions(api, {namespace: permissions.PERMISSIONS})
    assert {one.permission.purpose for one in missing} == set(Purpose) - {Purpose.OBSERVE, Purpose.EVENTS}
    observing = [one for one in permissions.PERMISSIONS if one.purpose is Purpose.OBSERVE]
    assert permissions.check_permissions(api, {namespace: observing}) == []


def test_a_token_nobody_gave_out_is_unauthorized(cluster: plane.ControlPlane, target: Target) -> None:
    api = Api(Access(kubeconfig=cluster.kubeconfig_for("made-up")))
    state = ClusterWorkloads(api).observe([target], now=0.0)[target.key]
    assert isinstance(state, Refused)
    assert state.reason == "Unauthorized"
    api.close()


@pytest.mark.usefixtures("without_hpa")
def test_long_lists_come_page_by_page(
    monkeypatch: pytest.MonkeyPatch, workloads: ClusterWorkloads, target: Target
) -> None:
    monkeypatch.setattr(client, "PAGE", 1)
    settled(workloads, target, ready=2)


@pytest.mark.usefixtures("with_hpa")
def test_a_decision_shows_where_people_look(
    kubectl: kubectl_tool.Kubectl, workloads: ClusterWorkloads, target: Target
) -> None:
    observed(workloads, target)
    now = clock.SystemClock().now()
    workloads.announce(target, Decision(now, 2, 4, 4, Reason.RAISED_FOR_FORECAST, "in_flight needs 4"))
    described = kubectl("describe", HPAS, target.name, f"--namespace={target.namespace}")
    assert "RaisedForForecast" in described
    assert "2 -> 4: in_flight needs 4" in described


@pytest.mark.usefixtures("with_hpa")
def test_the_fake_server_answers_like_the_real_one(cluster: plane.ControlPlane, namespace: str) -> None:
    """What the fast tests rest on: the same reason for the same mistake."""
    real = Api(Access(kubeconfig=cluster.kubeconfig))
    with FakeApiServer() as server:
        fake = Api(Access(kubeconfig=_kubeconfig_of(server, cluster)))
        for thing in real.list_all(resources.HPAS, namespace=namespace):
            server.put(HPAS, thing)
        for change in (
            {"spec": {"minReplicas": 9}},
            {"metadata": {"resourceVersion": "1"}},
            {"spec": {"minReplicas": 3}},
        ):
            assert _outcome(fake, change, namespace) == _outcome(real, change, namespace)
        fake.close()
    real.close()


def _kubeconfig_of(server: FakeApiServer, cluster: plane.ControlPlane) -> Path:
    text = cluster.kubeconfig.read_text().replace(cluster.url, server.url)
    path = cluster.state / "kubeconfigs" / "fake.yaml"
    path.write_text(text)
    return path


def _outcome(api: Api, change: dict[str, Any], namespace: str) -> object:
    try:
        return api.patch(resources.HPAS, change, namespace=namespace, name="vllm")["spec"]["minReplicas"]
    except errors.ClusterError as error:
        return type(error)
