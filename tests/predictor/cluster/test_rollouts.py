import pytest

from predictor.cluster import rollouts
from predictor.targets import Kind
from tests.fakes.cluster_objects import Json, condition, deployment, stateful_set

QUOTA = [condition("ReplicaFailure", "True", reason="FailedCreate")]


@pytest.mark.parametrize(
    ("status", "rolling"),
    [
        ({}, False),
        ({"observedGeneration": 0}, True),
        ({"replicas": 4, "updatedReplicas": 1}, True),  # one surge pod of the new version, three old
        ({"replicas": 0, "updatedReplicas": 0}, True),  # Recreate: the old are gone, the new are not made yet
        ({"replicas": 2, "updatedReplicas": 2}, True),
        ({"replicas": 2, "updatedReplicas": 2, "conditions": QUOTA}, False),
        ({"readyReplicas": 1, "unavailableReplicas": 2}, False),  # merely warming after a scale-up
    ],
)
def test_a_deployment_is_rolled_out_while_old_pods_run_or_new_ones_are_not_made(status: Json, rolling: bool) -> None:  # noqa: FBT001
    workload = deployment(replicas=3)
    workload["status"] |= status
    assert rollouts.under_way(Kind.DEPLOYMENT, workload) is rolling


@pytest.mark.parametrize(
    ("strategy", "status", "rolling"),
    [
        ({}, {}, False),
        ({}, {"updateRevision": "b", "updatedReplicas": 1}, True),
        ({}, {"updateRevision": "b"}, True),
        ({"rollingUpdate": {"partition": 2}}, {"updateRevision": "b", "updatedReplicas": 1}, False),
        ({"rollingUpdate": {"partition": 9}}, {"updateRevision": "b"}, False),
        ({"type": "OnDelete"}, {"updateRevision": "b"}, False),
        ({}, {"updateRevision": None}, False),
        ({}, {"observedGeneration": 0}, True),
    ],
)
def test_a_stateful_set_is_rolled_out_down_to_its_partition(strategy: Json, status: Json, rolling: bool) -> None:  # noqa: FBT001
    workload = stateful_set(replicas=3, **status)
    workload["spec"]["updateStrategy"] = strategy
    assert rollouts.under_way(Kind.STATEFUL_SET, workload) is rolling


def test_replicas_that_are_left_out_are_one() -> None:
    assert rollouts.asked_for(deployment(replicas=None)) == 1
    assert rollouts.asked_for(deployment(replicas=0)) == 0
