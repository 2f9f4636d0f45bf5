"""Who owns a target's number: the highest object that does is the one to write.

From below: the workload; the HPA or ScaledObject that refers to it; the object that makes one of these. KEDA makes an
HPA of its own for each ScaledObject, KServe makes all three. Where the chain ends at a kind that is not known, whatever
is below it would be written again by that kind's controller: then the number is advised on and not written.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

import structlog

from predictor.cluster import client, errors, fields, gitops, hpa, marks, resources, scaling
from predictor.cluster.conditions import Condition
from predictor.cluster.contest import Look
from predictor.cluster.errors import NotOursError
from predictor.cluster.fields import Json
from predictor.cluster.floors import FloorActuator
from predictor.cluster.hpa import Hpa
from predictor.cluster.inventory import Inventory
from predictor.cluster.keda import ScaledObject
from predictor.cluster.kserve import InferenceService
from predictor.cluster.owners import Number, Object
from predictor.cluster.scale import ScaleActuator
from predictor.ports import Owner, Workload
from predictor.targets import Target

_log = structlog.get_logger(__name__)

# Field managers of what applies a repository again and again. Helm is none: it writes at an upgrade only.
GITOPS = ("argocd", "kustomize-controller", "helm-controller", "flux", "fleetagent", "kapp-controller")


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A target's number and where it was found.

    Attributes:
        number: the number.
        thing: the object that carries it, as it was read.
        workload: the workload object that runs the pods.
        aim: what autoscalers refer to: the target, or the Deployment that is made for it.
    """

    number: Number
    thing: Json
    workload: Json
    aim: Target


class Ownership:
    """Finds the owners of numbers, and reads, writes and releases through them.

    Args:
        api: where to write.
        owners: the kinds of owner that may be written; of the others advice is given.
    """

    def __init__(self, api: client.Api, owners: Collection[Owner]) -> None:
        self._owners = owners
        self.floors: Mapping[Owner, FloorActuator] = {
            kind.owner: FloorActuator(api, kind) for kind in (Hpa(), ScaledObject(), InferenceService())
        }
        self.scale = ScaleActuator(api)

    def find(self, target: Target, stock: Inventory, *, now: float) -> Found:
        """The number of a target, as its highest owner has it.

        Raises:
            AmbiguousOwnerError: more than one autoscaler scales it.
            NotFoundError: there is no such workload.
        """
        aim = stock.aim(target)
        workload = stock.workload(aim)
        owner, thing = _highest(aim, workload, stock)
        if owner is Owner.SCALE:
            number = self.scale.number(workload, aim)
        else:
            number = self.floors[owner].number(thing, target)
            below = number.problem or ("" if owner is Owner.HPA else _problem_below(aim, stock))
            number = dataclasses.replace(number, problem=below)
        advice = _noted(thing, workload, now=now) or number.advice or self._left_out(number)
        marked = owner is not Owner.SCALE and self.floors[owner].is_marked(thing)
        advice = advice or _in_a_repository(number, target, marked=marked)
        return Found(dataclasses.replace(number, advice=advice), thing, workload, aim)

    def replicas(self, found: Found) -> int:
        """Replicas that the workload asks for now."""
        if found.number.owner is Owner.SCALE:
            return found.number.standing
        return self.scale.count(found.workload, found.aim)

    def awake(self, found: Found) -> Found:
        """The same as the owner of a workload that has no replicas, which only its scale subresource can start."""
        number = self.scale.number(found.workload, found.aim)
        low, high = max(found.number.base, 1), found.number.maximum
        advice = found.number.advice or self._left_out(number) or number.advice
        woken = dataclasses.replace(number, base=low, maximum=max(high, low), advice=advice)
        return dataclasses.replace(found, number=woken, thing=found.workload)

    def read(self, thing: Object, owner: Owner, aim: Target) -> Look:
        """The number that stands at this moment, and who set it."""
        if owner is Owner.SCALE:
            return Look(thing.uid, self.scale.read(aim))
        return self.floors[owner].read(thing)

    def write(self, aim: Target, replicas: int, *, thing: Object, seen: Workload, now: float) -> int:
        """Sets the number if it still is what `seen` says, and returns what stands then. Raises any ClusterError."""
        if seen.owner is Owner.SCALE:
            return self.scale.write(aim, replicas, thing=thing, seen=seen)
        return self.floors[seen.owner].write(aim, replicas, thing=thing, seen=seen, now=now)

    def release(self, target: Target, stock: Inventory, *, note: str = "") -> int:
        """Gives the original numbers back, of the owner and of what carries our marks from before it was the owner.

        The number that stands then. A `note` is left on the owner, so that a Floorcast that still runs leaves it alone.

        Raises:
            ClusterError: it cannot be found, or not be given back.
        """
        aim = stock.aim(target)
        workload = stock.workloads.get((resources.of(aim), aim.name))
        carriers = list(_carriers(aim, workload, stock))
        owner = carriers[0][1] if carriers and not _rivals(aim, stock) else None
        standing: int | None = None
        for kind, thing in carriers:
            marked = self.floors[kind].is_marked(thing)
            if thing is owner or (marked and not _is_made_by_another(thing, carriers)):
                stands = self.floors[kind].restore(thing, note=note if thing is owner else "")
                standing = stands if standing is None else standing
        if standing is not None:
            if note and carriers[0][0] is Owner.KSERVE and workload is not None:
                self._note_on_workload(workload, aim, note)
            return standing
        if rivals := _rivals(aim, stock):
            raise _ambiguous(rivals, aim)
        if note and workload is not None:
            self._note_on_workload(workload, aim, note)
        return self.scale.read(aim)

    def marked(self, namespace: str = "") -> Iterator[tuple[FloorActuator, Json]]:
        """Everything that carries our marks, with who can give it back; a kind that the cluster lacks carries none.

        Raises:
            ClusterError: it cannot be listed.
        """
        found: list[tuple[FloorActuator, Json]] = []
        for owner, actuator in self.floors.items():
            if owner not in self._owners:
                continue
            try:
                found += [(actuator, one) for one in actuator.marked(namespace)]
            except errors.NotFoundError:
                continue
        # What KEDA and KServe make carries a copy of our marks, for a moment longer than the original, and is theirs.
        makers = {actuator.kind.kind for actuator in self.floors.values()}
        yield from (
            (actuator, one) for actuator, one in found if fields.text(fields.controller(one), "kind") not in makers
        )

    def tell(self, found: Found, condition: Condition, *, now: float) -> None:
        """Writes how the target fares onto the owner. Raises any ClusterError."""
        self.floors[found.number.owner].tell(found.thing, condition, now=now)

    def notice(self, found: Found) -> str:
        """What is to be said of the object's being applied from a repository; empty where it is not."""
        mark = gitops.mark(found.thing)
        if mark is None:
            return ""
        number = found.number
        path = ("spec", "replicas") if number.owner is Owner.SCALE else self.floors[number.owner].kind.path
        return gitops.notice(mark, kind=number.thing.kind, name=number.thing.name, field=".".join(path))

    def forget(self, uid: str) -> None:
        """The object is gone, or no target's any more."""
        for actuator in self.floors.values():
            actuator.forget(uid)
        self.scale.forget(uid)

    def is_told(self, found: Found) -> bool:
        """Whether the owner is one that carries a condition: it may have annotations, and the number is ours."""
        owner = found.number.owner
        return (
            owner is not Owner.SCALE and self.floors[owner].kind.annotated and self.floors[owner].is_marked(found.thing)
        )

    def step_back(self, thing: Object, owner: Owner, note: str) -> bool:
        """Leaves a note on the object that its number is somebody else's, and says whether; none on a workload."""
        return owner is not Owner.SCALE and self.floors[owner].step_back(thing, note)

    def resume(self, target: Target, stock: Inventory) -> None:
        """Takes away the notes on the owner and on the workload. Raises any ClusterError."""
        aim = stock.aim(target)
        workload = stock.workloads.get((resources.of(aim), aim.name))
        carriers = list(_carriers(aim, workload, stock))
        for owner, thing in carriers:
            if not _is_made_by_another(thing, carriers):
                self.floors[owner].resume(thing)
        if workload is not None and marks.pause(workload, marks.RELEASED):
            self.scale.leave_note(workload, aim, None)

    def _note_on_workload(self, workload: Json, aim: Target, note: str) -> None:
        """The count stays as it is with or without; whoever may not leave the note is told how somebody else can."""
        try:
            self.scale.leave_note(workload, aim, note)
        except errors.ForbiddenError as error:
            _log.warning("no note left", target=aim.key, detail=str(error))

    def _left_out(self, number: Number) -> NotOursError | None:
        if number.owner in self._owners:
            return None
        return errors.OwnedElsewhereError(
            f"{number.thing.kind} {number.thing.name} owns the number, and kubernetes.owners leaves {number.owner} out;"
            " only advice is given: add it there, and to the permissions"
        )


def _highest(aim: Target, workload: Json, stock: Inventory) -> tuple[Owner, Json]:
    if rivals := _rivals(aim, stock):
        raise _ambiguous(rivals, aim)
    return next(_carriers(aim, workload, stock), (Owner.SCALE, workload))


def _carriers(aim: Target, workload: Json | None, stock: Inventory) -> Iterator[tuple[Owner, Json]]:
    """What carries a floor of the target, from the highest down; HPAs that KEDA makes are the last."""
    scaled, hpas = _scalers(aim, stock)
    lowest = (*scaled, *hpas) or ((workload,) if workload is not None else ())
    for one in stock.inference_services:
        if any(fields.text(fields.controller(below), "uid") == fields.uid(one) for below in lowest):
            yield Owner.KSERVE, one
    yield from ((Owner.KEDA, one) for one in scaled)
    yield from ((Owner.HPA, one) for one in sorted(hpas, key=lambda one: _made_by(one, scaled)))


def _is_made_by_another(thing: Json, carriers: Iterable[tuple[object, Json]]) -> bool:
    """Whether one of the carriers makes it: KEDA and KServe copy annotations, ours too, onto what they make.

    They bring the number and the annotations of what they make in line with their own, so it is not ours to write.
    """
    maker = fields.text(fields.controller(thing), "uid")
    return bool(maker) and any(fields.uid(one) == maker for _, one in carriers)


def _scalers(aim: Target, stock: Inventory) -> tuple[list[Json], list[Json]]:
    scaled = [one for one in stock.scaled_objects if scaling.aims_at(one, aim)]
    return scaled, [one for one in stock.hpas if scaling.aims_at(one, aim)]


def _rivals(aim: Target, stock: Inventory) -> list[str]:
    """The names of the autoscalers that claim the target for themselves, if there is more than one."""
    scaled, hpas = _scalers(aim, stock)
    names = [f"ScaledObject {fields.name(one)}" for one in scaled]
    names += [f"HPA {fields.name(one)}" for one in hpas if not _made_by(one, scaled)]
    return sorted(names) if len(names) > 1 else []


def _ambiguous(names: list[str], aim: Target) -> errors.AmbiguousOwnerError:
    return errors.AmbiguousOwnerError(
        f"{' and '.join(names)} all scale {aim.kind} {aim.key}, and Kubernetes scales by none of them then; keep one"
    )


def _made_by(one: Json, scaled: list[Json]) -> bool:
    """Whether an HPA is made from one of these ScaledObjects."""
    made_from = fields.text(fields.controller(one), "uid")
    named = fields.text(one, "metadata", "labels", hpa.KEDA)
    return any(made_from == fields.uid(above) or named == fields.name(above) for above in scaled)


def _problem_below(aim: Target, stock: Inventory) -> str:
    """What the HPA that somebody else makes reports."""
    problems = (hpa.problem(one) for one in stock.hpas if scaling.aims_at(one, aim))
    return next(filter(None, problems), "")


def _noted(thing: Json, workload: Json, *, now: float) -> NotOursError | None:
    """A note on the owner or on the workload that says to leave the number alone."""
    for key, kind in ((marks.RELEASED, errors.ReleasedError), (marks.SHADOWED, errors.ContestedError)):
        for one in (thing, workload):
            note = marks.pause(one, key)
            if note is not None and note.lasts(now=now):
                return kind(
                    f"annotation {key} on {fields.name(one)} says: {note.text}; only advice is given until"
                    " `floorcast resume`, or whoever removes the annotation"
                )
    return None


def _in_a_repository(number: Number, target: Target, *, marked: bool) -> NotOursError | None:
    """The field was set by a GitOps tool, which would set it again; told before the first write."""
    tool = next((one for one in number.managers if one.startswith(GITOPS)), "")
    if not tool or target.gitops_ignored or marked:
        return None
    return errors.OwnedByGitOpsError(
        f"{number.thing.kind} {number.thing.name}: the number was set by {tool}, which would undo a change;"
        " only advice is given: take the field out of the repository or let the tool ignore it, and set gitops_ignored"
        " (docs/ownership.md)"
    )
