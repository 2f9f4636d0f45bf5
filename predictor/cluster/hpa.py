"""The floor under a HorizontalPodAutoscaler: its `spec.minReplicas`, and nothing else of it."""

from predictor.cluster import client, errors, fields, marks
from predictor.cluster.fields import Json
from predictor.cluster.inventory import Inventory
from predictor.cluster.marks import Marks
from predictor.cluster.owners import Number, Object
from predictor.cluster.resources import HPAS, WORKLOADS
from predictor.ports import Owner, Workload
from predictor.targets import Mode, Target

TRIES = 3  # an HPA's status changes every few seconds, so one patch in a while meets a newer version
KEDA = "scaledobject.keda.sh/name"


class HpaActuator:
    """Moves minReplicas. The patch names the version it was computed from: a change in between is a 409, never lost."""

    owner = Owner.HPA

    def __init__(self, api: client.Api) -> None:
        self._api = api

    def number(self, target: Target, inventory: Inventory) -> Number | None:
        """The floor of the one HPA that scales the target; None without any.

        Raises:
            AmbiguousOwnerError: more than one HPA scales it.
            OwnedElsewhereError: the HPA is made by a controller, and would have to be written.
        """
        referring = [hpa for hpa in inventory.hpas if refers(hpa, target)]
        if not referring:
            return None
        if len(referring) > 1:
            names = " and ".join(sorted(map(fields.name, referring)))
            raise errors.AmbiguousOwnerError(f"HPAs {names} both scale {target.kind} {target.key}; keep one of them")
        hpa = referring[0]
        if target.mode is Mode.CONTROL:
            refuse_if_made(hpa)
        live, found = minimum(hpa), marks.read(hpa)
        return Number(
            owner=self.owner,
            thing=_object(hpa),
            standing=live,
            base=marks.base(live, found),
            maximum=maximum(hpa),
            problem=problem(hpa),
            adopted=marks.ours(live, found),
        )

    def write(self, target: Target, replicas: int, *, thing: Object, seen: Workload) -> int:
        """Sets minReplicas within the HPA's bounds. What changed beside it is no reason to give up."""
        for _ in range(TRIES):
            hpa = self._read(thing)
            if not refers(hpa, target):
                raise errors.ConflictError(f"HPA {thing.name} no longer scales {target.kind} {target.key}")
            refuse_if_made(hpa)
            _refuse_if_changed(hpa, seen)
            base = marks.base(minimum(hpa), marks.read(hpa))
            wanted = within_bounds(hpa, replicas, base=base)
            try:
                after = self._patch(hpa, wanted, Marks(base, wanted))
            except errors.ConflictError:
                continue
            if minimum(after) != wanted:
                raise errors.OverruledError(f"HPA {thing.name}: wrote minReplicas {wanted}, {minimum(after)} stands")
            return wanted
        raise errors.ConflictError(f"HPA {thing.name} changed during each of {TRIES} tries")

    def release(self, target: Target) -> int | None:
        """Restores every HPA of the target that carries our marks."""
        referring = [hpa for hpa in self._api.list_all(HPAS, namespace=target.namespace) if refers(hpa, target)]
        standing = [self.restore(hpa) if marks.present(hpa) else minimum(hpa) for hpa in referring]
        return standing[0] if standing else None

    def marked(self, namespace: str = "") -> list[Json]:
        """All HPAs with our marks, in a namespace or everywhere."""
        return [hpa for hpa in self._api.list_all(HPAS, namespace=namespace) if marks.present(hpa)]

    def restore(self, hpa: Json) -> int:
        """Gives the original minimum back, takes the marks away, and reads both back; the minimum that stands.

        A minimum that somebody else has changed since is theirs and stays.
        """
        thing = _object(hpa)
        for _ in range(TRIES):
            if not marks.present(hpa):
                return minimum(hpa)
            original = within_bounds(hpa, marks.base(minimum(hpa), marks.read(hpa)), base=0)
            try:
                self._patch(hpa, original, None)
            except errors.ConflictError:
                hpa = self._read(thing)
                continue
            return self._verify(thing, original)
        raise errors.ConflictError(f"HPA {thing.name} changed during each of {TRIES} tries to release it")

    def _verify(self, thing: Object, original: int) -> int:
        hpa = self._read(thing)
        if marks.present(hpa) or minimum(hpa) != original:
            raise errors.NotReleasedError(
                f"HPA {thing.namespace}/{thing.name} has minReplicas {minimum(hpa)} right after {original} was given"
                " back; is a Floorcast still running in control mode?"
            )
        return original

    def _read(self, thing: Object) -> Json:
        return self._api.get(HPAS, namespace=thing.namespace, name=thing.name)

    def _patch(self, hpa: Json, replicas: int, left: Marks | None) -> Json:
        version = fields.text(hpa, "metadata", "resourceVersion")
        change = {
            "metadata": {"resourceVersion": version, "annotations": marks.annotations(left)},
            "spec": {"minReplicas": replicas},
        }
        namespace = fields.text(hpa, "metadata", "namespace")
        return self._api.patch(HPAS, change, namespace=namespace, name=fields.name(hpa))


def refers(hpa: Json, target: Target) -> bool:
    """Whether the HPA scales the target; the version within the API group does not matter."""
    aim = fields.mapping(hpa, "spec", "scaleTargetRef")
    group = fields.text(aim, "apiVersion").rpartition("/")[0]
    kind, name = fields.text(aim, "kind"), fields.text(aim, "name")
    return (group, kind, name) == (WORKLOADS[target.kind].group, target.kind, target.name)


def minimum(hpa: Json) -> int:
    """minReplicas; one where it is left out."""
    live = fields.integer(hpa, "spec", "minReplicas")
    return 1 if live is None else live


def maximum(hpa: Json) -> int:
    """The HPA's maxReplicas."""
    return fields.count(hpa, "spec", "maxReplicas")


def within_bounds(hpa: Json, replicas: int, *, base: int) -> int:
    """A minimum the API server accepts: at most maxReplicas, and zero only where the user's own is zero."""
    return min(max(replicas, min(1, base)), maximum(hpa))


def refuse_if_made(hpa: Json) -> None:
    """Raises OwnedElsewhereError for an HPA that a controller makes: it would undo the write."""
    maker = fields.controller(hpa)
    keda = fields.text(hpa, "metadata", "labels", KEDA)
    if not maker and not keda:
        return
    above = f"{fields.text(maker, 'kind')} {fields.text(maker, 'name')}" if maker else f"ScaledObject {keda}"
    raise errors.OwnedElsewhereError(
        f"HPA {fields.name(hpa)} is made by {above}, which would undo a change; this release cannot write that kind"
        " (a later one will write the minimum of the ScaledObject), so keep the target in shadow mode"
    )


def problem(hpa: Json) -> str:
    """What the HPA reports to be wrong with its scaling; empty when nothing, or nothing yet."""
    for kind in ("AbleToScale", "ScalingActive"):
        found = fields.condition(hpa, kind)
        reason = fields.text(found, "reason")
        if fields.text(found, "status") == "False" and reason != "ScalingDisabled":
            return f"HPA {fields.name(hpa)}: {kind} is False, {reason}: {fields.text(found, 'message')}"
    return ""


def _refuse_if_changed(hpa: Json, seen: Workload) -> None:
    live = minimum(hpa)
    if live == seen.standing:
        return
    who = fields.manager_of(hpa, "spec", "minReplicas") or "somebody"
    raise errors.ConflictError(
        f"HPA {fields.name(hpa)} has minReplicas {live}, set by {who}; {seen.standing} stood when this was decided"
    )


def _object(hpa: Json) -> Object:
    namespace = fields.text(hpa, "metadata", "namespace")
    return Object(HPAS.api_version, "HorizontalPodAutoscaler", namespace, fields.name(hpa), fields.uid(hpa))
