"""`floorcast demo`: two simulated fleets through the same day, one under Floorcast, one under a plain HPA."""

from predictor.demo import headless, live
from predictor.demo.options import DemoOptions, Output, Rival

__all__ = ["DemoOptions", "Output", "Rival", "run"]


def run(options: DemoOptions) -> int:
    """Runs the demo as asked and returns the exit code.

    Raises:
        ListenError: the page cannot be served on the address asked for.
    """
    return live.run(options) if options.output is Output.PAGE else headless.run(options)
