"""A day of the demo from its beginning to its end."""

from typing import Any

from predictor.demo import pages, summary
from predictor.demo.options import DemoOptions
from predictor.demo.stage import Stage


def played(options: DemoOptions) -> dict[str, Any]:
    """What came of it, as `floorcast demo --json` says it."""
    stage = Stage(options)
    source = pages.in_process(stage)
    stage.begin(source)
    while not stage.over:
        stage.step()
    source.close()
    return summary.result(stage)
