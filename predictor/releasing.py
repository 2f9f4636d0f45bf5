"""`floorcast release` and `floorcast resume`: original minimums given back, and taken up again."""

import dataclasses
import sys
from collections.abc import Sequence

from predictor import wiring
from predictor.clock import SystemClock
from predictor.cluster import discovery, errors, marks
from predictor.cluster.client import Api
from predictor.cluster.workloads import ClusterWorkloads
from predictor.errors import ConfigurationError, FloorcastError
from predictor.ports import Refused, Written
from predictor.settings import convert, discovered
from predictor.settings.root import Settings
from predictor.targets import Target
from predictor.telemetry import logs


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """How `floorcast release` was asked.

    Attributes:
        lasting: seconds for which a Floorcast that runs leaves the targets alone; None until `floorcast resume`.
        everywhere: what carries our annotations is looked for in the whole cluster.
    """

    lasting: float | None = None
    everywhere: bool = False


def release(settings: Settings, keys: Sequence[str], *, asked: Release) -> int:
    """Gives original minimums back; 1 when one could not be given.

    Of the named targets, or without any of all targets and of everything else that carries our annotations.
    """
    logs.configure(settings.log.level, settings.log.format)
    api = Api(wiring.access(settings.kubernetes))
    workloads = ClusterWorkloads(api, owners=settings.kubernetes.owners)
    targets, missed = _every_target(settings, api)
    if missed:
        sys.stdout.write(f"{missed}\n")
    else:
        _refuse_strangers(keys, targets)
    if not targets and not asked.everywhere:
        sys.stderr.write(
            "the configuration has no targets: nothing was looked for; name the one the service runs with (--config),"
            " or look everywhere for what carries its annotations (--all-namespaces)\n"
        )
    note = _note(asked, now=SystemClock().now())
    whole = give_back(workloads, [target for target in targets if not keys or target.key in keys], note=note)
    others = bool(keys) or _give_back_others(workloads, targets, asked, note=note)
    return 0 if whole and others and not missed else 1


def resume(settings: Settings, keys: Sequence[str]) -> int:
    """Takes away the notes that say to leave the named targets alone, or all; 1 when one could not be."""
    logs.configure(settings.log.level, settings.log.format)
    api = Api(wiring.access(settings.kubernetes))
    workloads = ClusterWorkloads(api, owners=settings.kubernetes.owners)
    targets, missed = _every_target(settings, api)
    if missed:
        raise FloorcastError(missed)
    _refuse_strangers(keys, targets)
    failed = 0
    for target in targets:
        if keys and target.key not in keys:
            continue
        refused = workloads.resume(target)
        failed += refused is not None
        told = f"not resumed: {refused.reason}: {refused.detail}" if refused else "free to be written"
        sys.stdout.write(f"{target.key}: {told}\n")
    return 1 if failed else 0


def _every_target(settings: Settings, api: Api) -> tuple[Sequence[Target], str]:
    """Those of the file, and where that is on those found by label; and why these could not be looked for, or empty."""
    missed = ""
    if settings.discovery.enabled:
        try:
            found = discovery.find(api, namespaces=settings.discovery.namespaces, kinds=settings.discovery.kinds)
            settings = discovered.join(settings, found).settings
        except errors.ClusterError as error:
            missed = f"targets by label: not looked for: {_why(error)}"
    return convert.targets(settings), missed


def _refuse_strangers(keys: Sequence[str], targets: Sequence[Target]) -> None:
    known = {target.key for target in targets}
    if strangers := [key for key in keys if key not in known]:
        raise ConfigurationError(f"TARGETS: {key!r} is no target, named or found by label" for key in strangers)


def _give_back_others(workloads: ClusterWorkloads, targets: Sequence[Target], asked: Release, *, note: str) -> bool:
    """Releases what carries our annotations and is no target any more; whether all could be."""
    whole = True
    for namespace in ("",) if asked.everywhere else sorted({target.namespace for target in targets}):
        try:
            answers = workloads.release_all(namespace, note=note)
        except errors.ClusterError as error:
            whole = False
            where = f"namespace {namespace}" if namespace else "the cluster"
            sys.stdout.write(f"{where}: not looked through for what else carries our annotations: {_why(error)}\n")
            continue
        for key, outcome in answers.items():
            whole = whole and isinstance(outcome, Written)
            sys.stdout.write(f"{key}: {_told(outcome)}\n")
    return whole


def _note(asked: Release, *, now: float) -> str:
    """What a Floorcast that still runs in control mode goes by."""
    if asked.lasting is None:
        return marks.paused(f"since {marks.stamp(now)} by floorcast release", until=None)
    until = now + asked.lasting
    return marks.paused(f"since {marks.stamp(now)} by floorcast release", until=until) if asked.lasting else ""


def give_back(workloads: ClusterWorkloads, targets: Sequence[Target], *, note: str = "") -> bool:
    """Releases the targets, with a line for each on standard output; whether all could be.

    With a `note` a Floorcast that still runs leaves them alone.
    """
    complete = True
    for target in targets:
        outcome = workloads.release(target, note=note)
        complete = complete and (isinstance(outcome, Written) or _is_gone(outcome))
        sys.stdout.write(f"{target.key}: {_told(outcome)}\n")
        sys.stdout.flush()  # the next one may hang, and whoever waits should see what is done
    return complete


def _is_gone(outcome: Refused) -> bool:
    """Nothing is left to give back; that must not keep an uninstall from going on."""
    return outcome.reason == errors.NotFoundError.reason


def _why(error: errors.ClusterError) -> str:
    return f"{error.reason}: {error}"


def _told(outcome: Written | Refused) -> str:
    if isinstance(outcome, Written):
        return f"released, {outcome.replicas} stands"
    if _is_gone(outcome):
        return f"nothing to release: {outcome.detail}"
    return f"not released: {outcome.reason}: {outcome.detail}"
