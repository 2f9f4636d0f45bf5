"""Why a pod is not Ready, and which GPUs it asks for."""

import pytest

from predictor.cluster import gpus, troubles
from tests.fakes.cluster_objects import Json, condition, pod

NO_GPU = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."


def unready(**status: object) -> Json:
    one = pod("a", created=-500)
    one["status"] |= status
    return one


def test_a_pod_without_a_node_says_what_the_scheduler_says() -> None:
    told = condition("PodScheduled", "False", reason="Unschedulable", message=NO_GPU)
    assert troubles.of(unready(conditions=[told])) == ("Unschedulable", NO_GPU)
    assert troubles.of(unready(conditions=[condition("PodScheduled", "False")])) == ("Unschedulable", "")
    assert troubles.unschedulable(unready(conditions=[told]))
    assert not troubles.unschedulable(unready())


@pytest.mark.parametrize("kind", ["initContainerStatuses", "containerStatuses"])
def test_a_container_says_what_it_waits_for(kind: str) -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    assert troubles.of(unready(**{kind: [waiting]})) == ("ImagePullBackOff", "no such image")


def test_a_container_that_ended_before_says_why() -> None:
    ended = {"restartCount": 4, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
    assert troubles.of(unready(containerStatuses=[ended])) == ("OOMKilled", "exit code 137, 4 restarts")


def test_otherwise_it_is_just_not_ready() -> None:
    told = condition("Ready", "False", message="containers with unready status: [vllm]")
    assert troubles.of(unready(conditions=[told])) == ("NotReady", "containers with unready status: [vllm]")
    assert troubles.of({}) == ("NotReady", "no container says why")


def test_a_long_message_is_cut() -> None:
    told = condition("PodScheduled", "False", reason="Unschedulable", message="x" * 9999)
    assert len(troubles.of(unready(conditions=[told]))[1]) == troubles.SHORT


def asking(**spec: object) -> Json:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}, 8),
        ({"requests": {"amd.com/gpu": 2}}, 2),
        ({"limits": {"cpu": "4"}}, 0),
        ({"limits": {"nvidia.com/gpu": "many"}}, 0),
        ({}, 0),
    ],
)
def test_gpus_are_counted_once(resources: Json, count: int) -> None:
    assert gpus.count(asking(containers=[{"resources": resources}, {"name": "sidecar"}])) == count


def test_the_type_is_what_the_pod_selects_its_node_by() -> None:
    assert (
        gpus.kind(asking(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})) == "NVIDIA-H100-80GB-HBM3"
    )
    assert gpus.kind(asking(nodeSelector={"disk": "ssd"})) == ""
    assert gpus.kind({}) == ""


def test_the_type_may_be_asked_for_by_affinity() -> None:
    def affinity(key: str, values: object, operator: str = "In") -> Json:
        terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return asking(affinity={"nodeAffinity": required})

    label = "cloud.google.com/gke-accelerator"
    assert gpus.kind(affinity(label, ["nvidia-l4", "nvidia-a100"])) == "nvidia-a100,nvidia-l4"
    assert gpus.kind(affinity(label, None)) == ""
    assert gpus.kind(affinity(label, ["nvidia-l4"], "NotIn")) == ""
    assert gpus.kind(affinity("zone", ["a"])) == ""
