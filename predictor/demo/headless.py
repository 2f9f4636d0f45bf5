"""The day without a page and without waiting for the clock."""

import json
import sys
from collections.abc import Mapping

import rich.console
import rich.progress

from models.signals import Signal
from predictor.demo import graded, pages, summary
from predictor.demo.options import DemoOptions, Output
from predictor.demo.stage import Stage


def run(options: DemoOptions) -> int:
    """Plays the day as fast as it goes; the summary on stdout, progress on stderr. Returns the exit code."""
    stage = Stage(options)
    source = pages.in_process(stage)
    progress = rich.console.Console(stderr=True)
    progress.print(f"Simulating {options.hours:g} h of two fleets, seed {options.seed}.", highlight=False)
    try:
        with progress.status(f"Preparing: {stage.preparing}."):
            stage.begin(source)
        _play(stage, progress)
        with progress.status("Replaying the day, to grade its forecasts."):
            found = graded.of(stage)
    except KeyboardInterrupt:
        progress.print("Interrupted: the figures are those until now.")
        _print(stage, {})
        return 130
    finally:
        source.close()
    _print(stage, found)
    return 0


def _play(stage: Stage, console: rich.console.Console) -> None:
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    with rich.progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("00:00", total=stage.options.hours * 3600)
        while not stage.over:
            stage.step()
            bar.update(task, completed=stage.seconds, description=_clock(stage.seconds))


def _clock(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _print(stage: Stage, found: Mapping[Signal, graded.Graded]) -> None:
    outcome = {**summary.result(stage), "forecast": summary.grades(found)}
    if stage.options.output is Output.JSON:
        sys.stdout.write(json.dumps(outcome) + "\n")
    else:
        summary.show(rich.console.Console(), outcome)
