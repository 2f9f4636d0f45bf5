"""A floor that is a field of an object: read, moved and given back, whatever kind of object that is.

The patch names the version it was computed from: a change in between is a 409, never lost.
"""

from typing import Protocol

from predictor.cluster import client, errors, fields, marks
from predictor.cluster.conditions import Condition, State
from predictor.cluster.contest import Look
from predictor.cluster.errors import NotOursError
from predictor.cluster.fields import Json
from predictor.cluster.marks import Marks
from predictor.cluster.owners import Number, Object
from predictor.cluster.resources import Resource
from predictor.ports import Owner, Workload
from predictor.targets import Target

TRIES = 3  # an HPA's status changes every few seconds, so one patch in a while meets a newer version


class FloorKind(Protocol):
    """What differs between the kinds of object that carry a floor.

    Attributes:
        owner: as it is reported.
        resource: where they are read and written.
        kind: as in the object.
        short: the kind in messages.
        path: the field.
        default: what the field means where it is left out.
        rest: seconds after a write in which it is not lowered again.
        raise_rest: the same for raising: what is wanted meanwhile goes into one write, of what is wanted then.
        annotated: it may carry annotations of ours; else the marks are told by the field's manager.
    """

    owner: Owner
    resource: Resource
    kind: str
    short: str
    path: tuple[str, ...]
    default: int
    rest: float
    raise_rest: float
    annotated: bool

    def aims_at(self, thing: Json, target: Target) -> bool:
        """Whether the object still scales the target."""
        ...

    def maximum(self, thing: Json, *, otherwise: int) -> int:
        """Its upper bound; `otherwise` where it need not have one and has none."""
        ...

    def lowest(self, thing: Json, *, base: int) -> int:
        """The smallest floor that may be written over the user's own."""
        ...

    def problem(self, thing: Json) -> str:
        """What it reports to be wrong with its scaling; empty when nothing, or nothing yet."""
        ...

    def hands_off(self, thing: Json) -> NotOursError | None:
        """Why its floor must not be moved at all; None when it may."""
        ...


class FloorActuator:
    """Moves the floor of one kind of object."""

    def __init__(self, api: client.Api, kind: FloorKind) -> None:
        self.kind = kind
        self._api = api
        self._proven: set[str] = set()  # uids of objects for which the API server has accepted a write, if as a dry run
        self._written_at: dict[str, float] = {}  # uid -> Unix seconds of our last write

    def number(self, thing: Json, target: Target) -> Number:
        """The floor as it stands."""
        live, found = self.minimum(thing), self._marks(thing)
        return Number(
            owner=self.kind.owner,
            thing=self.thing(thing),
            standing=live,
            base=self._base(thing),
            maximum=self.kind.maximum(thing, otherwise=target.maximum),
            problem=self.kind.problem(thing),
            adopted=marks.ours(live, found),
            advice=self.kind.hands_off(thing),
            managers=fields.managers_of(thing, *self.kind.path),
        )

    def read(self, thing: Object) -> Look:
        """The floor that stands at this moment, and who set it."""
        found = self._read(thing)
        noted = marks.pause(found, marks.SHADOWED) is not None
        return Look(fields.uid(found), self.minimum(found), noted=noted, manager=self.manager(found))

    def write(self, target: Target, replicas: int, *, thing: Object, seen: Workload, now: float) -> int:
        """Sets the floor within the object's bounds. What changed beside it is no reason to give up."""
        for _ in range(TRIES):
            found = self._read(thing)
            self._refuse_if_changed(found, target, thing=thing, seen=seen)
            self._refuse_if_paused(found, now=now)
            try:
                return self._set(found, replicas, target=target, now=now)
            except errors.ConflictError:
                continue
        raise errors.ConflictError(f"{self._named(thing.name)} changed during each of {TRIES} tries")

    def marked(self, namespace: str = "") -> list[Json]:
        """All objects with our marks, in a namespace or everywhere."""
        return [one for one in self._api.list_all(self.kind.resource, namespace=namespace) if self.is_marked(one)]

    def is_marked(self, thing: Json) -> bool:
        """Whether it carries a number that was moved and not given back."""
        if self.kind.annotated:
            return marks.present(thing)
        found = self._marks(thing)  # they stay with a number that is the original: there is nothing to give back then
        return found is not None and self._given_back(thing) != self._live(thing)

    def restore(self, found: Json, *, note: str = "") -> int:
        """Gives the original back, takes the marks away, and reads both back; the floor that stands.

        A floor that somebody else has changed since is theirs and stays. `note` is left for a Floorcast that still
        runs. What carries no marks, and the note already or none to be left, is not written.
        """
        thing = self.thing(found)
        for _ in range(TRIES):
            noted = marks.pause(found, marks.RELEASED) is not None or not self.kind.annotated
            if not self.is_marked(found) and (noted or not note):
                return self.minimum(found)
            expected = self._given_back(found)
            try:
                left = {**marks.annotations(None), marks.RELEASED: note or None}
                manager = client.FIELD_MANAGER if self.kind.annotated else marks.releaser(note)
                self._patch(found, expected, left, manager=manager)
            except errors.ConflictError:
                found = self._read(thing)
                continue
            return self._verify(thing, self.kind.default if expected is None else expected)
        raise errors.ConflictError(f"{self._named(thing.name)} changed during each of {TRIES} tries to release it")

    def step_back(self, thing: Object, note: str) -> bool:
        """Leaves the number to whoever keeps changing it; whether that could be said on the object."""
        if not self.kind.annotated:
            return False
        change = {"metadata": {"annotations": {**marks.annotations(None), marks.SHADOWED: note}}}
        self._api.patch(self.kind.resource, change, namespace=thing.namespace, name=thing.name)
        return True

    def tell(self, found: Json, condition: Condition, *, now: float) -> None:
        """Writes how the target fares, and nothing else. Raises any ClusterError; a change meanwhile is a conflict."""
        version = fields.text(found, "metadata", "resourceVersion")
        told = condition.written(fields.text(found, "metadata", "annotations", marks.STATUS), now=now)
        change = {"metadata": {"resourceVersion": version, "annotations": {marks.STATUS: told}}}
        namespace = fields.text(found, "metadata", "namespace")
        self._api.patch(self.kind.resource, change, namespace=namespace, name=fields.name(found))

    def resume(self, found: Json) -> None:
        """Takes away the notes that say to stand back."""
        if any(marks.pause(found, key) for key in (marks.RELEASED, marks.SHADOWED)):
            change = {"metadata": {"annotations": {marks.RELEASED: None, marks.SHADOWED: None}}}
            namespace = fields.text(found, "metadata", "namespace")
            self._api.patch(self.kind.resource, change, namespace=namespace, name=fields.name(found))

    def minimum(self, thing: Json) -> int:
        """The floor that stands."""
        live = self._live(thing)
        return self.kind.default if live is None else live

    def manager(self, thing: Json) -> str:
        """Who set the floor last; empty where that is not recorded."""
        return fields.manager_of(thing, *self.kind.path)

    def thing(self, found: Json) -> Object:
        """The object as others refer to it."""
        namespace = fields.text(found, "metadata", "namespace")
        return Object(self.kind.resource.api_version, self.kind.kind, namespace, fields.name(found), fields.uid(found))

    def _live(self, thing: Json) -> int | None:
        return fields.integer(thing, *self.kind.path)

    def _marks(self, thing: Json) -> Marks | None:
        return marks.read(thing) if self.kind.annotated else marks.read_manager(thing, *self.kind.path)

    def _original(self, thing: Json) -> int | None:
        return marks.original(self._live(thing), self._marks(thing), default=self.kind.default)

    def _given_back(self, thing: Json) -> int | None:
        """The original as it can be given back: one above a maximum that was lowered since would be refused."""
        original = self._original(thing)
        return None if original is None else min(original, self.kind.maximum(thing, otherwise=original))

    def _base(self, thing: Json) -> int:
        original = self._original(thing)
        return self.kind.default if original is None else original

    def _set(self, found: Json, replicas: int, *, target: Target, now: float) -> int:
        live, original, uid = self.minimum(found), self._original(found), fields.uid(found)
        base = self.kind.default if original is None else original
        maximum = self.kind.maximum(found, otherwise=target.maximum)
        wanted = min(max(replicas, self.kind.lowest(found, base=base)), maximum)
        self._refuse_if_too_soon(found, wanted, live=live, now=now)
        change = f"{self.kind.path[-1]} {live} -> {wanted} by Floorcast"
        message = f"{marks.stamp(now)} {change}; own minimum {base}, at most {maximum}"
        before = fields.text(found, "metadata", "annotations", marks.STATUS)
        told = Condition(State.ACTIVE, message, wanted, replicas).written(before, now=now)
        left = {**marks.annotations(Marks(original, wanted), status=told), marks.RELEASED: None}
        manager = client.FIELD_MANAGER if self.kind.annotated else marks.manager(original)
        if uid not in self._proven:
            self._keeps(found, self._patch(found, wanted, left, manager=manager, dry_run=True), wanted)
            self._proven.add(uid)
        self._keeps(found, self._patch(found, wanted, left, manager=manager), wanted)
        self._written_at[uid] = now
        return wanted

    def _refuse_if_too_soon(self, found: Json, wanted: int, *, live: int, now: float) -> None:
        rest = self.kind.rest if wanted < live else self.kind.raise_rest
        if 0 <= now - self._written_at.get(fields.uid(found), float("-inf")) < rest:
            name, later = self._named(fields.name(found)), "lowered" if wanted < live else "raised"
            raise errors.TooSoonError(f"{name} was written less than {rest:.0f} s ago; {later} later")

    def forget(self, uid: str) -> None:
        """The object is gone, or no target's any more."""
        self._proven.discard(uid)
        self._written_at.pop(uid, None)

    def _keeps(self, found: Json, after: Json, wanted: int) -> None:
        if self.minimum(after) != wanted:
            raise errors.OverruledError(
                f"{self._named(fields.name(found))}: wrote {self.kind.path[-1]} {wanted}, {self.minimum(after)} stands"
            )

    def _verify(self, thing: Object, original: int) -> int:
        found = self._read(thing)
        if self.is_marked(found) or self.minimum(found) != original:
            raise errors.NotReleasedError(
                f"{self.kind.short} {thing.namespace}/{thing.name} has {self.kind.path[-1]} {self.minimum(found)} right"
                f" after {original} was given back; is a Floorcast still running in control mode?"
            )
        return original

    def _refuse_if_changed(self, found: Json, target: Target, *, thing: Object, seen: Workload) -> None:
        if fields.uid(found) != thing.uid or not self.kind.aims_at(found, target):
            raise errors.ConflictError(f"{self._named(thing.name)} no longer scales {target.kind} {target.key}")
        if refusal := self.kind.hands_off(found):
            raise refusal
        live = self.minimum(found)
        if live != seen.standing:
            raise errors.ConflictError(
                f"{self._named(thing.name)} has {self.kind.path[-1]} {live}, set by"
                f" {self.manager(found) or 'somebody'}; {seen.standing} stood when this was decided"
            )

    def _refuse_if_paused(self, found: Json, *, now: float) -> None:
        told = None if self.kind.annotated else marks.released(found, *self.kind.path)
        if told is not None and told.lasts(now=now):
            raise errors.ReleasedError(f"{self._named(fields.name(found))} is to be left alone: {told.text}")
        for key, error in ((marks.RELEASED, errors.ReleasedError), (marks.SHADOWED, errors.ContestedError)):
            note = marks.pause(found, key)
            if note is not None and note.lasts(now=now):
                raise error(f"{self._named(fields.name(found))} is to be left alone: {note.text}")

    def _named(self, name: str) -> str:
        return f"{self.kind.short} {name}"

    def _read(self, thing: Object) -> Json:
        return self._api.get(self.kind.resource, namespace=thing.namespace, name=thing.name)

    def _patch(
        self,
        found: Json,
        replicas: int | None,
        left: dict[str, str | None],
        *,
        manager: str = client.FIELD_MANAGER,
        dry_run: bool = False,
    ) -> Json:
        version = fields.text(found, "metadata", "resourceVersion")
        change: Json = {"metadata": {"resourceVersion": version}}
        if self.kind.annotated:
            change["metadata"]["annotations"] = left
        holder = change
        for key in self.kind.path[:-1]:
            holder = holder.setdefault(key, {})
        holder[self.kind.path[-1]] = replicas
        namespace = fields.text(found, "metadata", "namespace")
        return self._api.patch(
            self.kind.resource, change, namespace=namespace, name=fields.name(found), manager=manager, dry_run=dry_run
        )
