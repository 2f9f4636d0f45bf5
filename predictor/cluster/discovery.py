"""Workloads that ask to be scaled: those that carry the label `floorcast.dev/scale: "true"`."""

from collections.abc import Iterable, Iterator, Sequence

from predictor.cluster import client, errors, fields, resources
from predictor.cluster.fields import Json
from predictor.settings.discovered import ANNOTATIONS, PREFIX, Labelled
from predictor.targets import Kind

LABEL = f"{PREFIX}scale"


def find(api: client.Api, *, namespaces: Sequence[str], kinds: Iterable[Kind]) -> tuple[Labelled, ...]:
    """The labelled workloads, ordered; a kind that the cluster does not know has none.

    Args:
        api: the API server.
        namespaces: where to look; empty for everywhere.
        kinds: kinds that are looked through.

    Raises:
        ClusterError: one of them cannot be listed; then nothing is known of any.
    """
    return tuple(
        sorted(
            _labelled(thing, kind)
            for kind in kinds
            for namespace in namespaces or ("",)
            for thing in _list(api, kind, namespace)
        )
    )


def _list(api: client.Api, kind: Kind, namespace: str) -> Iterator[Json]:
    try:
        yield from api.list_all(resources.KNOWN[kind], namespace=namespace, names_only=True, labels=f"{LABEL}=true")
    except errors.NotFoundError:
        return


def _labelled(thing: Json, kind: Kind) -> Labelled:
    found = fields.mapping(thing, "metadata", "annotations")
    ours = tuple((name, fields.text(found, PREFIX + name)) for name in sorted(ANNOTATIONS) if PREFIX + name in found)
    return Labelled(fields.text(thing, "metadata", "namespace"), fields.name(thing), str(kind), ours)
