"""The marks that GitOps tools leave on what they apply, and how each is told to leave one field alone.

They say that the object comes from a repository, not that the number does: who set that stands in the managed fields.
`app.kubernetes.io/instance` is none of them: it was Argo CD's by default once, and is in every Helm chart.
"""

import dataclasses

from predictor.cluster import fields
from predictor.cluster.fields import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """One tool's mark: where it stands ("annotations" or "labels" of the metadata), under which key, and the remedy."""

    tool: str
    place: str
    key: str
    remedy: str


_ARGO = "ignoreDifferences with syncOptions RespectIgnoreDifferences=true"
_MARKS = (
    Mark("Argo CD", "annotations", "argocd.argoproj.io/tracking-id", _ARGO),
    Mark("Argo CD", "labels", "argocd.argoproj.io/instance", _ARGO),
    Mark(
        "Flux",
        "labels",
        "kustomize.toolkit.fluxcd.io/name",
        "leave it out of the manifest, or annotate the object with kustomize.toolkit.fluxcd.io/ssa: IfNotPresent",
    ),
    Mark("Flux", "labels", "helm.toolkit.fluxcd.io/name", "driftDetection.ignore of the HelmRelease"),
)


def mark(thing: Json) -> Mark | None:
    """The mark on an object; None where there is none."""
    return next((one for one in _MARKS if one.key in fields.mapping(thing, "metadata", one.place)), None)


def notice(found: Mark, *, kind: str, name: str, field: str) -> str:
    """What whoever runs the tool should know, once Floorcast writes `field`."""
    return (
        f"{kind} {name} is applied by {found.tool} ({found.key}), which did not set {field}. Should the repository come"
        f" to name it, a sync undoes what Floorcast writes: {found.remedy} (docs/ownership.md, GitOps)"
    )
