"""The command line: hands on what was asked for, and turns every expected failure into an exit code.

Exit codes: 0 done; 1 a failure while running; 2 the configuration or the command line cannot be used.
Whatever takes long to import is imported by the command that needs it, so that --help answers at once.
"""

import importlib.metadata
import sys

import typer

from predictor.commands import demonstrating, looking, replaying, service
from predictor.errors import FloorcastError

app = typer.Typer(
    name="floorcast",
    help="Predictive autoscaler for LLM inference: moves the floor under your autoscaler before the load arrives.",
    epilog="Exit codes: 0 done, 1 a failure while running, 2 configuration or command line unusable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Look at the configuration without running anything.", no_args_is_help=True)


def main() -> None:
    """What the `floorcast` command runs; the one place where expected failures end."""
    try:
        app()
    except FloorcastError as error:
        for line in error.lines:
            sys.stderr.write(f"{line}\n")
        sys.exit(error.exit_code)


def version() -> None:
    """Print the version."""
    sys.stdout.write(f"floorcast {importlib.metadata.version('floorcast')}\n")


for command in (
    service.run, service.release, service.resume, demonstrating.demo, replaying.backtest, replaying.simulate,
    replaying.counterfactual, looking.explain, version,
):  # fmt: skip
    app.command()(command)
for command in (looking.validate, looking.reference, looking.schema):
    config_app.command()(command)
app.add_typer(config_app, name="config")


if __name__ == "__main__":
    main()
