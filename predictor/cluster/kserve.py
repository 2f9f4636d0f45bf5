"""The floor under KServe: `spec.predictor.minReplicas` of the InferenceService.

KServe makes the Deployment and its HPA or ScaledObject from it, and writes them again whenever it looks. Only where it
runs plain Deployments: under Knative each change makes a new revision, and a model is loaded anew for it.
"""

from predictor.cluster import errors, fields
from predictor.cluster.errors import NotOursError
from predictor.cluster.fields import Json
from predictor.cluster.resources import INFERENCE_SERVICES
from predictor.ports import Owner
from predictor.targets import Target

DEPLOYMENT_MODE = "serving.kserve.io/deploymentMode"
KNATIVE = ("Serverless", "Knative")  # one mode, renamed
SUFFIX = "-predictor"  # of the name of the Deployment that serves


class InferenceService:
    """An InferenceService as the carrier of a floor."""

    owner: Owner = Owner.KSERVE
    resource = INFERENCE_SERVICES
    kind = "InferenceService"
    short = "InferenceService"
    path: tuple[str, ...] = ("spec", "predictor", "minReplicas")
    default = 1
    rest = 60.0  # a change goes through two more controllers, and through KEDA's where that is one of them
    raise_rest = 30.0  # of KEDA, where that is one of them
    annotated = False  # KServe copies them into the pods' template, and a change would replace every pod

    def aims_at(self, thing: Json, target: Target) -> bool:  # noqa: ARG002  (found through the owner chain)
        """Always: it is found as the maker of the target's workload."""
        return True

    def maximum(self, thing: Json, *, otherwise: int) -> int:
        """Its maxReplicas; zero means none, and then the configured one counts."""
        return fields.count(thing, "spec", "predictor", "maxReplicas") or otherwise

    def lowest(self, thing: Json, *, base: int) -> int:  # noqa: ARG002  (the same for all)
        """One; zero where that is the user's own."""
        return min(1, base)

    def problem(self, thing: Json) -> str:
        """It says that its predictor is not ready."""
        ready = fields.condition(thing, "PredictorReady")
        if fields.text(ready, "status") != "False":
            return ""
        said = f"{fields.text(ready, 'reason')}: {fields.text(ready, 'message')}"
        return f"InferenceService {fields.name(thing)}: PredictorReady is False, {said}"

    def hands_off(self, thing: Json) -> NotOursError | None:
        """It runs on Knative, or is made by something else."""
        name, above = fields.name(thing), fields.maker(thing)
        if mode(thing) in KNATIVE:
            return errors.OwnedElsewhereError(
                f"InferenceService {name} runs on Knative, where a new minimum makes a new revision and loads the model"
                f" anew; only advice is given: annotate it with {DEPLOYMENT_MODE}: Standard (RawDeployment) to have its"
                " floor moved"
            )
        if above:
            return errors.OwnedElsewhereError(
                f"InferenceService {name} is made by {above}, which would undo a change; only advice is given: set the"
                f" minimum of the {above.partition(' ')[0]} by hand"
            )
        return None


def mode(thing: Json) -> str:
    """How it is deployed: what it is now, else what it asks for; empty where neither is told."""
    asked = fields.text(thing, "metadata", "annotations", DEPLOYMENT_MODE)
    return fields.text(thing, "status", "deploymentMode") or asked
