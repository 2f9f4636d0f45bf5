"""The port to the cluster on the real API server."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

import structlog

from models.policy.decision import Decision
from predictor.cluster import client, conditions, contest, errors, fields, gpus, marks, pods, rollouts, scaling
from predictor.cluster.conditions import Condition, Conditions, State
from predictor.cluster.contest import Contests
from predictor.cluster.events import Announcer
from predictor.cluster.inventory import Inventory, Lister, Stocktaking
from predictor.cluster.owners import Object
from predictor.cluster.ownership import Found, Ownership
from predictor.cluster.warmups import Remembered, WarmUps
from predictor.ports import Owner, Refused, Workload, Written
from predictor.targets import Mode, Target

APPLIED = "AppliedByGitOps"  # reason of the Event about an object that comes from a repository
PASSING = (errors.ConflictError, errors.NotLeaderError, errors.UnreachableError, errors.TooManyRequestsError)
# Refusals that say nothing of the target: the next tick tries again.

_log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """Where a target's number was found at the last look, and why it is left alone, if it is.

    `notice` is what is to be told with the first write.
    """

    thing: Object
    owner: Owner
    aim: Target
    advice: errors.NotOursError | None
    notice: str = ""


class ClusterWorkloads:
    """Observes and writes targets. What the API server answers is a value, never an exception.

    Safe to use from several threads.

    Args:
        api: where to write, and to read what must not be old.
        owners: the kinds of owner that are looked for and written.
        lister: where objects are listed; the API server itself where nothing else is given.
        events: whether decisions are told as Events.
    """

    def __init__(
        self,
        api: client.Api,
        *,
        owners: Collection[Owner] = frozenset(Owner),
        lister: Lister | None = None,
        events: bool = True,
    ) -> None:
        self._api = api
        self._ownership = Ownership(api, owners)
        self._stocktaking = Stocktaking(lister or api, owners)
        self._afresh = Stocktaking(api, owners)
        self._contests = Contests()
        self._warm_ups = WarmUps()
        self._conditions = Conditions()
        self._announcer = Announcer(api if events else None)
        self._autoscaled: set[str] = set()  # targets that an autoscaler scaled when they were looked at
        self._places: dict[str, _Place] = {}
        self._things: dict[str, Object] = {}  # as in the last place of each target
        self._serving: dict[str, tuple[pods.Serving, ...]] = {}

    def observe(self, targets: Sequence[Target], *, now: float) -> Mapping[str, Workload | Refused]:
        """State by target key: every namespace is read once, for all of its targets."""
        answers: dict[str, Workload | Refused] = {}
        down: errors.ClusterError | None = None
        for namespace, within in _by_namespace(targets):
            try:
                if down is not None:
                    raise down  # one timeout a pass, not one a namespace
                stock = self._stocktaking.take(namespace, within, now=now)
            except errors.ClusterError as error:
                down = error if isinstance(error, errors.UnreachableError) else None
                answers.update((target.key, _refused(error)) for target in within)
            else:
                answers.update((target.key, self._state(target, stock, now=now)) for target in within)
        return answers

    def write(self, target: Target, replicas: int, *, seen: Workload, now: float) -> Written | Refused:
        """Sets the number unless it changed since it was `seen`."""
        place = self._places.get(target.key)
        if place is None:
            return Refused("NotObserved", f"{target.key} was not observed with owner {seen.owner} before this write")
        if place.advice is not None:
            return _refused(place.advice)
        try:
            with self._contests.writing(target.key, place.thing.uid):
                stands = self._ownership.write(place.aim, replicas, thing=place.thing, seen=seen, now=now)
                self._contests.wrote(target.key, place.thing.uid, stands)
        except errors.ClusterError as error:
            if not isinstance(error, (*PASSING, errors.TooSoonError)):
                told = f"{marks.stamp(now)} {error.reason}: {error}"
                self._conditions.put(target.key, Condition(State.REFUSED, told, seen.standing, replicas))
            return _refused(error)
        self._conditions.wrote(target.key, now=now)
        if place.notice:
            self._announcer.tell_once(place.thing, reason=APPLIED, message=place.notice, at=now)
        return Written(stands)

    def serving(self, target: Target) -> tuple[pods.Serving, ...]:
        """The Ready pods of a target and their addresses, as of the last `observe`."""
        return self._serving.get(target.key, ())

    def announce(self, target: Target, decision: Decision) -> None:
        """Events on the object that carries the number; none in shadow mode, which leaves no trace in the cluster.

        Where somebody keeps changing the number back, a note is left on the object too.
        """
        place = self._places.get(target.key)
        if place is None or target.mode is not Mode.CONTROL:
            return
        if place.advice is None:
            self._conditions.put(target.key, conditions.of(decision))
            self._announcer.announce(place.thing, decision)
            return
        self._announcer.tell(place.thing, reason=place.advice.reason, message=str(place.advice), at=decision.at)
        self._leave_note(target.key, place, now=decision.at)

    def release(self, target: Target, *, note: str = "") -> Written | Refused:
        """Gives the original minimum back and takes the annotations away; safe to repeat.

        With a `note` another Floorcast that still runs in control mode leaves the target alone from then on.
        """
        self._places.pop(target.key, None)
        try:
            stock = self._afresh.take(target.namespace, (target,), now=float("inf"))
            return Written(self._ownership.release(target, stock, note=note))
        except errors.ClusterError as error:
            return _refused(error)

    def release_all(self, namespace: str = "", *, note: str = "") -> Mapping[str, Written | Refused]:
        """Releases everything that carries our annotations, configured or not, by "Kind namespace/name" of the object.

        Args:
            namespace: where to look; empty for the whole cluster, which needs the permission to list there.
            note: as in `release`.

        Raises:
            ClusterError: what is to be released cannot even be listed.
        """
        answers: dict[str, Written | Refused] = {}
        for actuator, found in self._ownership.marked(namespace):
            key = f"{actuator.kind.kind} {fields.text(found, 'metadata', 'namespace')}/{fields.name(found)}"
            try:
                answers[key] = Written(actuator.restore(found, note=note))
            except errors.ClusterError as error:
                answers[key] = _refused(error)
        return answers

    def resume(self, target: Target) -> Refused | None:
        """Takes away the notes that say to leave the target alone; None when that is done."""
        try:
            self._ownership.resume(target, self._afresh.take(target.namespace, (target,), now=float("inf")))
        except errors.ClusterError as error:
            return _refused(error)
        return None

    def remembered(self, key: str) -> Remembered | None:
        """What is known of the starts of a target; None where it was never looked at."""
        return self._warm_ups.remembered(key)

    def recall(self, key: str, known: Remembered) -> None:
        """Goes on from what another process knew of the starts of a target, before the first look at it."""
        self._warm_ups.recall(key, known)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forgets all other targets."""
        self._contests.keep_only(keys)
        self._conditions.keep_only(keys)
        self._warm_ups.keep_only(keys)
        for key in [key for key in self._things if key not in keys]:
            self._forget(self._things.pop(key))
        self._autoscaled &= set(keys)
        self._places = {key: place for key, place in self._places.items() if key in keys}
        self._serving = {key: serving for key, serving in self._serving.items() if key in keys}

    def _state(self, target: Target, stock: Inventory, *, now: float) -> Workload | Refused:
        try:
            state = self._workload(target, stock, now=now)
        except errors.ClusterError as error:
            self._places.pop(target.key, None)
            return _refused(error)
        if target.mode is Mode.CONTROL:  # shadow mode leaves no trace in the cluster
            self._announcer.tell_stuck(self._places[target.key].thing, state.stuck, at=now)
        return state

    def _workload(self, target: Target, stock: Inventory, *, now: float) -> Workload:
        found = self._ownership.find(target, stock, now=now)
        self._refuse_if_orphaned(target, found, stock)
        replicas = self._ownership.replicas(found)
        if replicas == 0:
            found = self._started(target, found)
        number, running = found.number, stock.pods_of(found.workload)
        advice = self._advice(target, found, now=now)
        if target.mode is Mode.CONTROL:
            self._tell(target.key, found, advice, now=now)
        if (before := self._things.get(target.key)) is not None and before != number.thing:
            self._forget(before)
        self._things[target.key] = number.thing
        notice = "" if target.gitops_ignored else self._ownership.notice(found)
        self._places[target.key] = _Place(number.thing, number.owner, found.aim, advice, notice)
        self._serving[target.key] = pods.serving(running)
        usual = self._warm_ups.usual(target.key, running, now=now, default=target.warm_up)
        return Workload(
            owner=number.owner,
            standing=number.standing,
            base=number.base,
            maximum=number.maximum,
            replicas=replicas,
            supply=pods.supply(running, now=now, usual=usual),
            warm_up=usual,
            stuck=pods.stuck(running, now=now, usual=usual),
            gpu=gpus.common_kind(running),
            gpus=max(map(gpus.count, running), default=0),
            rollout=rollouts.under_way(found.aim.kind, found.workload),
            owner_problem=number.problem,
            adopted=number.adopted,
            advice=_refused(advice) if advice is not None else None,
            rival=self._rival(target, found, advice),
            one_by_one=rollouts.one_by_one(found.aim.kind, found.workload),
        )

    def _forget(self, thing: Object) -> None:
        self._ownership.forget(thing.uid)
        self._announcer.forget(thing)

    def _started(self, target: Target, found: Found) -> Found:
        """A workload that has no replicas, to be started again by whoever can."""
        if not target.from_zero:
            raise errors.ScaledToZeroError(
                f"{target.kind} {target.key} has 0 replicas: a floor does not wake it; scale it to at least 1, or set"
                " from_zero to have it started again"
            )
        # KEDA starts it by itself when its minimum is raised; an HPA that finds no replicas does nothing at all.
        return self._ownership.awake(found) if found.number.owner is Owner.HPA else found

    def _advice(self, target: Target, found: Found, *, now: float) -> errors.NotOursError | None:
        """Why the number is not to be written: for what it is, or for what happened to our last writes."""
        number = found.number
        noted = marks.pause(found.thing, marks.SHADOWED)
        if number.advice is not None and not isinstance(number.advice, errors.ContestedError):
            self._contests.forget(target.key)
        if number.advice is not None:
            return number.advice
        return self._contests.look(
            target.key,
            contest.Look(number.thing.uid, number.standing, noted=noted is not None),
            now=now,
            confirm=lambda: self._ownership.read(number.thing, number.owner, found.aim),
        )

    def _rival(self, target: Target, found: Found, advice: errors.NotOursError | None) -> str:
        """Who keeps changing the number back: known to us, or to the Floorcast that left the note."""
        if not isinstance(advice, errors.ContestedError):
            return ""
        return self._contests.rival(target.key) or contest.named(marks.pause(found.thing, marks.SHADOWED))

    def _tell(self, key: str, found: Found, advice: errors.NotOursError | None, *, now: float) -> None:
        """Brings the condition on the object up to date, where there is one and it is ours to write."""
        if not self._ownership.is_told(found):
            return
        paused = None
        if isinstance(advice, errors.PausedError):
            told = f"{marks.stamp(now)} {advice.reason}: {advice}"
            paused = Condition(State.REFUSED, told, found.number.standing, None)
        elif advice is not None:
            return
        written = fields.text(found.thing, "metadata", "annotations", marks.STATUS)
        condition = self._conditions.due(key, written, now=now, instead=paused)
        if condition is None:
            return
        try:
            self._ownership.tell(found, condition, now=now)
        except PASSING:
            return  # it is still due
        except errors.ClusterError as error:
            self._conditions.drop(key)
            _log.warning("cannot write the condition", target=key, reason=error.reason, detail=str(error))
        else:
            self._conditions.wrote(key, now=now)

    def _leave_note(self, key: str, place: _Place, *, now: float) -> None:
        note = self._contests.to_note(key, now=now)
        if not note:
            return
        noted = False
        try:
            noted = self._ownership.step_back(place.thing, place.owner, note)
        except PASSING:
            return  # it is still due
        except errors.ClusterError as error:
            _log.warning("cannot leave a note on the object", target=key, reason=error.reason, detail=str(error))
        _log.warning("somebody keeps changing the number back", target=key, rival=self._contests.rival(key))
        self._contests.told(key, noted=noted)

    def _refuse_if_orphaned(self, target: Target, found: Found, stock: Inventory) -> None:
        """An HPA that is deleted may be about to be replaced, or paused: its workload is nobody's to take over."""
        scalers = (*stock.hpas, *stock.scaled_objects)
        if found.number.owner is not Owner.SCALE or any(scaling.aims_at(one, found.aim) for one in scalers):
            self._autoscaled.add(target.key)
        elif target.key in self._autoscaled:
            raise errors.OwnerGoneError(
                f"the autoscaler of {target.kind} {target.key} is gone since Floorcast started; its replicas are left"
                " alone, for it may come back; restart Floorcast to let it set the replicas itself"
            )


def _by_namespace(targets: Sequence[Target]) -> Iterator[tuple[str, list[Target]]]:
    for namespace in sorted({target.namespace for target in targets}):
        yield namespace, [target for target in targets if target.namespace == namespace]


def _refused(error: errors.ClusterError) -> Refused:
    return Refused(error.reason, str(error))
