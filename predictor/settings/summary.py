"""What a configuration comes to, for a person."""

import rich.console
import rich.table

from predictor.settings import convert
from predictor.settings.root import Settings


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
