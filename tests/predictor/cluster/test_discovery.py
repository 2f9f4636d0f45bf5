"""Workloads that ask by label to be scaled."""

import pytest

from predictor.cluster import discovery, errors
from predictor.cluster.client import Api
from predictor.settings.discovered import Labelled
from predictor.targets import Kind
from tests.fakes import cluster_objects as objects
from tests.fakes.api_server import FakeApiServer

BOTH = (Kind.DEPLOYMENT, Kind.STATEFUL_SET)


def put(server: FakeApiServer, plural: str, name: str, namespace: str = "llm", **annotations: str) -> None:
    thing = objects.deployment(name)
    named = {f"floorcast.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    thing["metadata"] |= {"namespace": namespace, "labels": {discovery.LABEL: "true"}, "annotations": named}
    server.put(plural, thing)


def test_labelled_workloads_are_found_with_what_their_annotations_say(server: FakeApiServer, api: Api) -> None:
    put(server, "deployments", "chat", concurrency="20", warm_up="5m", last_written="4")
    put(server, "statefulsets", "code", namespace="staging")
    server.put("deployments", objects.deployment("unlabelled"))
    assert discovery.find(api, namespaces=(), kinds=BOTH) == (
        Labelled("llm", "chat", "Deployment", (("concurrency", "20"), ("warm-up", "5m"))),
        Labelled("staging", "code", "StatefulSet"),
    )
    (listed,) = server.asked("list deployments")
    assert listed.query["labelSelector"] == "floorcast.dev/scale=true"
    assert "PartialObjectMetadataList" in listed.headers["accept"]


def test_only_the_namespaces_that_are_named_are_looked_through(server: FakeApiServer, api: Api) -> None:
    for namespace in ("llm", "staging"):
        put(server, "deployments", "chat", namespace=namespace)
    found = discovery.find(api, namespaces=("staging",), kinds=(Kind.DEPLOYMENT,))
    assert [one.key for one in found] == ["staging/chat"]


def test_a_kind_that_the_cluster_does_not_know_has_none(server: FakeApiServer, api: Api) -> None:
    server.absent.add("leaderworkersets")
    put(server, "deployments", "chat")
    found = discovery.find(api, namespaces=(), kinds=(Kind.LEADER_WORKER_SET, Kind.DEPLOYMENT))
    assert [one.key for one in found] == ["llm/chat"]


def test_a_missing_permission_is_an_error_and_no_empty_list(server: FakeApiServer, api: Api) -> None:
    server.denied.add("list deployments")
    with pytest.raises(errors.ForbiddenError):
        discovery.find(api, namespaces=(), kinds=BOTH)
