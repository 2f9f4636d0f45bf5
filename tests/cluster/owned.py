"""Objects of the ownership table, one builder a row; whatever makes them in a real cluster is not here."""

from pathlib import Path
from typing import Any

from tests.cluster import kubectl as kubectl_tool
from tests.cluster import manifests

Json = dict[str, Any]
CRDS = sorted((Path(__file__).parent / "crds").glob("*.yaml"))
MINIMUM, MAXIMUM = 2, 9
PLURALS = {
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "ScaledObject": "scaledobjects.keda.sh",
    "InferenceService": "inferenceservices.serving.kserve.io",
    "LeaderWorkerSet": "leaderworkersets.leaderworkerset.x-k8s.io",
    "Rollout": "rollouts.argoproj.io",
    "ModelServer": "modelservers.example.com",
    "Revision": "revisions.serving.knative.dev",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
}


class Builder:
    """Makes objects in one namespace, each owned by another if that is asked for."""

    def __init__(self, kubectl: kubectl_tool.Kubectl, namespace: str) -> None:
        self.kubectl = kubectl
        self.namespace = namespace

    def make(self, thing: Json, *, owner: Json | None = None) -> Json:
        """Create it and return it as the API server has it."""
        meta = {"namespace": self.namespace, **thing["metadata"]}
        if owner is not None:
            made_by = {key: owner["metadata"][key] for key in ("name", "uid")}
            kind = {key: owner[key] for key in ("apiVersion", "kind")}
            meta["ownerReferences"] = [{**kind, **made_by, "controller": True, "blockOwnerDeletion": False}]
        self.kubectl.apply([{**thing, "metadata": meta}])
        return self.get(thing["kind"], meta["name"])

    def get(self, kind: str, name: str) -> Json:
        return self.kubectl.json("get", PLURALS[kind], name, f"--namespace={self.namespace}", "--show-managed-fields")

    def workload(self, kind: str = "Deployment", name: str = "llm", *, owner: Json | None = None) -> Json:
        """A Deployment or StatefulSet of MINIMUM replicas that are Ready in two seconds."""
        spec = manifests.deployment(
            manifests.Workload(self.namespace, name, replicas=MINIMUM, image_delay_s=0, model_delay_s=1, gpus=0)
        )
        return self.make({**spec, "kind": kind}, owner=owner)

    def hpa(self, name: str = "llm", *, aim: str = "llm", owner: Json | None = None, **labels: str) -> Json:
        thing = manifests.hpa(manifests.Workload(self.namespace, aim, replicas=MINIMUM, max_replicas=MAXIMUM))
        return self.make({**thing, "metadata": {"name": name, "labels": labels}}, owner=owner)

    def scaled_object(self, *, aim: str = "llm", owner: Json | None = None, **annotations: str) -> Json:
        """With the HPA that KEDA would make from it."""
        spec = {
            "scaleTargetRef": {"name": aim},
            "minReplicaCount": MINIMUM,
            "maxReplicaCount": MAXIMUM,
            "triggers": [{"type": "prometheus", "metadata": {"query": "vector(1)"}}],
        }
        meta = {"name": "llm", "annotations": annotations}
        thing = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta, "spec": spec}
        made = self.make(thing, owner=owner)
        self.hpa("keda-hpa-llm", aim=aim, owner=made, **{"scaledobject.keda.sh/name": "llm"})
        return made

    def inference_service(self) -> Json:
        predictor = {"minReplicas": MINIMUM, "maxReplicas": MAXIMUM, "model": {"modelFormat": {"name": "vllm"}}}
        thing = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "llm"}}
        return self.make({**thing, "spec": {"predictor": predictor}})

    def other(self, api_version: str, kind: str, spec: Json, *, selector: str = "", name: str = "llm") -> Json:
        """A custom resource; with a selector in its status, where its scale shows it."""
        thing = self.make({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
        if selector:
            key = "hpaPodSelector" if kind == "LeaderWorkerSet" else "selector"
            status = f'{{"status": {{"{key}": "{selector}", "observedGeneration": 1}}}}'
            place = (PLURALS[kind], name, f"--namespace={self.namespace}")
            self.kubectl("patch", *place, "--subresource=status", "--type=merge", f"--patch={status}")
        return thing


def install(kubectl: kubectl_tool.Kubectl) -> None:
    """Install the kinds and wait until the API server serves them."""
    for path in CRDS:
        kubectl("apply", "--server-side", "--force-conflicts", f"--filename={path}")
        kubectl("wait", "--for=condition=Established", f"--filename={path}", "--timeout=60s")
