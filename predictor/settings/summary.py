"""What a configuration comes to, for a person."""

from collections.abc import Iterator, Sequence

import rich.console
import rich.table

from models.capacity.trusting import Source
from predictor.settings import convert
from predictor.settings.root import Settings
from predictor.targets import Mode, Target


def show(settings: Settings) -> None:
    """Prints the targets as they will be treated."""
    console = rich.console.Console()
    targets = convert.targets(settings)
    if not targets:
        console.print("The configuration is valid. It names no targets: nothing will be scaled.")
        return
    table = rich.table.Table("target", "kind", "engine", "mode", "per replica", "raise at", "warm-up")
    for target in targets:
        profile, objectives = target.objectives.profile, target.objectives
        carries, sure = f"{profile.concurrency:g} in flight", f"{objectives.raise_quantile:g}"
        table.add_row(target.key, target.kind, target.engine, target.mode, carries, sure, f"{target.warm_up:g} s")
    console.print("The configuration is valid.")
    console.print(table)
    for line in _doubts(settings, targets):
        console.print(f"Note: {line}", highlight=False, markup=False, soft_wrap=True)


def _doubts(settings: Settings, targets: Sequence[Target]) -> Iterator[str]:
    """What may be meant, and is mostly not."""
    for target in targets:
        profile = target.objectives.profile
        if profile.source == Source.DEFAULT:
            yield (
                f"{target.key}: no capacity is given: {profile.concurrency:g} in flight a replica is a cautious guess;"
                " set capacity.knee to what a load test finds"
            )
    quickest = min(targets, key=lambda target: target.warm_up)
    if settings.history.step > quickest.warm_up / 2:
        yield (
            f"{quickest.key}: points of the history lie {settings.history.step:g} s apart, and a forecast looks ahead"
            f" by whole points: over a warm-up of {quickest.warm_up:g} s it may end early by half of one; set"
            " history.step to half the shortest warm-up or less"
        )
    if settings.journal.path is None:
        yield (
            "journal.path is not set: explain and counterfactual know no past, and a restart loses the capacity"
            " that was observed while serving and the warm-ups of pods that are gone"
        )
    for given in settings.targets:
        if given.mode is Mode.CONTROL and settings.mode is Mode.SHADOW:
            yield f"{given.key}: mode: control takes effect once the service's own mode is control"
