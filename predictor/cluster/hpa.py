"""The floor under a HorizontalPodAutoscaler: its `spec.minReplicas`, and nothing else of it."""

from predictor.cluster import errors, fields
from predictor.cluster.errors import NotOursError
from predictor.cluster.fields import Json
from predictor.cluster.resources import HPAS
from predictor.cluster.scaling import aims_at
from predictor.ports import Owner
from predictor.targets import Target

KEDA = "scaledobject.keda.sh/name"


class Hpa:
    """A HorizontalPodAutoscaler as the carrier of a floor."""

    owner: Owner = Owner.HPA
    resource = HPAS
    kind = "HorizontalPodAutoscaler"
    short = "HPA"
    path: tuple[str, ...] = ("spec", "minReplicas")
    default = 1
    rest = 0.0  # it looks every 15 s, whether its bounds changed or not
    raise_rest = 0.0
    annotated = True

    def aims_at(self, thing: Json, target: Target) -> bool:
        """Whether it scales the target."""
        return aims_at(thing, target)

    def maximum(self, thing: Json, *, otherwise: int) -> int:  # noqa: ARG002  (it always has one)
        """Its maxReplicas."""
        return fields.count(thing, "spec", "maxReplicas")

    def lowest(self, thing: Json, *, base: int) -> int:  # noqa: ARG002  (the same for all)
        """One; zero only where the user's own is zero, which takes a feature gate of the cluster."""
        return min(1, base)

    def problem(self, thing: Json) -> str:
        """A condition that is False."""
        return problem(thing)

    def hands_off(self, thing: Json) -> NotOursError | None:
        """It is made by a controller, which would undo a change."""
        above = maker(thing)
        if not above:
            return None
        return errors.OwnedElsewhereError(
            f"HPA {fields.name(thing)} is made by {above}, which would undo a change; only advice is given: set the"
            f" minimum of the {above.partition(' ')[0]} by hand"
        )


def maker(hpa: Json) -> str:
    """What makes the HPA, "ScaledObject llm"; empty where a person or a chart did. KEDA's label counts as well."""
    keda = fields.text(hpa, "metadata", "labels", KEDA)
    return fields.maker(hpa) or (f"ScaledObject {keda}" if keda else "")


def problem(hpa: Json) -> str:
    """What an HPA reports to be wrong with its scaling; empty when nothing, or nothing yet."""
    for kind in ("AbleToScale", "ScalingActive"):
        found = fields.condition(hpa, kind)
        reason = fields.text(found, "reason")
        if fields.text(found, "status") == "False" and reason != "ScalingDisabled":
            return f"HPA {fields.name(hpa)}: {kind} is False, {reason}: {fields.text(found, 'message')}"
    return ""
