"""Whatever comes back, reading it does not raise."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.capacity import warmup
from models.policy.context import Supply
from predictor.cluster import fields, hpa, inventory, keda, kserve, marks, pods, rollouts, scaling
from predictor.targets import Kind
from tests.fakes.cluster_objects import target

PLACES = ("metadata", "spec", "status", "conditions", "ownerReferences", "annotations", "labels", "managedFields")
VALUES = ("type", "name", "uid", "controller", "minReplicas", "replicas", "containerStatuses", "lastTransitionTime")
KEYS = st.sampled_from((*PLACES, *VALUES))
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("Ready") | st.just("True")
THINGS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))
OBJECTS = st.dictionaries(KEYS, THINGS, max_size=5)


@settings(deadline=None)  # on a busy machine a first example of 0.3 s is no slow code
@given(OBJECTS)
def test_no_object_is_too_odd_to_read(thing: fields.Json) -> None:
    scaling.aims_at(thing, target())
    for kind in (hpa.Hpa(), keda.ScaledObject(), kserve.InferenceService()):
        kind.problem(thing)
        kind.hands_off(thing)
        kind.maximum(thing, otherwise=3)
        kind.lowest(thing, base=1)
    marks.original(fields.integer(thing, "spec", "minReplicas"), marks.read(thing), default=1)
    marks.pause(thing, marks.RELEASED)
    fields.manager_of(thing, "spec", "minReplicas")
    for workload_kind in (*Kind, "Other"):
        rollouts.under_way(workload_kind, thing)
        rollouts.one_by_one(workload_kind, thing)
    pods.start(thing)
    inventory.by_workload([thing], [thing])
    assert isinstance(pods.supply([thing], now=0.0, usual=warmup.of_seconds()), Supply)


@pytest.mark.parametrize("thing", [None, [], "text", 3, {"a": None}, {"a": []}, {"a": {"b": []}}])
def test_what_is_not_there_is_the_empty_value_of_its_type(thing: object) -> None:
    assert fields.mapping(thing, "a", "b") == {}
    assert fields.mappings(thing, "a", "b") == ()
    assert fields.text(thing, "a", "b") == ""
    assert fields.integer(thing, "a", "b") is None
    assert fields.count(thing, "a", "b") == 0
    assert fields.instant(thing, "a", "b") is None
    assert fields.truth(thing, "a", "b") is False


def test_a_true_is_no_number() -> None:
    assert fields.integer({"a": True}, "a") is None


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T08:00:00.500000Z", 1_800_000_000.5),
        ("2027-01-15T09:00:00+01:00", 1_800_000_000.0),
        ("yesterday", None),
    ],
)
def test_times_are_unix_seconds(written: str, seconds: float | None) -> None:
    assert fields.instant({"at": written}, "at") == seconds
