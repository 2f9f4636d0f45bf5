"""The shapes that Floorcast and its rivals share."""

from models.policy.context import Supply
from models.policy.protocol import Observation, Pod


def test_what_a_pod_does_is_not_known_until_its_page_said_so() -> None:
    pod = Pod("a")
    assert pod.ready
    assert not pod.pending
    assert (pod.running, pod.waiting, pod.kv_usage) == (None, None, None)


def test_the_pods_are_not_known_one_by_one_unless_somebody_lists_them() -> None:
    seen = Observation(now=0.0, replicas=1, minimum=1, maximum=2, supply=Supply(ready=1), readings={})
    assert seen.pods is None
