"""What an autoscaler scales: the `spec.scaleTargetRef` that HPAs and ScaledObjects have alike."""

from predictor.cluster import fields, resources
from predictor.cluster.fields import Json
from predictor.targets import Kind, Target


def aims_at(scaler: Json, target: Target) -> bool:
    """Whether the autoscaler scales the target; the version within the API group does not matter.

    What a ScaledObject leaves out means a Deployment; an HPA leaves nothing out.
    """
    aim = fields.mapping(scaler, "spec", "scaleTargetRef")
    group = fields.text(aim, "apiVersion").rpartition("/")[0] if "apiVersion" in aim else "apps"
    kind = fields.text(aim, "kind") if "kind" in aim else Kind.DEPLOYMENT
    return (group, kind, fields.text(aim, "name")) == (resources.of(target).group, target.kind, target.name)
