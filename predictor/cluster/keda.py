"""The floor under KEDA: `spec.minReplicaCount` of the ScaledObject, never of the HPA that KEDA makes from it.

KEDA starts its scale loop anew at every change of the object, and while it does, the HPA may be without a metric: the
floor is raised at once, then every half minute at most, and lowered a minute after the last write.
"""

from predictor.cluster import errors, fields
from predictor.cluster.errors import NotOursError
from predictor.cluster.fields import Json
from predictor.cluster.resources import SCALED_OBJECTS
from predictor.cluster.scaling import aims_at
from predictor.ports import Owner
from predictor.targets import Target

PREFIX = "autoscaling.keda.sh/"
PAUSED = f"{PREFIX}paused"
PAUSED_REPLICAS = f"{PREFIX}paused-replicas"
PAUSED_OUT = f"{PREFIX}paused-scale-out"
PAUSED_IN = f"{PREFIX}paused-scale-in"
MOST = 100  # KEDA's own default of maxReplicaCount


class ScaledObject:
    """A ScaledObject as the carrier of a floor."""

    owner: Owner = Owner.KEDA
    resource = SCALED_OBJECTS
    kind = "ScaledObject"
    short = "ScaledObject"
    path: tuple[str, ...] = ("spec", "minReplicaCount")
    default = 0
    rest = 60.0
    raise_rest = 30.0  # KEDA looks every 30 s by default: its loop gets round once between two changes
    annotated = True

    def aims_at(self, thing: Json, target: Target) -> bool:
        """Whether it scales the target."""
        return aims_at(thing, target)

    def maximum(self, thing: Json, *, otherwise: int) -> int:  # noqa: ARG002  (KEDA has a default)
        """Its maxReplicaCount; where scaling out is paused what stands, because a floor would go past the pause."""
        most = fields.integer(thing, "spec", "maxReplicaCount")
        most = MOST if most is None else most
        return min(most, self._standing(thing)) if _is_set(thing, PAUSED_OUT) else most

    def lowest(self, thing: Json, *, base: int) -> int:
        """More than its idleReplicaCount, which KEDA insists on; else one, or zero where that is the user's own."""
        idle = fields.integer(thing, "spec", "idleReplicaCount")
        return min(1, base) if idle is None else idle + 1

    def problem(self, thing: Json) -> str:
        """Scaling in is paused, the triggers fail, or KEDA fell back to a fixed number."""
        name = fields.name(thing)
        if _is_set(thing, PAUSED_IN):
            return f"ScaledObject {name}: scaling in is paused by {PAUSED_IN}"
        ready, fallback = fields.condition(thing, "Ready"), fields.condition(thing, "Fallback")
        if fields.text(ready, "status") == "False":
            return f"ScaledObject {name}: not Ready, {fields.text(ready, 'reason')}: {fields.text(ready, 'message')}"
        if fields.text(fallback, "status") == "True":
            return f"ScaledObject {name}: a trigger fails and KEDA falls back, {fields.text(fallback, 'message')}"
        return ""

    def hands_off(self, thing: Json) -> NotOursError | None:
        """It is paused, and has no HPA then; or it is made by something else."""
        name = fields.name(thing)
        for key in (PAUSED, PAUSED_REPLICAS):
            if _is_set(thing, key):
                return errors.PausedError(
                    f"ScaledObject {name} is paused by {key}: a floor has no effect until the annotation is removed"
                )
        above = fields.maker(thing)
        if not above:
            return None
        return errors.OwnedElsewhereError(
            f"ScaledObject {name} is made by {above}, which would undo a change; only advice is given: set the minimum"
            f" of the {above.partition(' ')[0]} by hand"
        )

    def _standing(self, thing: Json) -> int:
        return fields.count(thing, *self.path)


def _is_set(thing: Json, key: str) -> bool:
    """Whether an annotation of KEDA's is there and not false; a number of replicas counts, zero included."""
    found = fields.mapping(thing, "metadata", "annotations")
    return key in found and (key == PAUSED_REPLICAS or fields.truthful(fields.text(found, key)))
