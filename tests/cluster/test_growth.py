"""A node group that grows with delay, and what Floorcast says while a scale-up waits for a node."""

from typing import Any

import pytest

from tests.cluster import growth, kubectl, load, manifests, nodes, plane
from tests.cluster.conftest import Serve
from tests.cluster.floorcast import Floorcast, Tuning
from tests.servers import waiting


def group(name: str) -> nodes.Group:
    return nodes.Group(name, 0, 4, nodes.A100, reserved=True)


def pods(call: kubectl.Kubectl, namespace: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call.json("get", "pods", f"--namespace={namespace}")["items"]
    return found


def bound(call: kubectl.Kubectl, namespace: str) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in pods(call, namespace) if pod["spec"].get("nodeName"))


def test_a_waiting_pod_gets_a_node_after_the_delay_and_no_more_than_there_may_be(
    cluster: plane.ControlPlane, kubectl: kubectl.Kubectl, namespace: str
) -> None:
    place = group("spot")
    workload = manifests.Workload(namespace, replicas=3, gpus=4, group=place, image_delay_s=0.1, model_delay_s=0.1)
    kubectl.apply([manifests.deployment(workload)])
    with growth.GrowingGroup(cluster, place, delay_s=4.0, most=2) as growing:
        # The reserved nodes of the usual A100 group are of the same kind, but this workload does not tolerate them.
        waiting.until(lambda: bound(kubectl, namespace) == ["spot-0", "spot-1"], within_s=60, what="two pods on nodes")
        (left,) = [pod for pod in pods(kubectl, namespace) if not pod["spec"].get("nodeName")]
        (why,) = [one for one in left["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert why["reason"] == "Unschedulable"
        assert "Insufficient nvidia.com/gpu" in why["message"]
        assert growing.size == 2


@pytest.mark.timeout(600, func_only=True)
def test_floorcast_names_the_schedulers_reason_while_a_scale_up_waits_for_a_node(
    cluster: plane.ControlPlane, serve: Serve
) -> None:
    place = group("slow")
    calm, busy = load.steady(4.0), load.steady(14.0)  # 8 and 28 in flight: two replicas, and five
    workload = manifests.Workload("slow", replicas=2, max_replicas=8, group=place, image_delay_s=1.0, model_delay_s=2.0)
    # Longer than the 30 s that Floorcast waits at least before it calls a pod stuck.
    with growth.GrowingGroup(cluster, place, delay_s=45.0, most=2):
        served = serve(calm, workload)
        served.await_ready(2, within_s=180)
        with Floorcast(served, Tuning(warm_up_s=8.0)) as floorcast:
            target = served.workload.deployment
            served.load(busy)

            def stuck() -> float:
                return floorcast.metric("floorcast_replicas_stuck", target=target, reason="Unschedulable") or 0.0

            waiting.until(lambda: served.replicas() > place.gpus, within_s=120, what="more replicas than GPUs")
            waiting.until(stuck, within_s=120, what="stuck replicas in /metrics", every_s=1)
            told = next(line for line in floorcast.log() if '"replicas stuck"' in line)
            assert "Insufficient nvidia.com/gpu" in told
            served.await_ready(5, within_s=180)
            waiting.until(lambda: not stuck(), within_s=60, what="no stuck replica once the node is there", every_s=1)
